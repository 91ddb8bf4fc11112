//! Runs a scenario in the simulator.

mod assemble;
mod capture;
mod inputs;
mod sink;
mod topology;

use core::cell::RefCell;
use core::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use network::VertexId;
use simulator::app::Transfer;
use simulator::{EndpointHost, HostId, Simulation, Source};
use transport::path_manager::LocalAddress;
use transport::{ConnectionStats, Endpoint, EndpointConfig, SubflowStats};
use units::{Duration, Instant, Prng};

use crate::measure::{Paths, Recorder};
use crate::results::Results;
use crate::scenario::{Addresses, Scenario};
use capture::Captures;
pub use inputs::{Hop, rate_trace, workload};
use sink::{Delivered, Sink};

/// Where the source listens: a port that capture tools take for no protocol.
const SOURCE_PORT: u16 = 40000;
const SOURCE: HostId = HostId(0);
const DESTINATION: HostId = HostId(1);
/// Simulated time after the last delivery in which the hosts say goodbye; not part of the results.
const FAREWELL: Duration = Duration::from_secs(2);

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
    /// A capture cannot be written.
    #[error("{0}")]
    Output(#[from] std::io::Error),
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Simulated time.
    pub now: Instant,
    /// Octets delivered.
    pub delivered_bytes: u64,
    /// Share of the run that is done, from 0 to 1.
    pub done_ratio: f64,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was measured.
    pub results: Results,
    /// Rules that were broken and reasons why it failed; empty after a good run.
    pub faults: Vec<String>,
    /// The captures written.
    pub captures: Vec<PathBuf>,
}

/// Runs `scenario`. With `pcap` captures go there; `progress` is called once a window.
///
/// # Errors
/// If a file that the scenario names cannot be read, or a capture not be written. A run that does not deliver
/// everything is no error: [`Run::faults`] and [`Results::totals`] tell.
pub fn run(scenario: &Scenario, pcap: Option<&Path>, progress: &mut dyn FnMut(Progress)) -> Result<Run, RunError> {
    let source = workload(scenario)?;
    let addresses = scenario.addresses();
    let topology = topology::build(scenario, &addresses)?;
    let names = scenario.relays.iter().map(|relay| relay.name.clone());
    let paths = Paths::new(names.zip(addresses.paths.iter().copied()));
    let captures = pcap.map(|directory| Captures::create(directory, scenario)).transpose()?;
    let mut stage = Stage::new(scenario, topology, source.clone(), &addresses);
    if let Some(captures) = &captures {
        stage.simulation.add_tap(captures.tap(&addresses.paths));
    }
    let mut recorder = Recorder::new(scenario.metrics.window, paths);
    let begun = wall_clock();
    stage.play(scenario, source.len(), &mut recorder, progress);
    let wall_s = begun.elapsed().as_secs_f64();
    let (mut results, faults) = assemble::assemble(scenario, &source, &stage, recorder);
    results.totals.wall_s = Some(wall_s);
    drop(stage);
    let captures = captures.map(Captures::commit).transpose()?.unwrap_or_default();
    Ok(Run { results, faults, captures })
}

#[expect(clippy::disallowed_methods, reason = "the results say how long a run took; nothing in the run depends on it")]
fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// Both hosts on their network.
struct Stage {
    simulation: Simulation<EndpointHost>,
    downlinks: Vec<[VertexId; 2]>,
    delivered: Rc<RefCell<Delivered>>,
    /// When the last delivery was, or when it was clear that there would be no more.
    ended_at: Instant,
}

impl Stage {
    fn new(scenario: &Scenario, topology: topology::Topology, source: Source, addresses: &Addresses) -> Self {
        let config = scenario.connection.to_config(scenario.relays.len());
        let listen_at = SocketAddr::new(addresses.source, SOURCE_PORT);
        let server = Transfer::listen(listen_at, config.clone()).sending(source);
        let sink = Sink::new(SocketAddr::new(addresses.paths[0], 0), listen_at, config);
        let delivered = sink.delivered();
        let mut simulation = Simulation::new(topology.network);
        let endpoint = |name: &str, addresses: &[_]| {
            let seed = Prng::fork(scenario.seed, name).below(u64::MAX);
            let local = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
            let config = EndpointConfig { local_addresses: local, ..EndpointConfig::default() };
            EndpointHost::new(Endpoint::with_seed(config, seed))
        };
        simulation.attach(topology.source, endpoint("source", &[addresses.source]).app(server));
        simulation.attach(topology.destination, endpoint("destination", &addresses.paths).app(sink));
        simulation.check();
        Self { simulation, downlinks: topology.downlinks, delivered, ended_at: Instant::ZERO }
    }

    /// Runs until everything is delivered, the connection failed, or the scenario's duration is over.
    fn play(
        &mut self,
        scenario: &Scenario,
        total_bytes: u64,
        recorder: &mut Recorder,
        progress: &mut dyn FnMut(Progress),
    ) {
        let end = Instant::ZERO + scenario.duration;
        let delivered = Rc::clone(&self.delivered);
        let goes_on = || !delivered.borrow().finished && delivered.borrow().failure.is_none();
        while self.simulation.now() < end && goes_on() {
            let window_end = end.min(self.simulation.now() + scenario.metrics.window);
            if !self.simulation.run_while(window_end, |_| goes_on()) {
                self.simulation.run_until(window_end);
            }
            let now = self.simulation.now();
            let delivered_bytes = delivered.borrow().bytes;
            let source = self.stats(SOURCE);
            let sender = |subflow: &SubflowStats| assemble::sender(&source, subflow);
            let destination = self.stats(DESTINATION);
            recorder.sample(now, delivered_bytes, &destination, sender, Some(self.path_counters()));
            let in_time = now.as_secs_f64() / scenario.duration.as_secs_f64();
            let done_ratio = in_time.max(delivered_bytes as f64 / total_bytes.max(1) as f64).min(1.0);
            progress(Progress { now, delivered_bytes, done_ratio });
        }
        self.ended_at = self.simulation.now();
        if delivered.borrow().finished {
            self.ended_at = delivered.borrow().last_at;
            let farewell = self.simulation.now() + FAREWELL;
            self.simulation.run_until(farewell);
        }
    }

    /// Statistics of the one connection of `host`.
    fn stats(&self, host: HostId) -> ConnectionStats {
        let host = self.simulation.host(host);
        let connection = host.endpoint.connections().next();
        connection.and_then(|connection| host.endpoint.stats(connection)).unwrap_or_default()
    }
}
