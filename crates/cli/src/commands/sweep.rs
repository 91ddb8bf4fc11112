//! `anabranch sweep`: many runs, on all cores.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use lab::present::report;
use lab::present::{Summary, csv, seeds_of};
use lab::run::sweep::{Journal, JournalError, Plan};
use lab::scenario::Override;
use lab::scenario::shell::{self, quote};

use crate::arguments::{self, Backend};
use crate::commands::notes::notes_on;
use crate::commands::{batch, builds, real_time, shipped};
use crate::console;
use crate::failure::Failure;

/// What to do with a journal that cannot be used, besides another folder.
const DISCARD: &str = "discard the file with sweep --restart";
/// Number of seeds to propose to somebody who has few.
const USUAL_SEEDS: u64 = 30;

/// Runs what is missing, then writes and prints the summary of all runs.
pub fn sweep(arguments: &arguments::Sweep) -> Result<(), Failure> {
    arguments.world.check().map_err(Failure::Input)?;
    if arguments.seeds.is_some() && arguments.overrides.iter().any(sets_seeds) {
        return Err(Failure::Input(
            "--seeds and --set sweep.seeds both set the seeds\n  help: leave one of them out".into(),
        ));
    }
    let found = shipped::find(&arguments.scenario).map_err(|error| Failure::Input(error.to_string()))?;
    let load = |overrides: &[_]| found.load(overrides);
    let mut plan =
        Plan::new(load, &arguments.overrides, arguments.seeds).map_err(|error| Failure::Input(error.to_string()))?;
    console::complain(&notes_on("", plan.cases.iter().map(|case| &case.scenario)))?;
    plan.world = arguments.world.words().trim().into();
    let out = arguments.out.clone().unwrap_or_else(|| folder(&plan));
    let mut journal =
        Journal::open(&out.join("runs.jsonl"), &plan, arguments.restart).map_err(|error| unusable(&error, DISCARD))?;
    builds::complain_of_others(&journal, "repeat all runs with --restart")?;
    console::complain(&what_else(&plan, &journal, &out))?;
    run_missing(&plan, &mut journal, arguments)?;
    // What was run before is part of the whole.
    let seeds: BTreeSet<u64> = plan.seeds.iter().copied().chain(journal.seeds(&plan)).collect();
    let records = journal.finish(&plan).map_err(|error| unusable(&error, DISCARD))?;
    plan.seeds = seeds.into_iter().collect();
    let summary = Summary::new(&plan, &records);
    let files = [
        ("summary.json", summary.to_json()),
        ("runs.csv", csv(&plan, &records)),
        ("report.html", report::render_sweep(&plan, &records)),
    ];
    for (name, content) in &files {
        atomic_file::write(&out.join(name), content.as_bytes())?;
    }
    match arguments.json {
        true => console::print(&summary.to_json())?,
        false => console::print(&format!("{}\n{}", summary.to_text(), what_next(&plan, arguments, &out, &summary)))?,
    }
    judge(&plan, &summary)
}

/// Returns whether a change sets the seeds, as `--seeds` does.
fn sets_seeds(change: &Override) -> bool {
    change.text.trim().starts_with("sweep.seeds")
}

/// Returns the failure for a journal: the named folder cannot hold it, unless the disk is full or fails. A file with other
/// contents needs the `remedy`, or another folder.
pub(super) fn unusable(error: &JournalError, remedy: &str) -> Failure {
    match error {
        JournalError::Busy { .. } => Failure::Failed(error.to_string()),
        JournalError::Io { source, .. } if !atomic_file::is_misplaced(source) => Failure::Failed(error.to_string()),
        JournalError::Io { .. } => Failure::Input(error.to_string()),
        JournalError::Other { .. } | JournalError::Damaged { .. } => {
            Failure::Input(format!("{error}\n  help: choose another --out, or {remedy}"))
        }
    }
}

/// Says which runs of the folder this sweep does not ask for; empty if there are none.
fn what_else(plan: &Plan, journal: &Journal, out: &Path) -> String {
    let mut text = String::new();
    let more: Vec<u64> = journal.seeds(plan).into_iter().filter(|seed| !plan.seeds.contains(seed)).collect();
    if !more.is_empty() {
        let _ = writeln!(text, "note: {} has {} finished already: shown, too", out.display(), seeds_of(&more));
    }
    let beyond = journal.beyond(plan);
    if beyond > 0 {
        let _ = writeln!(
            text,
            "note: {} has {beyond} runs of variants or points that this sweep does not have: kept, but not shown",
            out.display()
        );
    }
    text
}

/// Returns the folder: that of the scenario, and in it one for each world but the simulator. So it is no other
/// scenario's, whatever that is called.
fn folder(plan: &Plan) -> PathBuf {
    let words = plan.world.split_whitespace().map(|word| word.trim_start_matches('-'));
    let world = words.filter(|word| *word != "backend").collect::<Vec<_>>().join("-");
    let of_scenario = PathBuf::from("out").join(&plan.scenario.name);
    if world.is_empty() { of_scenario } else { of_scenario.join(world) }
}

/// Runs what is not in the journal, on the chosen backend.
fn run_missing(plan: &Plan, journal: &mut Journal, arguments: &arguments::Sweep) -> Result<(), Failure> {
    if arguments.world.backend == Backend::Linux {
        let (ends, jobs) = (arguments.world.ends(), arguments.jobs.unwrap_or(1));
        return real_time::complete(plan, journal, ends, jobs, "runs on Linux");
    }
    let workers = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    if arguments.world.backend == Backend::Ns3 {
        return batch::with_ns3(plan, journal, workers, "runs with ns-3");
    }
    batch::simulated(plan, journal, workers, "runs")
}

fn what_next(plan: &Plan, arguments: &arguments::Sweep, out: &Path, summary: &Summary) -> String {
    let files = [
        ("report.html", "the report, for a browser"),
        ("summary.json", "means, intervals and comparisons, for programs"),
        ("runs.csv", "every run, for spreadsheets"),
        ("runs.jsonl", "the same, one per line; a sweep continues from it"),
    ];
    let width = out.join("summary.json").display().to_string().len();
    let mut text = String::from("written:\n");
    for (name, what) in files {
        let _ = writeln!(text, "  {:<width$}  {what}", out.join(name).display().to_string());
    }
    let out =
        arguments.out.as_ref().map_or(String::new(), |out| format!(" --out {}", quote(&out.display().to_string())));
    // `--seeds` states the seeds, also those that `--set` chose.
    let kept = plan.overrides.iter().filter(|change| !sets_seeds(change));
    let overrides: Vec<String> = kept.map(|change| change.text.clone()).collect();
    let again = shell::scenario(&plan.scenario.file, None, &overrides) + &arguments.world.words();
    let first = plan.command(&plan.cases[0], plan.seeds[0]);
    text += "\nnext:\n";
    // More seeds add nothing to a case without randomness.
    if !summary.cases.iter().all(|case| case.identical) {
        let _ = writeln!(
            text,
            "  anabranch sweep {again} --seeds {}{out}    # narrower intervals; finished runs are kept",
            more_than(&plan.seeds)
        );
    }
    let _ = writeln!(text, "  {first} --out out/run    # one run in detail, with plots");
    text
}

/// Seeds to propose after `seeds`, which are sorted: from the same one on, at least twice as many.
fn more_than(seeds: &[u64]) -> String {
    let (first, count) = (seeds.first().copied().unwrap_or(1), seeds.len() as u64);
    format!("{first}..{}", first.saturating_add((2 * count).max(USUAL_SEEDS) - 1))
}

/// Fails the command if there were faults, and says how to repeat the first one.
fn judge(plan: &Plan, summary: &Summary) -> Result<(), Failure> {
    let Some(first) = summary.faulty.first() else { return Ok(()) };
    let mut text = format!("{} runs had faults; the first: {}", summary.faulty.len(), first.fault);
    if let Some(case) = plan.cases.iter().find(|case| case.variant == first.variant && case.point == first.point) {
        let _ = write!(text, "\n  help: {}", plan.command(case, first.seed));
    }
    Err(Failure::Failed(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another scenario may be called as one and its world together.
    #[test]
    fn scenarios_and_worlds_have_folders_of_their_own() {
        let place = |name: &str, world: &str| {
            let text = format!(
                "name = \"{name}\"\nduration = \"1 s\"\nworkload = {{ kind = \"bulk\" }}\n[[relays]]\n\
                 cellular = {{ rate = \"1 Mbit/s\", delay = \"5 ms\" }}\n"
            );
            let load = |overrides: &[_]| lab::scenario::load("x.toml", &text, overrides);
            folder(&Plan { world: world.into(), ..Plan::new(load, &[], None).unwrap() })
        };
        assert_eq!(place("demo", ""), Path::new("out/demo"));
        assert_eq!(place("demo", "--backend linux --source engine"), Path::new("out/demo/linux-source-engine"));
        assert_ne!(place("demo-linux", ""), place("demo", "--backend linux"));
        assert_ne!(place("linux", ""), place("demo", "--backend linux"));
    }

    #[test]
    fn more_seeds_are_proposed_than_there_are() {
        let seeds = |first: u64, last: u64| (first..=last).collect::<Vec<_>>();
        assert_eq!(more_than(&seeds(1, 3)), "1..30");
        assert_eq!(more_than(&seeds(1, 30)), "1..60");
        assert_eq!(more_than(&seeds(1, 100)), "1..200");
        assert_eq!(more_than(&seeds(101, 120)), "101..140");
        assert_eq!(more_than(&[7, 900]), "7..36");
    }
}
