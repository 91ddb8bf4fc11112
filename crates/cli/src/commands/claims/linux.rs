//! Claims in real time: the kernel at both ends of emulated paths, with the controllers of `bpf/` in it.

use std::collections::btree_map::Entry;
use std::fmt::Write;
use std::ops::RangeInclusive;

use lab::present::claims::conditions::CONDITIONS;
use lab::present::claims::{Claim, Mode, Needs, Outcome, Runs, evaluate, needs, to_json, to_text};
use lab::run::sweep::Plan;
use lab::scenario::{Link, Scenario, TextOr};
use testbed::{Ends, Held};
use units::text::Text;

use super::{complain_of_gaps, runs};
use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// The paper that has a test bed, as claims name their source.
const PAPER: &str = "mVeno";

/// Runs what `chosen` need, or the mVeno paper's claims if nothing was asked for by number, and prints what comes of it.
pub(super) fn claims(chosen: &[&'static Claim], arguments: &arguments::Claims, mode: Mode) -> Result<(), Failure> {
    testbed::rehearse(Ends::KERNELS)?;
    kernel_cc::check()?;
    let is_asked = |claim: &&&Claim| !arguments.ids.is_empty() || claim.source.starts_with(PAPER);
    let seeds = 1..=arguments.seeds();
    let (mut judged, mut left_out) = (Vec::new(), String::new());
    for claim in chosen.iter().filter(is_asked) {
        match obstacle(claim, &seeds, mode)? {
            None => judged.push(*claim),
            Some(why) => drop(writeln!(left_out, "{} is not judged on Linux: {why}", claim.id)),
        }
    }
    if judged.is_empty() {
        return Err(Failure::Input(left_out.trim_end().replace('\n', "\nerror: ")));
    }
    console::complain(&left_out)?;
    let runs = all_runs(&judged, arguments, &seeds, mode)?;
    let outcomes: Vec<Outcome> = judged.iter().map(|claim| evaluate(claim, &runs, mode)).collect();
    match arguments.json {
        true => console::print(&to_json(&outcomes))?,
        false => console::print(&format!("{}\n{}", to_text(&outcomes), what_next(arguments)))?,
    }
    complain_of_gaps(&outcomes)
}

/// Why a claim cannot be judged here; `None` if it can.
fn obstacle(claim: &Claim, seeds: &RangeInclusive<u64>, mode: Mode) -> Result<Option<String>, Failure> {
    let needs = needs(claim);
    if needs.is_empty() {
        return Ok(Some("it is computed, and has nothing to run".into()));
    }
    for needs in needs {
        let plan = runs::plan(needs, &CONDITIONS[0], seeds.clone(), mode)?;
        let refused = plan.cases.iter().find_map(|case| testbed::check(&case.scenario, Ends::KERNELS).err());
        if let Some(error) = refused {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            return Ok(Some(format!("{}: {first}", needs.scenario)));
        }
    }
    Ok(None)
}

/// The runs of all that `judged` need. Controllers stay in the kernel from the first run to the last.
fn all_runs(
    judged: &[&'static Claim],
    arguments: &arguments::Claims,
    seeds: &RangeInclusive<u64>,
    mode: Mode,
) -> Result<Runs, Failure> {
    let mut plans: Vec<(Needs, Plan)> = Vec::new();
    for needs in judged.iter().flat_map(|claim| needs(claim)) {
        if plans.iter().all(|(known, _)| *known != needs) {
            plans.push((needs, runs::plan(needs, &CONDITIONS[0], seeds.clone(), mode)?));
        }
    }
    console::complain(&how_long(&plans, arguments.jobs.unwrap_or(1)))?;
    let cases = plans.iter().flat_map(|(_, plan)| &plan.cases);
    let _held: Vec<Held> = cases.map(|case| Held::of(&case.scenario)).collect::<Result<_, _>>()?;
    let mut all = Runs::new();
    for (needs, plan) in &plans {
        if let Entry::Vacant(missing) = all.entry(*needs) {
            let what = format!("runs of {} on Linux", needs.scenario);
            missing.insert(runs::run_on_linux(plan, arguments, &what)?);
        }
    }
    Ok(all)
}

/// How long all runs take at least: as long as their links would, if they were never idle.
fn how_long(plans: &[(Needs, Plan)], jobs: usize) -> String {
    let runs: usize = plans.iter().map(|(_, plan)| plan.cases.len() * plan.seeds.len()).sum();
    let of_plan = |plan: &Plan| -> f64 {
        let once: f64 = plan.cases.iter().map(|case| least_s(&case.scenario)).sum();
        once * plan.seeds.len() as f64
    };
    let minutes = plans.iter().map(|(_, plan)| of_plan(plan)).sum::<f64>() / 60.0 / jobs as f64;
    format!(
        "{runs} runs in real time, {jobs} at a time: {minutes:.0} minutes if no link were ever idle, and with losses two or three times \
         that; what is finished is kept, and the same command goes on from it\n"
    )
}

/// The workload over all that the links carry; the duration, if that is less.
fn least_s(scenario: &Scenario) -> f64 {
    let link_bps = |link: &Link| match &link.rate {
        TextOr::Text(rate) => rate.as_bps() as f64,
        TextOr::Table(model) => model.mean.map_or(f64::INFINITY, |Text(mean)| mean.as_bps() as f64),
    };
    let paths_bps: f64 = scenario.relays.iter().filter_map(|relay| relay.cellular.as_ref()).map(link_bps).sum();
    let all_bps = scenario.bottleneck.as_ref().map_or(paths_bps, |link| paths_bps.min(link_bps(link)));
    let size_bytes = scenario.workload.size.map_or(0, |size| size.0.0) as f64;
    let bits = 8.0 * size_bytes * f64::from(scenario.workload.connections);
    (bits / all_bps.max(1.0)).min(scenario.duration.as_secs_f64())
}

fn what_next(arguments: &arguments::Claims) -> String {
    format!(
        "{} seeds, the kernel at both ends. Finished runs are in {}.\n\nnext:\n  anabranch claims --backend linux --ids C50 --seeds 5    # \
         narrower intervals\n  anabranch run mveno-5 --variant mVeno --backend linux --destination kernel    # one of the runs",
        arguments.seeds(),
        arguments.out.display(),
    )
}
