//! The runs that claims need, from a journal or executed now.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lab::present::claims::conditions::Condition;
use lab::present::claims::{Mode, Needs, as_printed};
use lab::run::sweep::{self, Journal, Manifest, Plan, Record};
use lab::scenario::{Override, Scenario, Seeds};
use testbed::Ends;

use crate::arguments;
use crate::commands::sweep::unusable;
use crate::commands::{batch, builds, real_time, shipped};
use crate::failure::Failure;

/// Returns the runs of `needs` under `condition`, with `seeds`.
pub(super) fn plan(
    needs: Needs,
    condition: &Condition,
    seeds: RangeInclusive<u64>,
    mode: Mode,
) -> Result<Plan, Failure> {
    let overrides: Result<Vec<Override>, _> = needs.set.iter().map(|text| text.parse()).collect();
    let overrides = overrides.map_err(|error| Failure::Input(format!("{}: {error}", needs.scenario)))?;
    let load = |overrides: &[Override]| shipped::load(Path::new(needs.scenario), overrides);
    let seeds = format!("{}..{}", seeds.start(), seeds.end());
    let seeds: Seeds = seeds.parse().map_err(|error| Failure::Input(format!("--seeds: {error}")))?;
    // A setting that does not parse is a mistake in the list of conditions; a test finds it.
    let besides = |scenario: &Scenario| condition.overrides(scenario).unwrap_or_default();
    let plan = Plan::under(load, &overrides, Some(seeds), besides);
    let mut plan = plan.map_err(|error| Failure::Input(format!("under {}: {error}", condition.name)))?;
    if mode == Mode::Paper {
        plan.cases.iter_mut().for_each(|case| as_printed(&mut case.scenario));
    }
    Ok(plan)
}

/// Returns the records of `plan`, and runs what is missing. Shows `what` beside the progress.
pub(super) fn run(plan: &Plan, arguments: &arguments::Claims, what: &str) -> Result<Vec<Record>, Failure> {
    let workers = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    records(plan, arguments, "", |journal| batch::simulated(plan, journal, workers, what))
}

/// Does the same as [`run`], in real time with the kernel at both ends.
pub(super) fn run_on_linux(plan: &Plan, arguments: &arguments::Claims, what: &str) -> Result<Vec<Record>, Failure> {
    let jobs = arguments.jobs.unwrap_or(1);
    records(plan, arguments, "linux-", |journal| real_time::complete(plan, journal, Ends::KERNELS, jobs, what))
}

/// Does the same as [`run`], with the radio of ns-3.
pub(super) fn run_with_ns3(plan: &Plan, arguments: &arguments::Claims, what: &str) -> Result<Vec<Record>, Failure> {
    let jobs = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    records(plan, arguments, "ns3-", |journal| batch::with_ns3(plan, journal, jobs, what))
}

/// Returns the records of `plan` after `complete` has added missing runs to the journal. `world` is a part of the
/// journal's name.
fn records(
    plan: &Plan,
    arguments: &arguments::Claims,
    world: &str,
    complete: impl FnOnce(&mut Journal) -> Result<(), Failure>,
) -> Result<Vec<Record>, Failure> {
    let manifest = Manifest::new(plan);
    // Runs with other settings have a journal of their own.
    let path = arguments.out.join(format!("{}-{world}{}.jsonl", plan.scenario.name, &manifest.content[..12]));
    let mut journal = Journal::open(&path, plan, false).map_err(|error| unusable(&error, "remove the file"))?;
    // Warn only once: there may be hundreds of journals.
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.load(Ordering::Relaxed) {
        let remedy = format!("repeat all runs with an --out other than {}", arguments.out.display());
        TOLD.store(builds::complain_of_others(&journal, &remedy)?, Ordering::Relaxed);
    }
    complete(&mut journal)?;
    // The order of the plan, not of completion: then sums of the same numbers are the same.
    Ok(sweep::sorted(plan, journal.records()).into_iter().cloned().collect())
}
