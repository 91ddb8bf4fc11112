//! `anabranch run`: a scenario in the simulator, or on real Linux.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use lab::measure::results::Results;
use lab::present::report;
use lab::present::summary;
use lab::run::sweep::choose;
use lab::run::{Progress, Recordings, Run, RunError};
use lab::scenario::shell;
use lab::scenario::{Override, Scenario, WorkloadKind};

use super::notes::notes_on;
use super::shipped::{self, Found};
use crate::arguments::{self, Backend};
use crate::console::{self, Bar, LiveView};
use crate::failure::Failure;
use crate::interruptible::Interruptible;

/// Fraction of a run in real time during which the machine may be late without a warning.
const BEHIND_RATIO_MAX: f64 = 0.02;
/// The scheduler to propose for another run.
const OTHER_SCHEDULER: &str = "round-robin";
/// Maximum number of variants named before a run.
const NAMED_MAX: usize = 8;

/// Runs the scenario, prints the results and writes the requested files.
pub fn run(arguments: &arguments::Run) -> Result<(), Failure> {
    let begun = wall_clock();
    arguments.world.check().map_err(Failure::Input)?;
    let (found, mut scenario) = load(arguments)?;
    scenario.seed = arguments.seed.unwrap_or(scenario.seed);
    let note = what_else(&scenario);
    if arguments.json {
        console::complain(&note)?;
    }
    if let Some(out) = &arguments.out {
        atomic_file::rehearse(out)?;
    }
    console::complain(&notes_on("", [&scenario]))?;
    let mut run = play(arguments, &scenario)?;
    let notes: String = run.notes.iter().map(|note| format!("note: {note}\n")).collect();
    let warnings = how_late(&run.results) + &what_was_reset(&run.results) + &notes;
    if !warnings.is_empty() {
        console::complain(&warnings)?;
    }
    let mut written = run.recordings.clone();
    match arguments.out.as_deref().map_or(Ok(Vec::new()), |out| write_files(&run.results, out)) {
        Ok(files) => written.extend(files),
        // The results that exist are shown despite the failure.
        Err(failure) => run.faults.extend(failure.parts().1.map(str::to_owned)),
    }
    // The time that the user waited, not that of the simulation alone.
    run.results.totals.wall_s = run.results.totals.wall_s.map(|_| begun.elapsed().as_secs_f64());
    if arguments.json {
        console::print(&run.results.to_json())?;
    } else {
        let scheduler = another_scheduler(&found, arguments, &scenario);
        let next = what_next(arguments, &run.results, &written, scheduler.as_deref());
        console::print(&format!("{note}{}\n{next}", summary(&run.results)))?;
    }
    judge(&run)
}

#[expect(clippy::disallowed_methods, reason = "people are told how long they waited; nothing else depends on it")]
fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// Finds the scenario, and loads it with the chosen variant and the changes of the command line.
fn load(arguments: &arguments::Run) -> Result<(Found, Scenario), Failure> {
    if arguments.seed.is_some() && arguments.overrides.iter().any(|change| change.is_of("seed")) {
        return Err(Failure::Input("--seed and --set seed both set the seed\n  help: leave one of them out".into()));
    }
    let found = shipped::find(&arguments.scenario).map_err(|error| Failure::Input(error.to_string()))?;
    let load = |overrides: &[_]| found.load(overrides);
    let scenario = choose(load, arguments.variant.as_deref(), &arguments.overrides)
        .map_err(|error| Failure::Input(error.to_string()))?;
    Ok((found, scenario))
}

/// A change of the scheduler to try next; `None` if the scenario has that one already or refuses the change, as it does
/// if the variant sets the scheduler, or if the user has chosen one.
fn another_scheduler(found: &Found, arguments: &arguments::Run, scenario: &Scenario) -> Option<String> {
    // Without data there is nothing to schedule.
    if scenario.workload.kind == WorkloadKind::None {
        return None;
    }
    // The kernel as the source has only one scheduler.
    if arguments.world.backend != Backend::Simulator || scenario.connection.scheduler == OTHER_SCHEDULER {
        return None;
    }
    let change: Override = format!("connection.scheduler={OTHER_SCHEDULER}").parse().ok()?;
    if arguments.overrides.iter().any(|chosen| chosen.decides(&change)) {
        return None;
    }
    let overrides = [arguments.overrides.as_slice(), std::slice::from_ref(&change)].concat();
    choose(|overrides| found.load(overrides), arguments.variant.as_deref(), &overrides).ok()?;
    Some(change.text)
}

/// Names the scenario's other variants; empty if there are none.
fn what_else(scenario: &Scenario) -> String {
    let names: Vec<String> = scenario.variants.iter().map(|variant| format!("\"{}\"", variant.name)).collect();
    if names.is_empty() || scenario.variant.is_some() {
        return String::new();
    }
    let more = if names.len() > NAMED_MAX { ", ..." } else { "" };
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    format!("this is the scenario as written; --variant NAME runs one of its variants: {named}{more}\n")
}

/// Warns if the machine could not keep up with a run in real time; empty if it could.
fn how_late(results: &Results) -> String {
    match results.totals.lateness {
        Some(late) if late.behind_ratio > BEHIND_RATIO_MAX => format!(
            "warning: this machine was more than 1 ms late for {:.0} % of the run, by up to {:.0} ms: the results \
             depend on the machine, too\n  help: reduce the machine's other load, or the rates or the number of \
             relays in the scenario\n",
            late.behind_ratio * 100.0,
            late.max_s * 1000.0
        ),
        _ => String::new(),
    }
}

/// Warns about subflows that the kernel reset before any data; empty if there are none.
fn what_was_reset(results: &Results) -> String {
    match results.totals.subflows_reset {
        Some(reset @ 1..) => format!(
            "warning: the kernel at the destination reset {reset} subflow{} before any data arrived over {}, as it \
             does when the first data after a join are lost\n  help: run it again, or compare several seeds \
             (docs/linux.md, \"Joins that die\")\n",
            if reset == 1 { "" } else { "s" },
            if reset == 1 { "it" } else { "them" },
        ),
        _ => String::new(),
    }
}

/// Runs `scenario` on the chosen backend, and shows the progress.
fn play(arguments: &arguments::Run, scenario: &Scenario) -> Result<Run, Failure> {
    let recordings = Recordings { pcap: arguments.pcap.as_deref(), qlog: arguments.qlog.as_deref() };
    let go = |progress: &mut dyn FnMut(Progress<'_>)| match arguments.world.backend {
        Backend::Simulator => match Interruptible::new() {
            Ok(mut backend) => lab::run::run_on(&mut backend, scenario, recordings, progress),
            Err(error) => Err(RunError::Backend(Box::new(error))),
        },
        Backend::Linux => testbed::run(scenario, arguments.world.ends(), recordings, progress),
        Backend::Ns3 => ns3_radio::run(scenario, recordings, progress),
    };
    let seconds = if arguments.world.backend == Backend::Linux { "s" } else { "s simulated" };
    let run = if arguments.live {
        let view = LiveView::new(seconds);
        go(&mut |progress| view.show(progress))
    } else {
        let bar = Bar::new(seconds);
        go(&mut |progress| bar.show(progress))
    };
    let mut run = run?;
    run.results.manifest.world = arguments.world.words().trim().into();
    run.add_digests(scenario);
    Ok(run)
}

/// Runs `scenario` in the simulator, which is `backend`, with a progress bar.
pub fn simulate(backend: &mut Interruptible, scenario: &Scenario, pcap: Option<&Path>) -> Result<Run, Failure> {
    let bar = Bar::new("s simulated");
    let recordings = Recordings { pcap, ..Recordings::default() };
    let mut run = lab::run::run_on(backend, scenario, recordings, &mut |progress| bar.show(progress))?;
    run.add_digests(scenario);
    Ok(run)
}

/// Writes results and report to `directory`, and returns their paths.
pub fn write_files(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let files = [("results.json", results.reproducible().to_json()), ("report.html", report::render(results))];
    let mut written = Vec::new();
    for (name, content) in files {
        let path = directory.join(name);
        atomic_file::write(&path, content.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// Lists the names of written files, one per line.
pub fn list(written: &[PathBuf]) -> String {
    let width = written.iter().map(|path| path.display().to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    for path in written {
        let what = match path.extension().and_then(|extension| extension.to_str()) {
            Some("html") => "the report, for a browser",
            Some("pcapng") => "a capture, for Wireshark",
            Some("sqlog") => "a log of the engine, for programs",
            _ => "the results, for programs",
        };
        let _ = writeln!(text, "  {:<width$}  {what}", path.display().to_string());
    }
    text
}

fn what_next(arguments: &arguments::Run, results: &Results, written: &[PathBuf], scheduler: Option<&str>) -> String {
    let mut text = String::new();
    if !written.is_empty() {
        let _ = write!(text, "written:\n{}\n", list(written));
    }
    let file = arguments.scenario.display().to_string();
    // `--seed` already states a seed that the command line set.
    let seedless: Vec<String> =
        arguments.overrides.iter().filter(|change| !change.is_of("seed")).map(text_of).collect();
    let all: Vec<String> = arguments.overrides.iter().map(text_of).collect();
    let world = arguments.world.words();
    let words = |overrides: &[String]| shell::scenario(&file, arguments.variant.as_deref(), overrides) + &world;
    text.push_str("next:\n");
    if arguments.out.is_none() {
        let seed = arguments.seed.map_or(String::new(), |seed| format!(" --seed {seed}"));
        let _ = writeln!(text, "  anabranch run {}{seed} --out out    # a report with plots", words(&all));
    }
    let _ = writeln!(text, "  anabranch run {} --seed {}", words(&seedless), results.manifest.seed.wrapping_add(1));
    if let Some(scheduler) = scheduler {
        let _ = writeln!(text, "  anabranch run {} --set {scheduler}", words(&all));
    }
    text
}

fn text_of(change: &Override) -> String {
    change.text.clone()
}

/// Fails the command if the run broke a rule or did not deliver.
pub fn judge(run: &Run) -> Result<(), Failure> {
    if run.faults.is_empty() { Ok(()) } else { Err(Failure::Failed(run.faults.join("\nerror: "))) }
}
