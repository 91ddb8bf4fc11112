//! The runs that claims need, from a journal or executed now.

use std::iter;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lab::present::claims::conditions::Condition;
use lab::present::claims::{Mode, Needs, as_printed};
use lab::run::sweep::{self, Journal, Manifest, Plan, Record};
use lab::scenario::{Override, Scenario, Seeds};
use testbed::Ends;

use crate::arguments::{self, Backend, StackKind, World};
use crate::commands::sweep::unusable;
use crate::commands::{batch, builds, real_time, shipped};
use crate::failure::Failure;

/// Where runs are made: the simulator, the kernel at both ends, the radio of ns-3.
const SIMULATOR: World = World { backend: Backend::Simulator, source: None, destination: None };
const LINUX: World = World { backend: Backend::Linux, source: None, destination: Some(StackKind::Kernel) };
const NS3: World = World { backend: Backend::Ns3, source: None, destination: None };

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
        let cases = plan.cases.iter_mut().map(|case| &mut case.scenario);
        iter::once(&mut plan.scenario).chain(cases).for_each(as_printed);
    }
    plan.state_variants();
    Ok(plan)
}

/// Returns the records of `plan`, and runs what is missing. Shows `what` beside the progress.
pub(super) fn run(plan: &Plan, arguments: &arguments::Claims, what: &str) -> Result<Vec<Record>, Failure> {
    let workers = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    records(plan, arguments, SIMULATOR, |journal| batch::simulated(plan, journal, workers, what))
}

/// Does the same as [`run`], in real time with the kernel at both ends.
pub(super) fn run_on_linux(plan: &Plan, arguments: &arguments::Claims, what: &str) -> Result<Vec<Record>, Failure> {
    let jobs = arguments.jobs.unwrap_or(1);
    records(plan, arguments, LINUX, |journal| real_time::complete(plan, journal, Ends::KERNELS, jobs, what))
}

/// Does the same as [`run`], with the radio of ns-3.
pub(super) fn run_with_ns3(plan: &Plan, arguments: &arguments::Claims, what: &str) -> Result<Vec<Record>, Failure> {
    let jobs = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    records(plan, arguments, NS3, |journal| batch::with_ns3(plan, journal, jobs, what))
}

/// Returns the records of `plan` in `world` after `complete` has added missing runs to the journal.
fn records(
    plan: &Plan,
    arguments: &arguments::Claims,
    world: World,
    complete: impl FnOnce(&mut Journal) -> Result<(), Failure>,
) -> Result<Vec<Record>, Failure> {
    let plan = &Plan { world: world.words().trim().into(), ..plan.clone() };
    let manifest = Manifest::new(plan);
    let elsewhere = match world.backend {
        Backend::Simulator => "",
        Backend::Linux => "linux-",
        Backend::Ns3 => "ns3-",
    };
    // Runs with other settings have a journal of their own.
    let path = arguments.out.join(format!("{}-{elsewhere}{}.jsonl", plan.scenario.name, &manifest.content[..12]));
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use lab::present::claims::conditions::CONDITIONS;
    use lab::present::claims::users;
    use lab::present::{Contrast, Side};

    use super::*;
    use crate::arguments::{Arguments, Command};

    /// What `compare` says of a made-up run of `variant` in each of two journals, by another build if `is_of_another`.
    fn compared_of(variant: &str, is_of_another: bool, [a, b]: [(&str, Mode, World); 2]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let needs = users::needs()[0];
        let side = |name: &str, (condition, mode, world): (&str, Mode, World)| {
            let out = directory.path().join(name);
            let words = ["anabranch", "claims", "--out", out.to_str().unwrap()];
            let Command::Claims(arguments) = Arguments::parse_from(words).command else { panic!("{words:?}") };
            let condition = CONDITIONS.iter().find(|other| other.name == condition).unwrap();
            let plan = plan(needs, condition, 1..=1, mode).unwrap();
            let case = plan.cases.iter().find(|case| case.variant == variant).unwrap();
            let mut record = Record::failed(case, 1, String::new());
            if is_of_another {
                record.build = "another".into();
            }
            let add = |journal: &mut Journal| journal.add(record).map_err(|error| unusable(&error, ""));
            records(&plan, &arguments, world, add).unwrap();
            let journal = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
            Side::read(&journal).unwrap()
        };
        Contrast::new(side("a", a), side("b", b)).to_text()
    }

    /// The same of a variant that sets nothing.
    fn compared(a: (&str, Mode, World), b: (&str, Mode, World)) -> String {
        compared_of("SSRS", false, [a, b])
    }

    #[test]
    fn journals_state_the_condition_the_mode_and_the_backend() {
        let shipped = ("shipped", Mode::Build, SIMULATOR);
        for (other, said) in [
            (("no-sack", Mode::Build, SIMULATOR), "connection.sack: true in A, false in B"),
            (("train", Mode::Build, SIMULATOR), "they differ in"),
            (("shipped", Mode::Paper, SIMULATOR), "cooperation.selection.mode: build in A, paper in B"),
            (("shipped", Mode::Build, LINUX), "backend: simulator in A, --backend linux --destination kernel in B"),
            (("shipped", Mode::Build, NS3), "backend: simulator in A, --backend ns3 in B"),
        ] {
            let text = compared(shipped, other);
            assert!(text.contains(said) && !text.contains("the same settings"), "{text}");
        }
        assert!(compared(shipped, shipped).contains("the same scenario, with the same settings"));
    }

    #[test]
    fn journals_state_what_a_condition_or_the_mode_sets_in_a_variant_only() {
        let [shipped, early, short] =
            ["shipped", "early-binding", "short-units"].map(|condition| (condition, Mode::Build, SIMULATOR));
        for is_of_another in [false, true] {
            // A condition that leaves a variant alone.
            let text = compared_of("rec", is_of_another, [shipped, early]);
            assert!(text.contains("the same scenario, with the same settings"), "{text}");
            // A setting that does not apply to the scenario as written.
            let text = compared_of("DPF", is_of_another, [shipped, short]);
            let wanted = "cooperation.forwarding.range_packets of the variant \"DPF\": not set in A, 100 in B";
            assert!(text.contains(wanted) && !text.contains("not known"), "{text}");
        }
        // A controller as the papers print it.
        let text = compared_of("MCC-Coop", false, [shipped, ("shipped", Mode::Paper, SIMULATOR)]);
        assert!(!text.contains("not known"), "{text}");
    }
}
