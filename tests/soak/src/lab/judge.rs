//! Judges the results of a scenario.

use lab::run::Examined;
use lab::scenario::Scenario;

use super::goals;
use crate::outcome::{Fault, kind_of_checker, without_numbers};

/// Checks everything that must hold.
pub fn of(scenario: &Scenario, examined: &Examined) -> Result<(), Fault> {
    if let Some(broken) = examined.broken.first() {
        return Err(Fault::new(format!("checker: {}", kind_of_checker(broken)), broken.clone()));
    }
    if !examined.left.is_empty() {
        let left = examined.left.join("\n");
        return Err(Fault::new("left over: something is held after the end", left));
    }
    of_numbers(examined)?;
    of_transfer(scenario, examined)
}

/// Checks for results that make no sense.
fn of_numbers(examined: &Examined) -> Result<(), Fault> {
    let results = &examined.run.results;
    let totals = &results.totals;
    let windows = results.series.time_s.len();
    let rules = [
        (totals.delivered_bytes <= totals.source_bytes, "more was delivered than sent"),
        (totals.goodput_in_order_bps.is_finite(), "the goodput is no number"),
        (totals.aggregate_throughput_bps.is_finite(), "the throughput is no number"),
        (results.series.aggregate_throughput_bps.len() == windows, "a series is shorter than the run"),
        (results.series.relays.iter().all(|relay| relay.carried_bps.len() == windows), "a relay's series is shorter"),
    ];
    match rules.iter().find(|(holds, _)| !holds) {
        None => Ok(()),
        Some((_, rule)) => Err(Fault::new(format!("results: {rule}"), format!("{totals:#?}"))),
    }
}

fn of_transfer(scenario: &Scenario, examined: &Examined) -> Result<(), Fault> {
    let totals = &examined.run.results.totals;
    let (delivered, sent) = (totals.delivered_bytes, totals.source_bytes);
    let detail = || format!("{delivered} of {sent} octets\n{}\n{totals:#?}", examined.run.faults.join("\n"));
    if let Some(failure) = examined.failure.as_ref().filter(|_| goals::must_last(scenario)) {
        return Err(Fault::new(format!("connection: {}", without_numbers(failure)), detail()));
    }
    if goals::must_complete(scenario) && !totals.completed {
        return Err(Fault::new("transfer: not complete in time", detail()));
    }
    if goals::must_begin(scenario) && delivered == 0 {
        return Err(Fault::new("transfer: nothing arrived", detail()));
    }
    Ok(())
}
