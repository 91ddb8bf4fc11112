//! Many connections in one simulation: the cost of a packet beside thousands of other connections, the memory of idle
//! and busy connections, and the number of short flows opened and closed per minute.
//!
//! `cargo bench -p simulator --bench many [-- CONNECTIONS]`: with a number, at most that many connections; with `idle`,
//! `busy` or `churn` as well, only that measurement.
//!
//! The mix is that of a busy server: nine of ten connections send 20 kB, end, and are replaced by the next; the tenth
//! sends without end. Each connection has 1 Mbit/s of one link with a round-trip time of 20 ms. The mix is measured
//! again with huge pages for the heap, which glibc requests if its environment says so; on other systems this changes
//! nothing.

use core::net::SocketAddr;
use std::collections::HashMap;
use std::time::Instant as WallClock;

use foldhash::fast::FixedState;
use network::{Link, Queue, TwoHosts};
use simulator::{App, EndpointHost, HostId, Simulation};
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, Received};
use units::{Duration, Instant, Rate};
use wire::{Pattern, Payload};

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);
const SHORT_BYTES: u64 = 20_000;
/// One connection in this number sends without end.
const BULK_EVERY: usize = 10;
/// Number of server ports: a host has too few ports to open all connections to a single one.
const SERVER_PORTS: usize = 16;
/// Makes glibc request huge pages (2 MiB), which let the processor cache address translations for far more memory.
const HUGE_PAGES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
/// All connections begin within this time.
const BEGIN: Duration = Duration::from_secs(1);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = arguments.iter().find_map(|argument| argument.parse().ok());
    let is_asked = |what: &str| arguments.iter().any(|argument| argument == what);
    match number {
        Some(connections) if is_asked("idle") => idle(connections),
        Some(connections) if is_asked("busy") => busy(connections),
        Some(connections) if is_asked("churn") => churn(connections),
        // Without measurement, it is enough that everything runs.
        most => all(most.unwrap_or(if is_asked("--bench") { 100_000 } else { 100 })),
    }
}

/// Runs each measurement in its own process, so that the memory of one does not affect the next.
fn all(most: usize) {
    println!("{:<24} {:>12} {:>10} {:>12} {:>10}", "idle connections", "connections", "wall s", "MiB", "KiB each");
    alone("idle", most, &[]);
    println!(
        "\n{:<24} {:>12} {:>10} {:>12} {:>10}",
        "connections of a mix", "data packets", "wall s", "packets/s", "KiB each"
    );
    for environment in [&[][..], &[HUGE_PAGES]] {
        for connections in [10, 100, 1000, 10_000].into_iter().filter(|connections| *connections <= most) {
            alone("busy", connections, environment);
        }
    }
    println!("\n{:<24} {:>12} {:>10} {:>12}", "short flows", "flows", "wall s", "a minute");
    alone("churn", most.min(1000), &[]);
}

fn alone(what: &str, connections: usize, environment: &[(&str, &str)]) {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = std::process::Command::new(program);
    let status = command.args([what, &connections.to_string()]).envs(environment.iter().copied()).status();
    assert!(status.is_ok_and(|status| status.success()), "{what} {connections}");
}

/// Measures the cost of a data packet and the memory of both ends of a connection.
fn busy(connections: usize) {
    let before = resident_bytes();
    let mut simulation = simulation(connections, Crowd::mix(connections));
    simulation.run_until(Instant::ZERO + BEGIN * 2);
    let held = resident_bytes().saturating_sub(before);
    // The number of packets is the same for few and many connections, so that durations are similar.
    let seconds = (20_000 / connections as u64).clamp(2, 200);
    let first = packets(&simulation);
    let wall_s = timed(|| simulation.run_until(Instant::ZERO + BEGIN * 2 + Duration::from_secs(seconds)));
    let packets = packets(&simulation) - first;
    let each = held as f64 / connections as f64 / 1024.0;
    let pages = if std::env::var(HUGE_PAGES.0).is_ok_and(|value| value == HUGE_PAGES.1) { ", huge pages" } else { "" };
    let label = format!("{connections}{pages}");
    println!("{label:<24} {packets:>12} {wall_s:>10.3} {:>12.0} {each:>10.1}", packets as f64 / wall_s);
}

/// Measures the memory of open but silent connections.
fn idle(connections: usize) {
    let before = resident_bytes();
    let mut simulation = simulation(connections, Crowd::silent(connections));
    let wall_s = timed(|| simulation.run_until(Instant::ZERO + BEGIN * 2));
    let open = simulation.host(SERVER).endpoint.footprint().connections;
    assert_eq!(open, connections, "all are open");
    let held = resident_bytes().saturating_sub(before) as f64;
    let each = held / connections as f64 / 1024.0;
    println!("{:<24} {open:>12} {wall_s:>10.3} {:>12.0} {each:>10.1}", connections, held / 1024.0 / 1024.0);
}

/// Counts the flows of one segment that open and close in a minute.
fn churn(at_once: usize) {
    let mut simulation = simulation(at_once, Crowd::short(at_once, 1000));
    simulation.run_until(Instant::ZERO + BEGIN * 2);
    let first = simulation.host(CLIENT).app_ref().ended;
    let wall_s = timed(|| simulation.run_until(Instant::ZERO + BEGIN * 2 + Duration::from_secs(4)));
    let flows = simulation.host(CLIENT).app_ref().ended - first;
    let label = format!("{at_once} at once, 1 kB");
    println!("{label:<24} {flows:>12} {wall_s:>10.3} {:>12.0}", flows as f64 / wall_s * 60.0);
}

fn timed(run: impl FnOnce()) -> f64 {
    #[expect(clippy::disallowed_methods, reason = "a bench measures the real clock")]
    let begin = WallClock::now();
    run();
    begin.elapsed().as_secs_f64()
}

/// Resident memory of the process as Linux reports it; zero on other systems.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let resident = pages.and_then(|pages| pages.split(' ').nth(1)?.parse::<u64>().ok());
    resident.unwrap_or(0) * 4096
}

type Hosts = Simulation<EndpointHost<host::Alone, Crowd>>;

/// Segments with data, estimated from the server's octets: all segments of a flow except the last are full.
fn packets(simulation: &Hosts) -> u64 {
    simulation.host(SERVER).app_ref().received_bytes / 1428
}

fn simulation(connections: usize, clients: Crowd) -> Hosts {
    let rate = Rate::from_bps(1_000_000 * connections as u64);
    let link = Link::new(rate, Duration::from_millis(10)).queue(Queue::packets(20 + 4 * connections as u64));
    let wired = TwoHosts::new(1).path(link).build();
    let mut simulation = Simulation::new(wired.network);
    let (local, remote) = (wired.paths[0].client, wired.paths[0].server);
    let clients = Crowd { local: SocketAddr::new(local, 0), remote: SocketAddr::new(remote, 80), ..clients };
    let server = Crowd { remote: SocketAddr::new(remote, 80), ..Crowd::default() };
    let host = |seed, app| {
        let config = EndpointConfig { connections_max: 1 << 20, backlog: 1 << 20, ..EndpointConfig::default() };
        EndpointHost::with_app(Endpoint::with_seed(config, seed), host::Alone, app)
    };
    simulation.attach(wired.client, host(1, clients));
    simulation.attach(wired.server, host(2, server));
    simulation
}

/// All connections of one host. One application handles them all, because each of many would see every event.
struct Crowd {
    /// Local address of the connections; an unspecified one means a server.
    local: SocketAddr,
    remote: SocketAddr,
    wanted: usize,
    begun: usize,
    /// Octets of the flows that end, zero if all are silent; and whether some flows never end.
    flow_bytes: u64,
    has_bulk: bool,
    /// Octets that each flow has yet to send.
    left: HashMap<ConnectionId, u64, FixedState>,
    next_at: Instant,
    received_bytes: u64,
    ended: u64,
}

impl Default for Crowd {
    fn default() -> Self {
        let nowhere = SocketAddr::from(([0; 4], 0));
        Self {
            local: nowhere,
            remote: nowhere,
            wanted: 0,
            begun: 0,
            flow_bytes: 0,
            has_bulk: false,
            left: HashMap::default(),
            next_at: Instant::ZERO,
            received_bytes: 0,
            ended: 0,
        }
    }
}

impl Crowd {
    fn silent(wanted: usize) -> Self {
        Self { wanted, ..Self::default() }
    }

    fn short(wanted: usize, flow_bytes: u64) -> Self {
        Self { wanted, flow_bytes, ..Self::default() }
    }

    fn mix(wanted: usize) -> Self {
        Self { has_bulk: true, ..Self::short(wanted, SHORT_BYTES) }
    }

    fn config() -> ConnectionConfig {
        let time_wait = Duration::from_millis(100);
        ConnectionConfig { time_wait, path_manager: "manual".into(), ..ConnectionConfig::default() }
    }

    fn open(&mut self, number: usize, endpoint: &mut Endpoint, now: Instant) {
        let port = 80 + (number % SERVER_PORTS) as u16;
        let remote = SocketAddr::new(self.remote.ip(), port);
        let connection = endpoint.connect(self.local, remote, Self::config(), now).expect("a port is free");
        let is_bulk = self.has_bulk && number % BULK_EVERY == 0;
        self.left.insert(connection, if is_bulk { u64::MAX } else { self.flow_bytes });
    }

    fn pump(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let Some(left) = self.left.get_mut(&connection).filter(|left| **left > 0) else { return };
        while *left > 0 {
            let len = (*left).min(1 << 16) as u32;
            let taken = endpoint.send(connection, Payload::Pattern(Pattern { stream: 1, offset: 0, len }), now);
            let taken = taken.expect("it is open") as u64;
            *left -= taken;
            if taken < u64::from(len) {
                return;
            }
        }
        endpoint.shutdown(connection, now).expect("it is open");
    }

    fn drain(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        loop {
            match endpoint.recv(connection, 1 << 20, now) {
                Ok(Received::Data(data)) => self.received_bytes += data.len() as u64,
                Ok(Received::Finished) => {
                    let _ = endpoint.shutdown(connection, now);
                    return;
                }
                _ => return,
            }
        }
    }
}

impl App for Crowd {
    fn start(&mut self, endpoint: &mut Endpoint, _now: Instant) {
        if self.wanted == 0 {
            for port in 0..SERVER_PORTS as u16 {
                let local = SocketAddr::new(self.remote.ip(), 80 + port);
                endpoint.listen(local, Self::config()).expect("the port is free");
            }
            self.next_at = Instant::FAR_FUTURE;
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Incoming(listener) => while endpoint.accept(*listener).is_some() {},
            Event::Connected { connection, .. } | Event::Writable(connection) => self.pump(*connection, endpoint, now),
            Event::Readable(connection) | Event::PeerFinished(connection) => self.drain(*connection, endpoint, now),
            Event::Closed { connection, .. } => {
                endpoint.release(*connection);
                self.ended += 1;
                if self.left.remove(connection).is_some() {
                    self.open(self.ended as usize * BULK_EVERY + 1, endpoint, now);
                }
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.open(self.begun, endpoint, now);
        self.begun += 1;
        let step = BEGIN.as_nanos() / self.wanted as u64;
        self.next_at = if self.begun == self.wanted { Instant::FAR_FUTURE } else { now + Duration::from_nanos(step) };
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_at).filter(|at| *at < Instant::FAR_FUTURE)
    }
}
