//! `anabranch run`: a scenario in the simulator.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use lab::output::write_atomically;
use lab::report;
use lab::results::{Results, summary};
use lab::run::Run;
use lab::scenario::{Override, Scenario};

use super::shipped;
use crate::arguments;
use crate::console::{self, Bar, LiveView};
use crate::failure::Failure;

/// Runs the scenario, prints and writes what was asked for.
pub fn run(arguments: &arguments::Run) -> Result<(), Failure> {
    let mut scenario = load(arguments)?;
    scenario.seed = arguments.seed.unwrap_or(scenario.seed);
    let run = match arguments.live {
        true => watch(&scenario, arguments.pcap.as_deref())?,
        false => simulate(&scenario, arguments.pcap.as_deref())?,
    };
    let mut written = run.captures.clone();
    if let Some(out) = &arguments.out {
        written.extend(write_files(&run.results, out)?);
    }
    if arguments.json {
        console::print(&run.results.to_json())?;
    } else {
        console::print(&format!("{}\n{}", summary(&run.results), what_next(arguments, &run.results, &written)))?;
    }
    judge(&run)
}

/// The scenario with the variant that was asked for, and what the command line says of both.
fn load(arguments: &arguments::Run) -> Result<Scenario, Failure> {
    let scenario = shipped::load(&arguments.scenario, &arguments.overrides)?;
    let Some(name) = &arguments.variant else { return Ok(scenario) };
    let Some(variant) = scenario.variants.iter().find(|variant| variant.name == *name) else {
        let known: Vec<&str> = scenario.variants.iter().map(|variant| variant.name.as_str()).collect();
        let help = match known.is_empty() {
            true => "the scenario has no variants: leave --variant out".into(),
            false => format!("known: {}", known.join(", ")),
        };
        return Err(Failure::Input(format!("--variant {name}: there is none of that name\n  help: {help}")));
    };
    let fields = variant.set.iter().map(|(path, value)| Override::new(path, value.clone()));
    let mut overrides: Vec<Override> = fields.collect::<Result<_, _>>().map_err(Failure::Input)?;
    overrides.extend(arguments.overrides.iter().cloned());
    Ok(shipped::load(&arguments.scenario, &overrides)?)
}

/// Runs `scenario` with a progress bar.
pub fn simulate(scenario: &Scenario, pcap: Option<&Path>) -> Result<Run, Failure> {
    let bar = Bar::new("s simulated");
    Ok(lab::run::run(scenario, pcap, &mut |progress| bar.show(progress))?)
}

/// Runs `scenario` and shows what it measures.
fn watch(scenario: &Scenario, pcap: Option<&Path>) -> Result<Run, Failure> {
    let view = LiveView::new();
    Ok(lab::run::run(scenario, pcap, &mut |progress| view.show(progress))?)
}

/// Writes results and report to `directory`; gives their paths.
pub fn write_files(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let files = [("results.json", results.reproducible().to_json()), ("report.html", report::render(results))];
    let mut written = Vec::new();
    for (name, content) in files {
        let path = directory.join(name);
        write_atomically(&path, content.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// The names of files that were written, one a line.
pub fn list(written: &[PathBuf]) -> String {
    let width = written.iter().map(|path| path.display().to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    for path in written {
        let what = match path.extension().and_then(|extension| extension.to_str()) {
            Some("html") => "the report, for a browser",
            Some("pcapng") => "a capture, for Wireshark",
            _ => "the results, for programs",
        };
        let _ = writeln!(text, "  {:<width$}  {what}", path.display().to_string());
    }
    text
}

fn what_next(arguments: &arguments::Run, results: &Results, written: &[PathBuf]) -> String {
    let mut text = String::new();
    if !written.is_empty() {
        let _ = write!(text, "written:\n{}\n", list(written));
    }
    let file = arguments.scenario.display();
    text.push_str("next:\n");
    if arguments.out.is_none() {
        let _ = writeln!(text, "  anabranch run {file} --out out    # a report with plots");
    }
    let _ = writeln!(text, "  anabranch run {file} --seed {}", results.manifest.seed.wrapping_add(1));
    let _ = writeln!(text, "  anabranch run {file} --set connection.scheduler=round-robin");
    text
}

/// A run that broke a rule or did not deliver fails the command.
pub fn judge(run: &Run) -> Result<(), Failure> {
    if run.faults.is_empty() { Ok(()) } else { Err(Failure::Failed(run.faults.join("\nerror: "))) }
}
