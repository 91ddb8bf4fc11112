//! `anabranch sweep`: many runs, on all cores.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use lab::output::write_atomically;
use lab::report;
use lab::sweep::{Journal, Manifest, Plan, Summary, csv};

use crate::arguments;
use crate::commands::shipped;
use crate::console::{self, RunsBar};
use crate::failure::Failure;

/// Runs what is missing, then writes and prints what all runs come to.
pub fn sweep(arguments: &arguments::Sweep) -> Result<(), Failure> {
    let load = |overrides: &[_]| shipped::load(&arguments.scenario, overrides);
    let plan =
        Plan::new(load, &arguments.overrides, arguments.seeds).map_err(|error| Failure::Input(error.to_string()))?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("out").join(&plan.scenario.name));
    let mut journal = Journal::open(&out.join("runs.jsonl"), &Manifest::new(&plan), arguments.restart)
        .map_err(|error| Failure::Input(error.to_string()))?;
    let workers = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let bar = RunsBar::new("runs");
    let ran = lab::sweep::run(&plan, &mut journal, workers, &mut |progress| bar.show(progress));
    drop(bar);
    ran.map_err(|error| Failure::Failed(error.to_string()))?;
    let summary = Summary::new(&plan, journal.records());
    let records = journal.records();
    let files = [
        ("summary.json", summary.to_json()),
        ("runs.csv", csv(&plan, records)),
        ("report.html", report::render_sweep(&plan, records)),
    ];
    for (name, content) in &files {
        write_atomically(&out.join(name), content.as_bytes())?;
    }
    match arguments.json {
        true => console::print(&summary.to_json())?,
        false => console::print(&format!("{}\n{}", summary.to_text(), what_next(arguments, &out)))?,
    }
    judge(arguments, &summary)
}

fn what_next(arguments: &arguments::Sweep, out: &Path) -> String {
    let files = [
        ("report.html", "the report, for a browser"),
        ("summary.json", "means, intervals and comparisons, for programs"),
        ("runs.csv", "every run, for spreadsheets"),
        ("runs.jsonl", "the same, a line each; a sweep goes on from it"),
    ];
    let width = out.join("summary.json").display().to_string().len();
    let mut text = String::from("written:\n");
    for (name, what) in files {
        let _ = writeln!(text, "  {:<width$}  {what}", out.join(name).display().to_string());
    }
    let file = arguments.scenario.display();
    let _ = write!(
        text,
        "\nnext:\n  anabranch sweep {file} --seeds 1..30{}    # narrower intervals; finished runs are kept\n  \
         anabranch run {file} --out out/run    # one run as it went, with plots\n",
        arguments.out.as_ref().map_or(String::new(), |out| format!(" --out {}", out.display()))
    );
    text
}

/// Faults fail the command, which says how to see the first one again.
fn judge(arguments: &arguments::Sweep, summary: &Summary) -> Result<(), Failure> {
    let Some(first) = summary.faulty.first() else { return Ok(()) };
    let mut text = format!("{} runs had faults; the first: {}", summary.faulty.len(), first.fault);
    let _ = write!(text, "\n  help: anabranch run {} --variant '{}'", arguments.scenario.display(), first.variant);
    for (path, value) in &first.point {
        let _ = write!(text, " --set '{path}={value}'");
    }
    let _ = write!(text, " --seed {}", first.seed);
    Err(Failure::Failed(text))
}
