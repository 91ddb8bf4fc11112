//! Claims in real time: the kernel at both ends of emulated paths, with the controllers of `bpf/` in it.

use std::ops::RangeInclusive;

use lab::present::claims::conditions::CONDITIONS;
use lab::present::claims::{Claim, Mode, Needs, Runs, needs};
use lab::run::sweep::Plan;
use lab::scenario::Scenario;
use testbed::{Ends, Held};

use super::{judged, next, runs, show};
use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// The source, as claims name it, of the paper that has a test bed.
const PAPER: &str = "mVeno";
/// Name of the field for the duration of a run in its record.
const DURATION: &str = "duration_s";
/// Additional time of a run, for setting up its world and closing connections.
const AROUND_S: f64 = 3.0;

/// Runs what `chosen` need and prints the results. If no claim was chosen by number, runs the mVeno paper's claims.
pub(super) fn claims(chosen: &[&'static Claim], arguments: &arguments::Claims, mode: Mode) -> Result<(), Failure> {
    let seeds = 1..=arguments.seeds();
    let judged = judged(chosen, arguments, &seeds, mode)?;
    let runs = all_runs(&judged, arguments, &seeds, mode)?;
    show(&judged, &runs, arguments, mode, &next::of_linux(&judged, arguments))
}

/// Returns the claims that can be judged here; names the others, each with the reason.
fn judged(
    chosen: &[&'static Claim],
    arguments: &arguments::Claims,
    seeds: &RangeInclusive<u64>,
    mode: Mode,
) -> Result<Vec<&'static Claim>, Failure> {
    let is_asked = |claim: &&&Claim| !arguments.ids.is_empty() || claim.source.starts_with(PAPER);
    let asked: Vec<&'static Claim> = chosen.iter().filter(is_asked).copied().collect();
    if asked.iter().any(|claim| !needs(claim).is_empty()) {
        testbed::rehearse(Ends::KERNELS)?;
        kernel_cc::check()?;
    }
    let check = |scenario: &Scenario| testbed::check(scenario, Ends::KERNELS);
    let obstacle = |claim: &Claim| judged::obstacle(claim, &CONDITIONS[0], seeds, mode, check);
    let (judged, left_out) = judged::judged(&asked, "on Linux", &obstacle)?;
    left_out.iter().try_for_each(|line| console::complain(&format!("{line}\n")))?;
    Ok(judged)
}

/// Runs everything that `judged` need. Controllers stay in the kernel from the first run to the last.
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
    console::complain(&how_long(&plans, arguments, mode)?)?;
    let cases = plans.iter().flat_map(|(_, plan)| &plan.cases);
    let _held: Vec<Held> = cases.map(|case| Held::of(&case.scenario)).collect::<Result<_, _>>()?;
    let run = |(needs, plan): &(Needs, Plan)| {
        let what = format!("runs of {} on Linux", needs.scenario);
        Ok((*needs, runs::run_on_linux(plan, arguments, &what)?))
    };
    plans.iter().map(run).collect()
}

/// Estimates the duration of all runs from the simulator: the runs of one seed are simulated first, unless they are
/// kept from before.
fn how_long(plans: &[(Needs, Plan)], arguments: &arguments::Claims, mode: Mode) -> Result<String, Failure> {
    let (mut count, mut seconds, jobs) = (0, 0.0, arguments.jobs.unwrap_or(1));
    for (needs, plan) in plans {
        let simulated = runs::plan(*needs, &CONDITIONS[0], 1..=1, mode)?;
        let records = runs::run(&simulated, arguments, &format!("runs of {} in the simulator", needs.scenario))?;
        let once: f64 = records.iter().filter_map(|record| record.values.get(DURATION)).map(|s| s + AROUND_S).sum();
        seconds += once * plan.seeds.len() as f64;
        count += plan.cases.len() * plan.seeds.len();
    }
    Ok(format!(
        "{count} runs in real time, {jobs} at a time: about {:.0} minutes in total; finished runs are kept, and the \
         same command continues from there\n",
        (seconds / 60.0 / jobs as f64).ceil()
    ))
}
