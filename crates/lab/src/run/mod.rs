//! Running: a scenario to results, in the simulator or on another backend; and many of them.
//!
//! ```text
//! plan, inputs                what the scenario asks of its hosts; the octets and traces it names
//! topology                    its network: hops of links of their own (links, link_nodes) or of shared media (radio)
//! hosts, agents, sink, local  who is on that network: hosts, their agents and applications, other traffic
//! attacker                    who works against them
//! backend                     who lets time pass, and where hosts are
//! stage                       all of these together, and the play
//! meter, observed, capture    what is watched meanwhile; pcapng, the files of captures
//! assemble, ceased, examine   what it comes to, and whether that may be
//! sweep                       every variant at every point of a grid with every seed
//! ```

mod agents;
mod assemble;
mod attacker;
mod backend;
mod capture;
mod ceased;
mod examine;
mod hop;
mod hosts;
mod inputs;
pub mod link_nodes;
mod links;
mod local;
mod meter;
mod observed;
pub mod pcapng;
mod plan;
mod radio;
mod sink;
mod stage;
pub mod sweep;
mod topology;

use std::path::{Path, PathBuf};

use units::Instant;

use crate::measure::integrity::Delivery;
use crate::measure::results::{RelaySeries, Results, Series};
use crate::measure::{Paths, Recorder, RelayRecorder};
use crate::scenario::{Hop, Scenario};
pub use agents::source_settings;
use assemble::Verdict;
pub use backend::{
    Arrival, Backend, GoesOn, KernelDestination, KernelFlow, KernelSource, Party, Passed, Place, Portals, Seat,
    Standing, VirtualTime,
};
use capture::Captures;
pub use examine::{Examined, examine};
pub use hosts::LabHost;
pub use inputs::{rate_trace, read_text, script, workload};
pub use local::greedy_controllers;
use meter::Meter;
pub use meter::Supervisor;
pub use stage::SOURCE_PORT;
use stage::{Recorders, Stage};

/// Why a run could not begin, or its files not be written.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file that the scenario names cannot be read.
    #[error("{field}: cannot read {}: {source}\n  help: paths are relative to the scenario file, after --set to the working directory", path.display())]
    Unreadable {
        /// The field that names it.
        field: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A trace says something wrong.
    #[error("{field}: {}: {source}", path.display())]
    Trace {
        /// The field that names it.
        field: String,
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: network::trace::TraceError,
    },
    /// The radio models refuse their settings.
    #[error("cell or wlan: {0}")]
    Radio(String),
    /// What the scenario asks for cannot be run: all of it.
    #[error("{}", each(.0))]
    Unsupported(Vec<Unsupported>),
    /// The backend cannot go on.
    #[error("{0}")]
    Backend(Box<dyn core::error::Error + Send + Sync>),
    /// A capture cannot be begun.
    #[error("{0}")]
    Output(#[from] std::io::Error),
}

/// Something that a scenario asks for and that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}\n  help: {remedy}")]
pub struct Unsupported {
    /// The field that asks for it.
    pub field: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: &'static str,
}

impl From<Unsupported> for RunError {
    fn from(one: Unsupported) -> Self {
        Self::Unsupported(vec![one])
    }
}

/// One a line, with its help below it, as the command prints errors.
fn each(all: &[Unsupported]) -> String {
    all.iter().map(Unsupported::to_string).collect::<Vec<_>>().join("\nerror: ")
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Simulated time.
    pub now: Instant,
    /// Octets delivered.
    pub delivered_bytes: u64,
    /// Share of the run that is done, from 0 to 1.
    pub done_ratio: f64,
    /// What was measured so far, where the backend tells.
    pub live: Option<Live<'a>>,
}

/// What was measured so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live<'a> {
    /// The connection's series.
    pub series: &'a Series,
    /// The relays' series.
    pub relays: &'a [RelaySeries],
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was measured.
    pub results: Results,
    /// Rules that were broken and reasons why it failed; empty after a good run.
    pub faults: Vec<String>,
    /// What a good run came to and was perhaps not meant to, a sentence each.
    pub notes: Vec<String>,
    /// The captures written.
    pub captures: Vec<PathBuf>,
    /// What an attacker did, and what came of it.
    pub attacked: Attacked,
    /// Somebody ended it before its time.
    pub interrupted: bool,
    delivery: Delivery,
}

impl Run {
    /// Names what was sent and what arrived by SHA-256 in the results, if the stream has an end. It can take longer than the
    /// run, so it is for those who are shown it.
    pub fn add_digests(&mut self, scenario: &Scenario) {
        if scenario.workload.ends() {
            self.results.totals.sha256_source = Some(self.delivery.sha256_of_source());
            self.results.totals.sha256_received = Some(self.delivery.sha256_of_received());
        }
    }
}

/// What was done to a run, and what it noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attacked {
    /// Messages between the destination and its relays that did not arrive as they were sent.
    pub messages: u64,
    /// Channels that were closed because of it, and opened anew.
    pub channels: u64,
    /// Relays that the destination found to swallow data, by their names.
    pub guilty: Vec<String>,
}

/// Runs `scenario` in the simulator. With `pcap` captures go there; `progress` is called once a window.
///
/// # Errors
/// If a file that the scenario names cannot be read, or a capture not be begun. A run that does not deliver
/// everything is no error, nor one whose captures cannot be written to their ends: [`Run::faults`] and [`Results::totals`] tell.
pub fn run(scenario: &Scenario, pcap: Option<&Path>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Run, RunError> {
    run_on(&mut VirtualTime, scenario, pcap, progress)
}

/// As [`run`], on `backend`.
///
/// # Errors
/// As [`run`], and if the backend cannot go on.
pub fn run_on(
    backend: &mut dyn Backend,
    scenario: &Scenario,
    pcap: Option<&Path>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Run, RunError> {
    let Played { mut run, stage, captures, .. } = play(scenario, pcap, Meter::default(), backend, progress)?;
    // It writes to the captures as long as it is there.
    drop(stage);
    for capture in captures.map(Captures::commit).unwrap_or_default() {
        match capture {
            Ok(path) => run.captures.push(path),
            Err(fault) => run.faults.push(fault),
        }
    }
    Ok(run)
}

/// A run, with what only who examines it wants to know.
struct Played {
    /// Without its captures.
    run: Run,
    captures: Option<Captures>,
    /// The stage as the run left it.
    stage: Stage,
    /// Of the run's faults, those that no network and no relay can be to blame for.
    broken: Vec<String>,
}

fn play(
    scenario: &Scenario,
    pcap: Option<&Path>,
    meter: Meter,
    backend: &mut dyn Backend,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Played, RunError> {
    let begun = wall_clock();
    let source = workload(scenario)?;
    let (original, scenario) = (scenario, &scenario.drawn());
    let addresses = scenario.addresses();
    let topology = topology::build(scenario, &addresses, backend.has_relay_hosts())?;
    let names = scenario.relays.iter().map(|relay| relay.name.clone());
    let paths = Paths::new(names.zip(addresses.paths.iter().copied()));
    let captures = pcap.map(|directory| Captures::create(directory, scenario)).transpose()?;
    let mut stage = Stage::new(scenario, topology, source.clone(), &addresses, backend)?;
    stage.watch(meter);
    if let Some(captures) = &captures {
        stage.simulation.add_tap(captures.tap(&addresses.paths));
    }
    let collector = observed::observe(scenario, source.len(), &mut stage);
    let names = scenario.relays.iter().map(|relay| relay.name.clone());
    let connection = Recorder::new(scenario.metrics.window, paths);
    let mut recorders = Recorders { connection, relays: RelayRecorder::new(names) };
    stage.play(scenario, source.len(), &mut recorders, backend, progress)?;
    let (mut results, Verdict { faults, broken, notes }, delivery) =
        assemble::assemble(original, scenario, &source, &stage, recorders, backend.name());
    results.totals.lateness = backend.lateness();
    results.totals.subflows_reset = stage.subflows_reset();
    let metrics = observed::paper_metrics(scenario, &collector, &stage);
    if let Some(selection) = &mut results.selection {
        selection.play_stalled_s = agents::play_stalled_s(scenario, &results.series);
        selection.hindsight = observed::oracle(scenario).and_then(|oracle| oracle.judge(&results.series, &metrics));
    }
    results.metrics = Some(metrics);
    let (messages, channels) = stage.attacked();
    let guilty = stage.journal.guilty.iter().map(|relay| scenario.relays[*relay].name.clone()).collect();
    let attacked = Attacked { messages, channels, guilty };
    // Elsewhere the one time is the other.
    results.totals.wall_s = (backend.name() == VirtualTime.name()).then(|| begun.elapsed().as_secs_f64());
    let run = Run { results, faults, notes, captures: Vec::new(), attacked, interrupted: stage.interrupted, delivery };
    Ok(Played { run, captures, stage, broken })
}

/// Reads the files that `scenario` names, without running it: what is wrong with them, in words.
pub fn check_inputs(scenario: &Scenario) -> Vec<String> {
    let traces = (0..scenario.relays.len())
        .flat_map(|relay| [Hop::Cellular, Hop::Wifi].map(|hop| rate_trace(scenario, relay, hop).err()));
    let others = [workload(scenario).err(), inputs::bottleneck_trace(scenario).err()];
    others.into_iter().chain(traces).flatten().map(|error| error.to_string()).collect()
}

#[expect(clippy::disallowed_methods, reason = "the results say how long a run took; nothing in the run depends on it")]
fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}
