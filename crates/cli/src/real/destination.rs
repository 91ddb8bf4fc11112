//! The destination: an application of the engine that receives, digests and measures.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use host::App;
use lab::measure::digest::Running;
use lab::measure::{Paths, Recorder};
use lab::run::Progress;
use lab::scenario::Scenario;
use transport::{ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, Event, Received};
use units::{Duration, Instant};

use super::kernel_view::{KernelView, lock};
use super::network::RunningNetwork;

/// Octets taken from the endpoint at once.
const TAKE_BYTES: usize = 1 << 20;
/// Time after the last delivery in which the hosts say goodbye.
const FAREWELL: Duration = Duration::from_millis(500);

/// Opens a connection and receives.
pub struct Destination<'a> {
    ends: [SocketAddr; 2],
    config: ConnectionConfig,
    connection: Option<ConnectionId>,
    digest: Running,
    delivered_bytes: u64,
    total_bytes: u64,
    last_at: Instant,
    finished: bool,
    failure: Option<String>,
    recorder: Recorder,
    window: Duration,
    next_sample: Instant,
    /// When to end at the latest.
    ends_at: Instant,
    now: Instant,
    kernel: Arc<Mutex<KernelView>>,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

/// What was measured.
pub struct Measured {
    pub recorder: Recorder,
    pub stats: ConnectionStats,
    pub delivered_bytes: u64,
    pub sha256: String,
    pub duration_s: f64,
    pub finished: bool,
    pub failure: Option<String>,
}

impl<'a> Destination<'a> {
    pub fn new(
        scenario: &Scenario,
        network: &RunningNetwork,
        (ends, config): ([SocketAddr; 2], ConnectionConfig),
        kernel: Arc<Mutex<KernelView>>,
        total_bytes: u64,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> Self {
        let names = scenario.relays.iter().map(|relay| relay.name.clone());
        let window = scenario.metrics.window;
        Self {
            ends,
            config,
            connection: None,
            digest: Running::default(),
            delivered_bytes: 0,
            total_bytes,
            last_at: Instant::ZERO,
            finished: false,
            failure: None,
            recorder: Recorder::new(window, Paths::new(names.zip(network.paths.iter().copied()))),
            window,
            next_sample: Instant::ZERO + window,
            ends_at: Instant::ZERO + scenario.duration,
            now: Instant::ZERO,
            kernel,
            progress,
        }
    }

    pub fn finish(self, endpoint: &Endpoint) -> Measured {
        let stats = self.connection.and_then(|connection| endpoint.stats(connection)).unwrap_or_default();
        Measured {
            recorder: self.recorder,
            stats,
            delivered_bytes: self.delivered_bytes,
            sha256: self.digest.finish(),
            duration_s: if self.finished { self.last_at.as_secs_f64() } else { self.now.as_secs_f64() },
            finished: self.finished,
            failure: self.failure,
        }
    }

    fn fail(&mut self, why: String, now: Instant) {
        self.failure.get_or_insert(why);
        self.ends_at = self.ends_at.min(now);
    }

    fn drain(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        while !self.finished {
            match endpoint.recv(connection, TAKE_BYTES, now) {
                Ok(Received::Data(data)) => {
                    self.digest.update(&data);
                    self.delivered_bytes += data.len() as u64;
                    self.last_at = now;
                }
                Ok(Received::Pending) => return,
                Ok(Received::Finished) => {
                    self.finished = true;
                    self.sample(endpoint, now);
                    self.ends_at = now + FAREWELL;
                    if let Err(error) = endpoint.shutdown(connection, now) {
                        self.fail(format!("shutdown: {error}"), now);
                    }
                }
                Err(error) => return self.fail(format!("receive: {error}"), now),
            }
        }
    }

    fn sample(&mut self, endpoint: &Endpoint, now: Instant) {
        let Some(stats) = self.connection.and_then(|connection| endpoint.stats(connection)) else { return };
        let kernel = lock(&self.kernel);
        self.recorder.sample(now, self.delivered_bytes, &stats, |subflow| kernel.of(subflow), None);
        let done_ratio = (self.delivered_bytes as f64 / self.total_bytes.max(1) as f64).min(1.0);
        (self.progress)(Progress { now, delivered_bytes: self.delivered_bytes, done_ratio, live: None });
    }
}

impl App for Destination<'_> {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let [local, remote] = self.ends;
        match endpoint.connect(local, remote, self.config.clone(), now) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.fail(format!("connect: {error}"), now),
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        self.now = now;
        match *event {
            Event::Readable(connection) | Event::PeerFinished(connection) => self.drain(connection, endpoint, now),
            Event::Closed { reason, .. } if !self.finished => {
                self.fail(format!("the connection ended early: {reason}"), now);
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(if self.finished { self.ends_at } else { self.next_sample.min(self.ends_at) })
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.now = now;
        if !self.finished && now >= self.next_sample {
            self.sample(endpoint, now);
            self.next_sample = now + self.window;
        }
    }

    fn is_finished(&self) -> bool {
        self.now >= self.ends_at
    }
}
