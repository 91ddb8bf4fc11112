//! Running: turns a scenario into results, in the simulator or on another backend; one run or many.
//!
//! ```text
//! plan, inputs                what the scenario asks of its hosts; the octets and traces it names
//! topology                    its network: separate links (links, link_nodes) or shared media (radio), as hops;
//!                             foreign_medium keeps the packets of media that a backend simulates
//! hosts, agents, sink, local  the hosts on that network: their agents and applications, other traffic
//! capacity                    what links could carry
//! attacker                    an attacker against them
//! backend                     what advances the time, and where hosts are
//! stage                       all of these together, and the course of a run
//! meter, observed             observation of a run
//! recordings                  its files: pcapng captures, and qlog of what the engines decided
//! assemble, ceased, examine   the outcome, and whether it is valid
//! sweep                       every variant at every point of a grid with every seed
//! ```

mod agents;
mod assemble;
mod attacker;
mod backend;
mod capacity;
mod capture;
mod ceased;
mod examine;
mod foreign_medium;
mod hop;
mod hosts;
pub(crate) mod inputs;
pub mod link_nodes;
mod links;
mod local;
mod meter;
mod observed;
pub mod pcapng;
mod plan;
mod radio;
mod recordings;
mod sink;
mod stage;
pub mod sweep;
mod topology;

use std::path::{Path, PathBuf};

use units::Instant;

use crate::measure::integrity::Delivery;
use crate::measure::results::{RelaySeries, Results, Series};
use crate::measure::{BottleneckRecorder, Paths, Recorder, RelayRecorder};
use crate::scenario::{Hop, Scenario};
pub use agents::source_settings;
use assemble::Verdict;
pub(crate) use assemble::{interrupted_after, nothing_arrived};
pub use backend::{
    Arrival, Backend, GoesOn, KernelDestination, KernelFlow, KernelSource, Media, Party, Passed, Place, Portals, Seat,
    Standing, VirtualTime,
};
pub use examine::{Examined, examine};
pub use foreign_medium::{Entry, ForeignMedium};
pub use hosts::LabHost;
pub use inputs::{read_text, script, workload};
pub use local::greedy_controllers;
use meter::Meter;
pub use meter::Supervisor;
pub use radio::{LOG_DISTANCE_EXPONENT, LOG_DISTANCE_REFERENCE_DB};
pub use recordings::Recordings;
use recordings::{Files, Written};
pub use stage::SOURCE_PORT;
use stage::{Recorders, Stage};

/// Why a run could not begin, or its files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file that the scenario names cannot be read.
    #[error("{field}: cannot read {}: {source}\n  help: paths are relative to the file that names them, or in --set to the working directory", path.display())]
    Unreadable {
        /// The field that names the file.
        field: String,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A trace is invalid.
    #[error("{field}: {}: {source}", path.display())]
    Trace {
        /// The field that names the trace.
        field: String,
        /// The file.
        path: PathBuf,
        /// The error, with its line.
        source: network::trace::TraceError,
    },
    /// The radio models reject their settings.
    #[error("cell or wlan: {0}")]
    Radio(String),
    /// The scenario asks for things that cannot be run: all of them.
    #[error("{}", each(.0))]
    Unsupported(Vec<Unsupported>),
    /// The backend cannot continue.
    #[error("{0}")]
    Backend(Box<dyn core::error::Error + Send + Sync>),
    /// A capture or a log cannot be started.
    #[error("{0}")]
    Output(#[from] std::io::Error),
}

/// Something in a scenario that cannot be run.
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

/// One per line, with its help below it, in the command's format of errors.
fn each(all: &[Unsupported]) -> String {
    all.iter().map(Unsupported::to_string).collect::<Vec<_>>().join("\nerror: ")
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Simulated time.
    pub now: Instant,
    /// Octets delivered.
    pub delivered_bytes: u64,
    /// Completed share of the run, from 0 to 1.
    pub done_ratio: f64,
    /// Measurements so far, where the backend reports them.
    pub live: Option<Live<'a>>,
}

/// Measurements so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live<'a> {
    /// The connection's series.
    pub series: &'a Series,
    /// The relays' series.
    pub relays: &'a [RelaySeries],
}

/// A completed run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its measurements.
    pub results: Results,
    /// Broken rules and reasons for failure; empty after a good run.
    pub faults: Vec<String>,
    /// Outcomes of a good run that were perhaps not intended, one sentence each.
    pub notes: Vec<String>,
    /// The captures and logs written.
    pub recordings: Vec<PathBuf>,
    /// What an attacker did, and its effects.
    pub attacked: Attacked,
    /// Whether the user ended it early.
    pub interrupted: bool,
    delivery: Delivery,
}

impl Run {
    /// Adds SHA-256 digests to the results: of the files that `scenario` names and, if the stream has an end, of what
    /// was sent and what arrived. This can take longer than the run, so callers use it only where the digests are shown.
    pub fn add_digests(&mut self, scenario: &Scenario) {
        self.results.manifest.files = inputs::digests(scenario);
        if scenario.workload.ends() {
            self.results.totals.sha256_source = Some(self.delivery.sha256_of_source());
            self.results.totals.sha256_received = Some(self.delivery.sha256_of_received());
        }
    }
}

/// Attacks on a run, and what the run noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attacked {
    /// Messages between the destination and its relays that did not arrive as they were sent.
    pub messages: u64,
    /// Channels that were closed because of them, and opened again.
    pub channels: u64,
    /// Names of relays that the destination found to swallow data.
    pub guilty: Vec<String>,
}

/// Runs `scenario` in the simulator. Captures go to the directory `pcap`, if given; `progress` is called once per
/// window.
///
/// # Errors
/// If a file that the scenario names cannot be read, or a capture cannot be started. A run that does not deliver
/// everything is not an error, and neither are captures that cannot be written completely: [`Run::faults`] and
/// [`Results::totals`] report these.
pub fn run(scenario: &Scenario, pcap: Option<&Path>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Run, RunError> {
    run_on(&mut VirtualTime, scenario, Recordings { pcap, ..Recordings::default() }, progress)
}

/// Like [`run`], on `backend`.
///
/// # Errors
/// As [`run`], and if the backend cannot continue.
pub fn run_on(
    backend: &mut dyn Backend,
    scenario: &Scenario,
    recordings: Recordings<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Run, RunError> {
    let Played { mut run, stage, files, .. } = play(scenario, recordings, Meter::default(), backend, progress)?;
    // The stage writes to the files until it is dropped.
    drop(stage);
    for file in files.commit() {
        match file {
            Written::File(path) => run.recordings.push(path),
            Written::Nothing(why) => run.notes.push(why),
            Written::Failed(fault) => run.faults.push(fault),
        }
    }
    Ok(run)
}

/// A run, with details for examinations only.
struct Played {
    /// The run, still without its recordings.
    run: Run,
    files: Files,
    /// The stage in its state after the run.
    stage: Stage,
    /// Those of the run's faults that no network and no relay can cause.
    broken: Vec<String>,
}

fn play(
    scenario: &Scenario,
    recordings: Recordings<'_>,
    meter: Meter,
    backend: &mut dyn Backend,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Played, RunError> {
    let begun = wall_clock();
    let source = workload(scenario)?;
    let (original, scenario) = (scenario, &scenario.drawn());
    let addresses = scenario.addresses();
    let topology = topology::build(scenario, &addresses, topology::Provided::by(backend))?;
    let names = scenario.relays.iter().map(|relay| relay.name.clone());
    let paths = Paths::new(names.zip(addresses.paths.iter().copied()));
    let mut files = recordings.begin(scenario)?;
    let mut stage = Stage::new(scenario, topology, source.clone(), &addresses, backend)?;
    stage.watch(meter);
    files.attach(&mut stage, &addresses);
    let collector = observed::observe(scenario, source.len(), &mut stage);
    let names = scenario.relays.iter().map(|relay| relay.name.clone());
    let connection = Recorder::new(scenario.metrics.window, paths);
    let mut recorders =
        Recorders { connection, relays: RelayRecorder::new(names), bottleneck: BottleneckRecorder::default() };
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
    // On other backends, both times are the same.
    results.totals.wall_s = (backend.name() == VirtualTime.name()).then(|| begun.elapsed().as_secs_f64());
    let run =
        Run { results, faults, notes, recordings: Vec::new(), attacked, interrupted: stage.interrupted, delivery };
    Ok(Played { run, files, stage, broken })
}

/// Reads the files that `scenario` names, without running it; describes what is wrong with them.
pub fn check_inputs(scenario: &Scenario) -> Vec<String> {
    let traces = (0..scenario.relays.len())
        .flat_map(|relay| [Hop::Cellular, Hop::Wifi].map(|hop| inputs::rate_traces(scenario, relay, hop).err()));
    let others = [workload(scenario).err(), inputs::bottleneck_traces(scenario).err()];
    others.into_iter().chain(traces).flatten().map(|error| error.to_string()).collect()
}

#[expect(clippy::disallowed_methods, reason = "the results say how long a run took; nothing in the run depends on it")]
fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}
