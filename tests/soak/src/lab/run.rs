//! Runs a scenario, with additional checks.

use lab::present::report;
use lab::run::{Examined, examine};
use lab::scenario::{LoadError, Scenario};

use super::storm::Watch;
use super::{judge, text};
use crate::outcome::{Fault, Numbers, Outcome, without_numbers};

/// One of this many cases continues until nothing remains of it: hours in the worst case.
const CLEARED_EVERY: u64 = 3;
/// One of this many cases runs twice.
const REPEATED_EVERY: u64 = 8;
/// One of this many cases gets a report.
const REPORTED_EVERY: u64 = 8;

/// Runs a case; with `list`, prints every segment.
pub fn run(case: &Scenario, list: bool) -> Outcome {
    match check(case, list) {
        Ok(numbers) => Outcome::Passed(numbers),
        Err(Stop::CutShort) => Outcome::CutShort,
        Err(Stop::Fault(fault)) => Outcome::Failed(fault),
    }
}

enum Stop {
    CutShort,
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn check(case: &Scenario, list: bool) -> Result<Numbers, Stop> {
    let scenario = as_read(case)?;
    let examined = examined(&scenario, list)?;
    judge::of(&scenario, &examined)?;
    let turn = |every: u64, which: u64| scenario.seed % every == which;
    if turn(REPEATED_EVERY, 1) {
        alike(&examined, &self::examined(&scenario, false)?)?;
    }
    if turn(REPORTED_EVERY, 2) {
        reported(&examined)?;
    }
    Ok(numbers(&scenario, &examined))
}

/// Returns the scenario as read from its file.
fn as_read(case: &Scenario) -> Result<Scenario, Fault> {
    let whole = text::whole(case);
    let scenario = text::read(&whole).map_err(|refused| refusal(&refused))?;
    match scenario == *case {
        true => Ok(scenario),
        false => Err(Fault::new("file: what is read is not what was written", format!("{scenario:#?}\n{case:#?}"))),
    }
}

fn refusal(refused: &LoadError) -> Fault {
    let problem = match refused {
        LoadError::Mistakes(mistakes) => mistakes.first().map(|first| format!("{}: {}", first.field, first.problem)),
        _ => None,
    };
    Fault::new(format!("refused: {}", without_numbers(&problem.unwrap_or_default())), refused.to_string())
}

fn examined(scenario: &Scenario, list: bool) -> Result<Examined, Stop> {
    let watch = Watch::new();
    let until_nothing_is_left = scenario.seed % CLEARED_EVERY == 0;
    let examined = examine(scenario, watch.supervisor(scenario, list), until_nothing_is_left);
    if let Some(storm) = watch.storm() {
        return Err(Stop::Fault(storm));
    }
    let examined = examined.map_err(|error| {
        let text = error.to_string();
        Fault::new(format!("refused to run: {}", without_numbers(&text)), text)
    })?;
    // If only the time after the run was cut short, the run itself can still be judged.
    if examined.halted { Err(Stop::CutShort) } else { Ok(examined) }
}

/// Checks that a run is a function of scenario and seed.
fn alike(one: &Examined, other: &Examined) -> Result<(), Fault> {
    let all = |examined: &Examined| {
        let results = examined.run.results.reproducible().to_json();
        (results, examined.run.faults.clone(), examined.left.clone(), examined.events, examined.ended_at)
    };
    let (one, other) = (all(one), all(other));
    match one == other {
        true => Ok(()),
        false => {
            Err(Fault::new("repetition: the same scenario comes out differently", format!("{one:#?}\n{other:#?}")))
        }
    }
}

/// Checks that the report of a run can be rendered.
fn reported(examined: &Examined) -> Result<(), Fault> {
    let page = report::render(&examined.run.results);
    for nonsense in ["NaN", ">inf<"] {
        if page.contains(nonsense) {
            return Err(Fault::new(format!("report: says {nonsense}"), String::new()));
        }
    }
    Ok(())
}

fn numbers(scenario: &Scenario, examined: &Examined) -> Numbers {
    Numbers {
        seconds: examined.ended_at.as_millis() / 1000,
        events: examined.events,
        received_bytes: examined.run.results.totals.delivered_bytes,
        connections: scenario.workload.connections.into(),
    }
}
