//! Two endpoints and the paths between them: the smallest environment for a connection.
//!
//! A path delays segments and loses some. Tests that need queues, rates and middleboxes use the simulator; here a test
//! states exactly what happens to each segment.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, Footprint, ListenerId, Received};
use units::{Duration, Instant, Prng};
use wire::mptcp::{Dss, MpCapable, MpJoin, MptcpOption};
use wire::{Flags, Pattern, Payload, Segment};

/// One of the two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Client,
    Server,
}

/// A test's change to a segment in transit: `None` loses it.
pub type Interfere = Box<dyn FnMut(Side, Segment, Instant) -> Option<Segment>>;

/// Two endpoints with equally many addresses. Every address of one reaches every address of the other.
pub struct Pair {
    pub client: Endpoint,
    pub server: Endpoint,
    pub listener: ListenerId,
    pub now: Instant,
    /// One-way delays, by the last octet of the client's address.
    pub delays: Vec<Duration>,
    pub loss: f64,
    /// Probability that a segment arrives twice.
    pub duplication: f64,
    /// Maximum extra delay, drawn for each segment, so that segments overtake each other.
    pub jitter: Duration,
    /// Dead paths, by the last octet of the client's address less one.
    pub dark: Vec<bool>,
    pub interfere: Option<Interfere>,
    /// Payload above which segments are cut, as segmentation offload does. The second value tells whether only the
    /// first piece keeps its MPTCP options.
    pub cut_to: Option<(usize, bool)>,
    /// Log of all sent segments, if enabled: time, sender, and segment before any interference.
    pub log: Option<Vec<(Instant, Side, Segment)>>,
    pub client_events: Vec<Event>,
    pub server_events: Vec<Event>,
    pub segments_sent: u64,
    v6: bool,
    prng: Prng,
    in_flight: BTreeMap<(Instant, u64), (Side, Segment)>,
    order: u64,
}

pub const PORT: u16 = 80;

pub fn client_address(path: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, path + 1], 0))
}

pub fn server_address(path: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, path + 1], PORT))
}

pub fn client_address6(path: u8) -> SocketAddr {
    SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(path) + 1], 0))
}

pub fn server_address6(path: u8) -> SocketAddr {
    SocketAddr::from(([0x2001, 0xdb8, 1, 0, 0, 0, 0, u16::from(path) + 1], PORT))
}

fn endpoint(paths: u8, address: fn(u8) -> SocketAddr, seed: u64) -> Endpoint {
    let local_addresses = (0..paths).map(|path| LocalAddress { ip: address(path).ip(), backup: false }).collect();
    Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, seed)
}

impl Pair {
    /// Creates a pair with `delays.len()` paths; the server listens with `config`.
    pub fn new(delays_ms: &[u64], config: ConnectionConfig, seed: u64) -> Self {
        let paths = delays_ms.len() as u8;
        let client = endpoint(paths, client_address, seed);
        let server = endpoint(paths, server_address, seed + 1);
        Self::of(client, server, SocketAddr::from(([0, 0, 0, 0], PORT)), delays_ms, config, seed)
    }

    /// As [`Self::new`], over IPv6.
    pub fn v6(delays_ms: &[u64], config: ConnectionConfig, seed: u64) -> Self {
        let paths = delays_ms.len() as u8;
        let client = endpoint(paths, client_address6, seed);
        let server = endpoint(paths, server_address6, seed + 1);
        Self::of(client, server, SocketAddr::from(([0_u16; 8], PORT)), delays_ms, config, seed)
    }

    fn of(
        client: Endpoint,
        mut server: Endpoint,
        local: SocketAddr,
        delays_ms: &[u64],
        config: ConnectionConfig,
        seed: u64,
    ) -> Self {
        let listener = server.listen(local, config).unwrap();
        Self {
            v6: local.is_ipv6(),
            client,
            server,
            listener,
            now: Instant::ZERO,
            delays: delays_ms.iter().map(|ms| Duration::from_millis(*ms)).collect(),
            loss: 0.0,
            duplication: 0.0,
            jitter: Duration::ZERO,
            dark: vec![false; delays_ms.len()],
            interfere: None,
            cut_to: None,
            log: None,
            client_events: Vec::new(),
            server_events: Vec::new(),
            segments_sent: 0,
            prng: Prng::fork(seed, "loss"),
            in_flight: BTreeMap::new(),
            order: 0,
        }
    }

    pub fn connect(&mut self, config: ConnectionConfig) -> ConnectionId {
        let (local, remote) = match self.v6 {
            true => (client_address6(0), server_address6(0)),
            false => (client_address(0), server_address(0)),
        };
        self.client.connect(local, remote, config, self.now).unwrap()
    }

    /// Connects and waits for both sides.
    pub fn establish(&mut self, config: ConnectionConfig) -> (ConnectionId, ConnectionId) {
        let client = self.connect(config);
        self.run_for(Duration::from_secs(2));
        let server = self.server.accept(self.listener).expect("the server has a connection");
        (client, server)
    }

    pub fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn flush(&mut self, side: Side) {
        let now = self.now;
        while let Some(segment) = self.endpoint(side).poll_transmit(now) {
            self.carry(side, segment);
        }
        while let Some(event) = self.endpoint(side).poll_event() {
            match side {
                Side::Client => self.client_events.push(event),
                Side::Server => self.server_events.push(event),
            }
        }
    }

    fn carry(&mut self, side: Side, mut segment: Segment) {
        if let Some((max, only_first)) = self.cut_to.filter(|(max, _)| segment.payload.len() > *max) {
            self.log.iter_mut().for_each(|log| log.push((self.now, side, segment.clone())));
            while segment.payload.len() > max {
                let mut piece = segment.clone();
                piece.payload = segment.payload.split_to(max);
                piece.flags.0 &= !Flags::FIN.0;
                segment.seq += max as u32;
                self.carry_whole(side, piece);
                if only_first {
                    segment.options.mptcp.clear();
                }
            }
        }
        self.carry_whole(side, segment);
    }

    fn carry_whole(&mut self, side: Side, segment: Segment) {
        self.segments_sent += 1;
        let path = path_of(side, &segment);
        if let Some(log) = &mut self.log {
            log.push((self.now, side, segment.clone()));
        }
        let lost = self.prng.chance(self.loss) || self.dark[path];
        let segment = match &mut self.interfere {
            Some(interfere) => interfere(side, segment, self.now),
            None => Some(segment),
        };
        let Some(segment) = segment.filter(|_| !lost) else { return };
        let copies = if self.duplication > 0.0 && self.prng.chance(self.duplication) { 2 } else { 1 };
        for _ in 0..copies {
            let late = match self.jitter.as_nanos() {
                0 => Duration::ZERO,
                bound => Duration::from_nanos(self.prng.below(bound)),
            };
            self.order += 1;
            self.in_flight.insert((self.now + self.delays[path] + late, self.order), (side, segment.clone()));
        }
    }

    /// Sends a hand-made segment of `side`.
    pub fn forge(&mut self, side: Side, segment: Segment) {
        self.order += 1;
        self.in_flight.insert((self.now, self.order), (side, segment));
    }

    /// Processes all events until `end`.
    pub fn run_until(&mut self, end: Instant) {
        self.flush(Side::Client);
        self.flush(Side::Server);
        loop {
            let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
            let timeouts = [self.client.poll_timeout(), self.server.poll_timeout()];
            let next = timeouts.into_iter().chain([arrival]).flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (from, segment)) = self.in_flight.pop_first().unwrap();
                let to = if from == Side::Client { Side::Server } else { Side::Client };
                let now = self.now;
                self.endpoint(to).handle_segment(segment, now);
            }
            let now = self.now;
            self.client.handle_timeout(now);
            self.server.handle_timeout(now);
            self.flush(Side::Client);
            self.flush(Side::Server);
        }
        self.now = self.now.max(end);
    }

    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Returns the logged segments for which `is_it` holds.
    pub fn logged(&self, is_it: impl Fn(Side, &Segment) -> bool) -> Vec<&Segment> {
        let log = self.log.as_ref().expect("the test asked for a log");
        log.iter().filter(|(_, side, segment)| is_it(*side, segment)).map(|(.., segment)| segment).collect()
    }

    /// Sends one megabyte in each direction, then closes both sides gracefully and checks that no state remains.
    pub fn exchange_and_close(&mut self, client: ConnectionId, server: ConnectionId) {
        const BYTES: u64 = 1 << 20;
        let down = self.transfer(Side::Server, server, client, BYTES);
        assert_pattern(&down, BYTES);
        let up = self.transfer(Side::Client, client, server, BYTES);
        assert_pattern(&up, BYTES);
        self.assert_released(client, server);
    }

    /// Releases the closed connections and checks that no state remains.
    pub fn assert_released(&mut self, client: ConnectionId, server: ConnectionId) {
        self.client.release(client);
        self.server.release(server);
        self.run_for(Duration::from_secs(400));
        let nothing = Footprint { connections: 0, four_tuples: 0, tokens: 0 };
        assert_eq!((self.client.footprint(), self.server.footprint()), (nothing, nothing));
    }

    /// Sends `bytes` octets of a pattern from one side, ends its stream, and returns the data that the other side
    /// received.
    pub fn transfer(&mut self, from: Side, sender: ConnectionId, receiver: ConnectionId, bytes: u64) -> Vec<Payload> {
        let deadline = self.now + Duration::from_secs(600);
        let (mut written, mut received) = (0, Vec::new());
        let mut finished = false;
        while self.now < deadline {
            let now = self.now;
            while written < bytes {
                let piece = pattern(written, (bytes - written).min(1 << 20) as u32);
                let taken = self.endpoint(from).send(sender, piece, now).unwrap() as u64;
                written += taken;
                if taken == 0 {
                    break;
                }
            }
            if written == bytes && !finished {
                finished = true;
                self.endpoint(from).shutdown(sender, now).unwrap();
            }
            let to = if from == Side::Client { Side::Server } else { Side::Client };
            loop {
                match self.endpoint(to).recv(receiver, usize::MAX, now).unwrap() {
                    Received::Data(payload) => received.push(payload),
                    Received::Pending => break,
                    Received::Finished => return received,
                }
            }
            self.run_for(Duration::from_millis(10));
        }
        panic!(
            "not finished: {:#?}\n{:#?}",
            self.client.connections().map(|id| self.client.stats(id)).collect::<Vec<_>>(),
            self.server.connections().map(|id| self.server.stats(id)).collect::<Vec<_>>()
        );
    }
}

pub fn pattern(offset: u64, len: u32) -> Payload {
    Payload::Pattern(Pattern { stream: 1, offset, len })
}

/// Asserts that `pieces` are the first `bytes` octets of the pattern, in order.
pub fn assert_pattern(pieces: &[Payload], bytes: u64) {
    let mut offset = 0;
    for piece in pieces {
        assert_eq!(*piece, pattern(offset, piece.len() as u32));
        offset += piece.len() as u64;
    }
    assert_eq!(offset, bytes);
}

/// Removes the MPTCP options, as some middleboxes do.
pub fn strip(mut segment: Segment) -> Segment {
    segment.options.mptcp.clear();
    segment
}

/// Loses the first segment for which `is_it` holds.
pub fn lose_first(mut is_it: impl FnMut(Side, &Segment) -> bool + 'static) -> Option<Interfere> {
    lose_first_n(1, move |side, segment| is_it(side, segment))
}

/// Loses the first `n` segments for which `is_it` holds.
pub fn lose_first_n(n: u32, mut is_it: impl FnMut(Side, &Segment) -> bool + 'static) -> Option<Interfere> {
    let mut left = n;
    Some(Box::new(move |side, segment, _| {
        if left > 0 && is_it(side, &segment) {
            left -= 1;
            return None;
        }
        Some(segment)
    }))
}

/// Changes segments in transit.
pub fn change(mut how: impl FnMut(Side, &mut Segment) + 'static) -> Option<Interfere> {
    Some(Box::new(move |side, mut segment, _| {
        how(side, &mut segment);
        Some(segment)
    }))
}

pub fn is_syn(segment: &Segment) -> bool {
    segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK)
}

pub fn is_syn_ack(segment: &Segment) -> bool {
    segment.flags.contains(Flags::SYN | Flags::ACK)
}

pub fn is_rst(segment: &Segment) -> bool {
    segment.flags.contains(Flags::RST)
}

/// Whether the segment is an ACK and nothing else.
pub fn is_pure_ack(segment: &Segment) -> bool {
    segment.flags.0 & !Flags::PSH.0 == Flags::ACK.0 && segment.payload.is_empty()
}

pub fn capable(segment: &Segment) -> Option<&MpCapable> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Capable(capable) => Some(capable),
        _ => None,
    })
}

pub fn join(segment: &Segment) -> Option<&MpJoin> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Join(join) => Some(join),
        _ => None,
    })
}

pub fn dss(segment: &Segment) -> Option<&Dss> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Dss(dss) => Some(dss),
        _ => None,
    })
}

pub fn has_option(segment: &Segment, is_it: impl FnMut(&MptcpOption) -> bool) -> bool {
    segment.options.mptcp.iter().any(is_it)
}

/// Returns the path of a segment: that of the client's address.
pub fn path_of(side: Side, segment: &Segment) -> usize {
    let client = if side == Side::Client { segment.src } else { segment.dst };
    let last = match client {
        SocketAddr::V4(address) => address.ip().octets()[3],
        SocketAddr::V6(address) => address.ip().octets()[15],
    };
    usize::from(last) - 1
}
