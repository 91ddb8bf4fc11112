//! Two endpoints in steady bulk transfer, in an environment without cost: paths with only a delay, kept in rings that
//! were allocated before. Tests and benches measure only the engine.

#![allow(dead_code, reason = "tests and benches use their own parts")]

use std::collections::VecDeque;
use std::net::SocketAddr;

use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, Received};
use units::{Duration, Instant};
use wire::{Pattern, Payload, Segment};

/// One-way delays of the two paths.
const DELAYS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(15)];
const PORT: u16 = 80;
/// Number of segments that a ring holds without growing.
const RING: usize = 1 << 15;
/// One data segment in this many is lost, so that bandwidth limits the windows instead of the peer's buffer.
const LOSS_PERIOD: u64 = 4096;
/// Octets offered to the engine at a time.
const WRITE_BYTES: u32 = 1 << 18;

/// One direction of a path.
type Ring = VecDeque<(Instant, Segment)>;

/// A sending server, a receiving client, and two paths.
pub struct Steady {
    pub client: Endpoint,
    pub server: Endpoint,
    pub now: Instant,
    /// Data segments delivered so far.
    pub packets: u64,
    /// Octets that the receiving applications read.
    pub read_bytes: u64,
    /// (server's, client's) ends of each connection.
    pub connections: Vec<(ConnectionId, ConnectionId)>,
    to_client: [Ring; 2],
    to_server: [Ring; 2],
    /// Bulk transfer: senders refill their buffers whenever there is room, and paths lose.
    bulk: bool,
    data_sent: u64,
    written: Vec<u64>,
}

fn address(side: u8, path: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, side, path as u8 + 1], if side == 1 { PORT } else { 0 }))
}

fn endpoint(side: u8, paths: usize, seed: u64) -> Endpoint {
    let local_addresses = (0..paths).map(|path| LocalAddress { ip: address(side, path).ip(), backup: false }).collect();
    Endpoint::with_seed(EndpointConfig { local_addresses, backlog: 1 << 16, ..EndpointConfig::default() }, seed)
}

fn rings() -> [Ring; 2] {
    [VecDeque::with_capacity(RING), VecDeque::with_capacity(RING)]
}

impl Steady {
    /// Creates `count` established and idle connections over one or two paths.
    pub fn new(count: usize, paths: usize, config: &ConnectionConfig) -> Self {
        let mut server = endpoint(1, paths, 2);
        let listener = server.listen(SocketAddr::from(([0, 0, 0, 0], PORT)), config.clone()).unwrap();
        let mut world = Self {
            client: endpoint(0, paths, 1),
            server,
            now: Instant::ZERO,
            packets: 0,
            read_bytes: 0,
            connections: Vec::with_capacity(count),
            to_client: rings(),
            to_server: rings(),
            bulk: false,
            data_sent: 0,
            written: vec![0; count],
        };
        for _ in 0..count {
            let client = world.client.connect(address(0, 0), address(1, 0), config.clone(), world.now).unwrap();
            world.flush();
            world.run_for(Duration::from_millis(60));
            let server = world.server.accept(listener).expect("an established connection");
            world.connections.push((server, client));
        }
        world.run_for(Duration::from_millis(500));
        world
    }

    /// Creates a warmed-up bulk transfer of one connection over two paths.
    pub fn bulk(config: &ConnectionConfig) -> Self {
        let mut world = Self::new(1, 2, config);
        world.bulk = true;
        world.offer(0, u64::MAX);
        world.flush();
        world
    }

    /// Offers at most `bytes` octets on connection `n`.
    pub fn offer(&mut self, n: usize, mut bytes: u64) {
        let (server, _) = self.connections[n];
        while bytes > 0 {
            let len = bytes.min(u64::from(WRITE_BYTES)) as u32;
            let piece = Payload::Pattern(Pattern { stream: n as u32, offset: self.written[n], len });
            let taken = self.server.send(server, piece, self.now).unwrap() as u64;
            self.written[n] += taken;
            bytes -= taken;
            if taken < u64::from(len) {
                return;
            }
        }
    }

    /// Runs until `packets` more data segments are delivered.
    pub fn run(&mut self, packets: u64) {
        let goal = self.packets + packets;
        while self.packets < goal {
            assert!(self.step(Instant::FAR_FUTURE), "the transfer stands still");
        }
    }

    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    /// Sends one burst of `bytes` on each connection in turn, until all are delivered and acknowledged.
    pub fn round(&mut self, bytes: u64) {
        for n in 0..self.connections.len() {
            self.offer(n, bytes);
            self.flush();
            // Keep a few bursts in flight.
            while self.to_client[0].len() > 64 {
                self.step(Instant::FAR_FUTURE);
            }
        }
        self.run_for(Duration::from_millis(200));
    }

    /// Processes the next event, if it comes before `end`.
    fn step(&mut self, end: Instant) -> bool {
        let arrivals = [&self.to_client, &self.to_server].into_iter().flatten().filter_map(|ring| ring.front());
        let arrival = arrivals.map(|(at, _)| *at).min();
        let timeouts = [self.client.poll_timeout(), self.server.poll_timeout()];
        let Some(next) = timeouts.into_iter().chain([arrival]).flatten().min().filter(|next| *next <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        if arrival == Some(next) {
            self.deliver(now);
        }
        if timeouts[0].is_some_and(|at| at <= now) {
            self.client.handle_timeout(now);
        }
        if timeouts[1].is_some_and(|at| at <= now) {
            self.server.handle_timeout(now);
        }
        self.flush();
        true
    }

    fn deliver(&mut self, now: Instant) {
        for path in 0..DELAYS.len() {
            if self.to_client[path].front().is_some_and(|(at, _)| *at <= now) {
                let (_, segment) = self.to_client[path].pop_front().unwrap();
                self.packets += u64::from(!segment.payload.is_empty());
                return self.client.handle_segment(segment, now);
            }
            if self.to_server[path].front().is_some_and(|(at, _)| *at <= now) {
                let (_, segment) = self.to_server[path].pop_front().unwrap();
                return self.server.handle_segment(segment, now);
            }
        }
    }

    fn flush(&mut self) {
        let now = self.now;
        while let Some(event) = self.client.poll_event() {
            if let Event::Readable(id) = event {
                while let Ok(Received::Data(payload)) = self.client.recv(id, usize::MAX, now) {
                    self.read_bytes += payload.len() as u64;
                }
            }
        }
        while let Some(event) = self.server.poll_event() {
            if self.bulk && matches!(event, Event::Writable(_)) {
                self.offer(0, u64::MAX);
            }
        }
        while let Some(segment) = self.client.poll_transmit(now) {
            let path = path_of(&segment.src);
            self.to_server[path].push_back((now + DELAYS[path], segment));
        }
        while let Some(segment) = self.server.poll_transmit(now) {
            let path = path_of(&segment.dst);
            self.data_sent += u64::from(!segment.payload.is_empty());
            if self.bulk && self.data_sent % LOSS_PERIOD == 0 && !segment.payload.is_empty() {
                continue;
            }
            self.to_client[path].push_back((now + DELAYS[path], segment));
        }
    }
}

/// Returns the path to a client's address.
fn path_of(client: &SocketAddr) -> usize {
    match client {
        SocketAddr::V4(address) => usize::from(address.ip().octets()[3]) - 1,
        SocketAddr::V6(_) => 0,
    }
}
