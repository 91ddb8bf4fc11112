//! Turns the segments of a run into the events of its connections.

use core::cell::RefCell;
use core::net::SocketAddr;
use std::rc::Rc;

use sha2::{Digest, Sha256};
use simulator::{Direction, HostId, Interface, Tap};
use units::{Dsn, Instant, SeqNr};
use wire::mptcp::{Dss, Key, Mapping, MpJoin, MptcpOption, Token};
use wire::{Flags, Segment};

use super::{Acked, ActiveSet, Arrival, Collector, Sent};

/// A collector that a tap and its owner share.
pub type Shared = Rc<RefCell<Collector>>;

/// Watches what a source sends and what a destination receives, and informs the collectors: one for each connection
/// that the destination opens, in order. It does not follow connections beyond these.
///
/// Subflows are numbered in the order in which the destination opens them, as its engine numbers them.
///
/// It yields [`Sent`], [`Arrival`] and [`Acked`]. The application reports deliveries, and the policy its active set.
/// Without such a policy ([`Self::counting_subflows`]), the open subflows count as active: from the source's SYN until
/// either side sends FIN or RST. The DSS tells where data belong in the stream. Without one, as in plain TCP and after
/// a fallback, their place in the subflow does, if the connection only ever had that subflow. All other data count as
/// throughput only. The observer does not undo address translation.
#[derive(Debug)]
pub struct Observer {
    source: HostId,
    destination: HostId,
    connections: Vec<Connection>,
    opened: usize,
    flows: Flows,
    /// Port of the source whose connections are ignored.
    ignored_port: Option<u16>,
    /// Whether it reports the active set.
    counts_subflows: bool,
}

#[derive(Debug)]
struct Connection {
    collector: Shared,
    /// Data sequence number of the first octet of the source's data.
    start: Option<Dsn>,
    tokens: Vec<Token>,
    /// Number of subflows begun; `open` of them are open now.
    subflows: usize,
    open: u64,
    /// Position of its latest data, near which short data sequence numbers are expanded.
    near: u64,
}

/// All subflows, by their ends.
#[derive(Debug)]
struct Flows {
    all: Vec<Flow>,
    /// Latest index found, by a few bits of the destination's end: flows are few, and every segment looks one up.
    hints: [usize; 64],
}

/// The destination's and the source's ends of a subflow.
type Ends = (SocketAddr, SocketAddr);

/// One subflow. Positions count from the source's SYN, which has position 0; the first octet of data has position 1.
#[derive(Debug)]
struct Flow {
    ends: Ends,
    connection: usize,
    subflow: usize,
    /// Sequence number of the source's SYN as it was sent.
    isn: Option<SeqNr>,
    /// Sequence number of the source's SYN as it arrived: a relay that splices subflows uses numbers of its own.
    arrival_isn: Option<SeqNr>,
    is_open: bool,
    /// Position after the last octet sent.
    end: u64,
    acked: u64,
}

/// Place of a segment's data: position in the stream, if known, and number of octets.
type Place = (Option<u64>, u32);

impl Observer {
    /// Watches data from `source` to `destination`, for as many connections as there are collectors.
    pub fn new(source: HostId, destination: HostId, collectors: impl IntoIterator<Item = Shared>) -> Self {
        let connections = collectors.into_iter().map(Connection::new).collect();
        Self {
            source,
            destination,
            connections,
            opened: 0,
            flows: Flows { all: Vec::new(), hints: [0; 64] },
            ignored_port: None,
            counts_subflows: false,
        }
    }

    /// Ignores connections to `port` of the source.
    pub fn but_not_port(self, port: u16) -> Self {
        Self { ignored_port: Some(port), ..self }
    }

    /// Reports the active set if `counts_subflows`.
    pub fn counting_subflows(self, counts_subflows: bool) -> Self {
        Self { counts_subflows, ..self }
    }

    /// Handles a SYN, which begins a connection or joins one.
    fn open(&mut self, ends: Ends, segment: &Segment) {
        let (_, at_source) = ends;
        let is_ignored = self.ignored_port == Some(at_source.port());
        if segment.flags.contains(Flags::ACK) || is_ignored || self.flows.find(ends).is_some() {
            return;
        }
        let connection = match join_token(segment) {
            Some(token) => self.connections.iter().position(|connection| connection.tokens.contains(&token)),
            None => {
                self.opened += 1;
                Some(self.opened - 1)
            }
        };
        let known = connection.and_then(|connection| Some((connection, self.connections.get_mut(connection)?)));
        if let Some((connection, known)) = known {
            let subflow = known.subflows;
            known.subflows += 1;
            let flow =
                Flow { ends, connection, subflow, isn: None, arrival_isn: None, is_open: false, end: 1, acked: 1 };
            self.flows.all.push(flow);
        }
    }

    fn source_sends(&mut self, at: Instant, segment: &Segment) {
        let ends = (segment.dst, segment.src);
        if segment.flags.contains(Flags::SYN) {
            self.open(ends, segment);
        }
        let Some(flow) = self.flows.find(ends) else { return };
        let connection = &mut self.connections[flow.connection];
        if segment.flags.contains(Flags::SYN) {
            flow.handshake(segment.seq);
            connection.learn(segment, true);
        }
        let Some(position) = flow.position_of_data(segment, flow.isn) else { return };
        flow.end = flow.end.max(position + segment.payload.len() as u64);
        if let (Some(dsn), len) = connection.place(flow, position, segment) {
            connection.near = dsn;
            connection.collector.borrow_mut().sent(&Sent { at, subflow: flow.subflow, dsn, len });
        }
    }

    fn destination_receives(&mut self, at: Instant, segment: &Segment) {
        let Some(flow) = self.flows.find((segment.dst, segment.src)) else { return };
        if segment.flags.contains(Flags::SYN) && flow.arrival_isn.replace(segment.seq) != Some(segment.seq) {
            self.connections[flow.connection].count(flow, true, at, self.counts_subflows);
        }
        let Some(position) = flow.position_of_data(segment, flow.arrival_isn) else { return };
        let connection = &self.connections[flow.connection];
        let (dsn, len) = connection.place(flow, position, segment);
        let mut collector = connection.collector.borrow_mut();
        if let Some(dsn) = dsn {
            collector.arrival(&Arrival { at, subflow: flow.subflow, dsn, len });
        }
        let unplaced_bytes = segment.payload.len() as u64 - u64::from(len);
        if unplaced_bytes > 0 {
            collector.unplaced_arrival(at, unplaced_bytes);
        }
    }

    fn source_receives(&mut self, at: Instant, segment: &Segment) {
        let Some(flow) = self.flows.find((segment.src, segment.dst)) else { return };
        let Some(isn) = flow.isn.filter(|_| segment.flags.contains(Flags::ACK)) else { return };
        // A FIN is acknowledged, too, but is no data.
        let acked = unwrap(segment.ack, isn, flow.acked).min(flow.end);
        if acked > flow.acked {
            let event = Acked { at, subflow: flow.subflow, bytes: acked - flow.acked };
            flow.acked = acked;
            self.connections[flow.connection].collector.borrow_mut().acked(&event);
        }
    }

    fn destination_sends(&mut self, segment: &Segment) {
        let ends = (segment.src, segment.dst);
        if segment.flags.contains(Flags::SYN) {
            self.open(ends, segment);
        }
        if let Some(flow) = self.flows.find(ends).filter(|flow| flow.subflow == 0) {
            self.connections[flow.connection].learn(segment, false);
        }
    }
}

impl Observer {
    /// Handles a FIN or RST of either side.
    #[cold]
    fn close(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        let ends = match (interface.host == self.destination, direction) {
            (true, Direction::Sent) | (false, Direction::Received) => (segment.src, segment.dst),
            (true, Direction::Received) | (false, Direction::Sent) => (segment.dst, segment.src),
        };
        if let Some(flow) = self.flows.find(ends) {
            self.connections[flow.connection].count(flow, false, at, self.counts_subflows);
        }
    }
}

impl Tap for Observer {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        if segment.flags.intersects(Flags::FIN | Flags::RST)
            && [self.source, self.destination].contains(&interface.host)
        {
            self.close(at, interface, direction, segment);
        }
        match direction {
            Direction::Sent if interface.host == self.source => self.source_sends(at, segment),
            Direction::Sent if interface.host == self.destination => self.destination_sends(segment),
            Direction::Received if interface.host == self.source => self.source_receives(at, segment),
            Direction::Received if interface.host == self.destination => self.destination_receives(at, segment),
            _ => {}
        }
    }
}

impl Connection {
    fn new(collector: Shared) -> Self {
        Self { collector, start: None, tokens: Vec::new(), subflows: 0, open: 0, near: 0 }
    }

    /// Records that a subflow opens or closes.
    fn count(&mut self, flow: &mut Flow, is_open: bool, at: Instant, tells: bool) {
        if core::mem::replace(&mut flow.is_open, is_open) == is_open {
            return;
        }
        self.open = if is_open { self.open + 1 } else { self.open - 1 };
        if tells {
            self.collector.borrow_mut().active_set(&ActiveSet { at, count: self.open });
        }
    }

    /// Learns the key of the host that sent a segment of a handshake.
    fn learn(&mut self, segment: &Segment, is_source: bool) {
        if self.tokens.len() == 2 {
            return;
        }
        let key = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Capable(capable) => capable.sender_key,
            _ => None,
        });
        let Some((token, initial)) = key.map(derive) else { return };
        if !self.tokens.contains(&token) {
            self.tokens.push(token);
        }
        if is_source {
            self.start = Some(initial + 1);
        }
    }

    fn place(&self, flow: &Flow, position: u64, segment: &Segment) -> Place {
        let len = segment.payload.len() as u32;
        let signal = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(dss) => Some(dss),
            _ => None,
        });
        match signal.and_then(|signal| self.mapped(signal, position, len)) {
            Some((dsn, len)) => (Some(dsn), len),
            None if flow.subflow == 0 && self.subflows == 1 => (Some(position - 1), len),
            None => (None, 0),
        }
    }

    /// Position in the stream, and length, of the part of `len` octets from `position` on that a mapping covers; `None`
    /// if it does not cover the first of them.
    fn mapped(&self, signal: &Dss, position: u64, len: u32) -> Option<(u64, u32)> {
        let Mapping { dsn, ssn, len: mapped, .. } = signal.mapping?;
        let start = self.start?;
        let into = (position as u32).wrapping_sub(ssn);
        let left = u32::from(mapped).checked_sub(u32::from(signal.data_fin))?.checked_sub(into)?;
        let first = dsn.expand(start + self.near);
        (left > 0 && !first.before(start)).then(|| (first.since(start) + u64::from(into), len.min(left)))
    }
}

impl Flows {
    #[inline]
    fn find(&mut self, ends: Ends) -> Option<&mut Flow> {
        let last_octet = match ends.0 {
            SocketAddr::V4(end) => end.ip().octets()[3],
            SocketAddr::V6(end) => end.ip().octets()[15],
        };
        let hint = &mut self.hints[usize::from(ends.0.port() ^ u16::from(last_octet)) % 64];
        if self.all.get(*hint).is_none_or(|flow| flow.ends != ends) {
            *hint = self.all.iter().position(|flow| flow.ends == ends)?;
        }
        self.all.get_mut(*hint)
    }
}

impl Flow {
    /// Handles the source's SYN. One with a new number begins a new subflow between the same ends.
    fn handshake(&mut self, isn: SeqNr) {
        if self.isn.replace(isn) != Some(isn) {
            (self.end, self.acked) = (1, 1);
        }
    }

    /// Position of the first octet of the source's data, whose SYN has number `isn`; `None` without data.
    fn position_of_data(&self, segment: &Segment, isn: Option<SeqNr>) -> Option<u64> {
        let isn = isn.filter(|_| !segment.payload.is_empty())?;
        Some(unwrap(segment.seq, isn, self.end) + u64::from(segment.flags.contains(Flags::SYN))).filter(|at| *at > 0)
    }
}

fn join_token(segment: &Segment) -> Option<Token> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
        _ => None,
    })
}

/// Returns the position nearest to `near` that `seq` can denote; never below zero.
fn unwrap(seq: SeqNr, isn: SeqNr, near: u64) -> u64 {
    let distance = seq.0.wrapping_sub(isn.0.wrapping_add(near as u32)) as i32;
    near.saturating_add_signed(i64::from(distance))
}

/// Token and initial data sequence number of a key (RFC 8684 section 3.2).
fn derive(key: Key) -> (Token, Dsn) {
    let digest: [u8; 32] = Sha256::digest(key.0.to_be_bytes()).into();
    let word = |from: usize| digest[from..from + 8].iter().fold(0_u64, |word, octet| word << 8 | u64::from(*octet));
    (Token((word(0) >> 32) as u32), Dsn(word(24)))
}

#[cfg(test)]
mod tests {
    use network::impairment::Duplicate;
    use network::{Link, LossModel, Path, TwoHosts};
    use simulator::app::Transfer;
    use simulator::{CLIENT, EndpointHost, SERVER, Simulation, Source, two_hosts};
    use transport::{ConnectionConfig, ConnectionStats, SubflowStats};
    use units::{Duration, Rate};

    use super::*;
    use crate::measure::metrics::Settings;

    const STREAM_BYTES: u64 = 2_000_000;

    fn link(rate_mbps: u64, delay_ms: u64) -> Link {
        Link::new(Rate::from_mbps(rate_mbps), Duration::from_millis(delay_ms)).loss(LossModel::uniform(0.01))
    }

    /// Downloads a stream; returns the collector and both hosts' own statistics.
    fn download(topology: TwoHosts, config: &ConnectionConfig) -> (Shared, [ConnectionStats; 2]) {
        let source = Source::pattern(STREAM_BYTES);
        let (mut simulation, _) = two_hosts(topology, 3, |(id, paths), host| {
            let server = SocketAddr::new(paths[0].server, 80);
            if id == SERVER {
                return host.app(Transfer::listen(server, config.clone()).sending(source.clone()));
            }
            let client = SocketAddr::new(paths[0].client, 0);
            host.app(Transfer::connect(client, server, config.clone()).expecting(source.clone()))
        });
        let settings = Settings::papers(Duration::from_millis(500), Rate::from_mbps(3), 1000);
        let collector = Rc::new(RefCell::new(Collector::new(settings)));
        let observer = Observer::new(SERVER, CLIENT, [Rc::clone(&collector)]).counting_subflows(true);
        simulation.add_tap(Box::new(observer));
        simulation.run_while(Instant::from_secs(100), |simulation| simulation.host(CLIENT).reports()[0].completed == 0);
        assert_eq!(simulation.faults(), Vec::<String>::new());
        // Data under way still arrive and are acknowledged.
        let end = simulation.now() + Duration::from_secs(1);
        simulation.run_until(end);
        let stats = [CLIENT, SERVER].map(|host| stats(&simulation, host));
        (collector, stats)
    }

    fn stats(simulation: &Simulation<EndpointHost>, host: HostId) -> ConnectionStats {
        let connection = simulation.host(host).reports()[0].connections[0];
        simulation.host(host).endpoint.stats(connection).expect("the connection is there until its owner lets it go")
    }

    fn check(topology: TwoHosts, config: &ConnectionConfig) -> Shared {
        let (collector, [client, server]) = download(topology, config);
        let total = collector.borrow().totals(Instant::from_secs(8));
        let received: u64 = client.subflows.iter().map(|subflow| subflow.received_bytes).sum();
        assert!(received > STREAM_BYTES, "nothing came twice");
        assert_eq!(total.throughput_bps, Some(received as f64));
        assert_eq!(collector.borrow().in_order_bytes(), STREAM_BYTES);
        // Numbered as at the destination; the source saw them in another order.
        let ends = |subflow: &SubflowStats| (subflow.local, subflow.remote);
        let peer = |(local, remote)| server.subflows.iter().find(|peer| ends(peer) == (remote, local)).unwrap();
        let acked: Vec<_> = client.subflows.iter().map(|subflow| peer(ends(subflow)).acked_bytes).collect();
        assert_eq!(total.acked_bytes, acked);
        collector
    }

    #[test]
    fn two_paths_with_loss_and_duplicates() {
        let path = Path::from(link(5, 60)).each_way(Duplicate::new(0.01));
        let collector = check(TwoHosts::new(1).path(link(10, 20)).path(path), &ConnectionConfig::default());
        let totals = collector.borrow().totals(Instant::from_secs(8));
        // No packet is faster than the shorter path; the longer one takes three times as long, without queues.
        assert!(totals.delay_s.unwrap() > 0.02 && totals.delay_ratio_max.unwrap() > 1.0, "{totals:?}");
        assert!(totals.units > 0 && totals.reordering_peak_bytes > 10_000, "{totals:?}");
    }

    #[test]
    fn plain_tcp() {
        let config = ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
        let path = Path::from(link(10, 20)).each_way(Duplicate::new(0.01));
        let collector = check(TwoHosts::new(1).path(path), &config);
        assert_eq!(collector.borrow().totals(Instant::from_secs(8)).delay_ratio_max, None);
    }

    #[test]
    fn the_subflows_that_are_open_are_counted() {
        let two_paths = || TwoHosts::new(1).path(link(10, 20)).path(link(5, 30));
        let plain = ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
        let one = ConnectionConfig { subflows_max: 1, ..ConnectionConfig::default() };
        for (config, at_least) in [(ConnectionConfig::default(), 2), (plain, 1), (one, 1)] {
            let (collector, [client, _]) = download(two_paths(), &config);
            collector.borrow_mut().end(Instant::from_secs(8));
            let collector = collector.borrow();
            let counts: Vec<u64> = collector.values().iter().map(|window| window.subflows).collect();
            assert_eq!((counts[0], counts.last()), (client.subflows.len() as u64, Some(&0)), "{counts:?}");
            assert!(counts[0] >= at_least);
        }
    }

    #[test]
    fn keys_give_tokens_and_initial_numbers() {
        // SHA-256 of eight zero octets: af5570f5 a1810b7a ... e5b2328d e0e83dfc.
        let (token, initial) = derive(Key(0));
        assert_eq!((token, initial), (Token(0xaf55_70f5), Dsn(0xe5b2_328d_e0e8_3dfc)));
    }
}
