//! One endpoint against a peer that a test plays by hand, segment by segment.
//!
//! A segment is a line of text, with sequence numbers relative to the initial ones (a SYN is 0, the first octet is 1):
//!
//! ```text
//! SA 0 ack 1 win 65535 mss 1000 sackok        A 1+1000 ack 1 sack 3001-4001        R 1        AE 1 ack 2001
//! ```
//!
//! Flags come first, then the sequence number, with the octets of payload behind a plus. Sent segments are printed in
//! the same form, so an expectation reads like an injection. PSH, windows and timestamps are not printed: a test can
//! inspect them in the segment that [`Script::expect`] returns. The words of MPTCP are in `mptcp.rs`.
//!
//! Lines for the second and later subflows start with a number, in the order of opening: `2: S 0 join`.

pub mod mptcp;

use std::collections::VecDeque;
use std::fmt::Write;
use std::net::SocketAddr;

use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, Footprint, ListenerId, Received};
use units::{Duration, Instant, SeqNr};
use wire::{Ecn, Flags, Pattern, Payload, SackBlock, Segment, Timestamps, TooBig};

/// Start of the peer's sequence numbers: they wrap soon.
const PEER_ISS: SeqNr = SeqNr(u32::MAX - 1500);

const LETTERS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('A', Flags::ACK),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('C', Flags::CWR),
];

/// One four-tuple.
#[derive(Clone, Copy)]
struct Flow {
    local: SocketAddr,
    peer: SocketAddr,
    iss: SeqNr,
    known: mptcp::KnownFlow,
}

/// An endpoint with one connection, and the hand-played peer.
pub struct Script {
    pub endpoint: Endpoint,
    pub now: Instant,
    connection: Option<ConnectionId>,
    listener: Option<ListenerId>,
    flows: Vec<Flow>,
    pub known: mptcp::Known,
    sent: VecDeque<(Instant, Segment)>,
    pub events: Vec<Event>,
    written: u64,
}

/// Plain TCP with an MSS of 1000 octets and without timestamps, for round numbers.
pub fn config() -> ConnectionConfig {
    ConnectionConfig { mptcp: false, timestamps: false, mtu: 1040, ..ConnectionConfig::default() }
}

/// As [`config`], with MPTCP; 20 of the 1000 octets are the DSS's.
pub fn mptcp_config() -> ConnectionConfig {
    ConnectionConfig { mptcp: true, path_manager: "manual".into(), nagle: false, ..config() }
}

impl Flow {
    fn new(local: SocketAddr, peer: SocketAddr) -> Self {
        Self { local, peer, iss: SeqNr(0), known: mptcp::KnownFlow::default() }
    }
}

impl Script {
    fn new(local: &str, peer: &str) -> Self {
        Self {
            endpoint: Endpoint::with_seed(EndpointConfig::default(), 1),
            now: Instant::ZERO,
            connection: None,
            listener: None,
            flows: vec![Flow::new(local.parse().unwrap(), peer.parse().unwrap())],
            known: mptcp::Known::default(),
            sent: VecDeque::new(),
            events: Vec::new(),
            written: 0,
        }
    }

    /// Opens actively. The SYN is the first segment to expect.
    pub fn connect(config: ConnectionConfig) -> Self {
        let mut script = Self::new("10.0.0.1:4000", "10.0.0.2:80");
        let (local, peer) = (script.flows[0].local, script.flows[0].peer);
        script.connection = Some(script.endpoint.connect(local, peer, config, Instant::ZERO).unwrap());
        script.flush();
        script
    }

    /// Waits for a SYN.
    pub fn listen(config: ConnectionConfig) -> Self {
        let mut script = Self::new("10.0.0.1:80", "10.0.0.2:4000");
        let local = script.flows[0].local;
        script.listener = Some(script.endpoint.listen(local, config).unwrap());
        script
    }

    /// Opens a connection actively and establishes it. The peer's SYN/ACK came 100 ms after the SYN: SRTT is 100 ms,
    /// RTTVAR 50 ms, RTO 300 ms.
    pub fn established(config: ConnectionConfig, peer_options: &str) -> Self {
        let mut script = Self::connect(config);
        script.sent.pop_front().expect("a SYN");
        script.run_until(100);
        script.inject(&format!("SA 0 ack 1 {peer_options}"));
        script.expect("A 1 ack 1");
        script
    }

    /// With SACK, a window of 65535 octets and the MSS of [`config`].
    pub fn ready() -> Self {
        Self::established(config(), "win 65535 mss 1000 sackok")
    }

    /// Creates a connection of [`mptcp_config`] that the peer opened. The next octet of either side is 1.
    pub fn accepted() -> Self {
        let mut script = Self::listen(mptcp_config());
        script.inject("S 0 mss 1000 sackok mpc");
        script.expect("SA 0 ack 1 mpc");
        script.inject("A 1 ack 1 mpc");
        script.expect("A 1 ack 1 dack 1");
        script
    }

    /// Returns why the connection ended, if its owner got that event.
    pub fn closed(&self) -> Option<CloseReason> {
        self.events.iter().find_map(|event| match event {
            Event::Closed { reason, .. } => Some(*reason),
            _ => None,
        })
    }

    /// The owner releases the connection; `ms` milliseconds later the endpoint holds nothing.
    #[track_caller]
    pub fn assert_nothing_left(&mut self, ms: u64) {
        self.endpoint.release(self.id());
        self.run_for(ms);
        assert_eq!(self.endpoint.footprint(), Footprint { connections: 0, four_tuples: 0, tokens: 0 });
    }

    fn flush(&mut self) {
        while let Some(segment) = self.endpoint.poll_transmit(self.now) {
            self.learn(&segment);
            self.sent.push_back((self.now, segment));
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push(event);
        }
        if let Some(connection) = self.listener.and_then(|listener| self.endpoint.accept(listener)) {
            self.connection = Some(connection);
        }
    }

    fn learn(&mut self, segment: &Segment) {
        let f = self.flow_of(segment).unwrap_or_else(|| {
            self.flows.push(Flow::new(segment.src, segment.dst));
            self.flows.len() - 1
        });
        let flow = &mut self.flows[f];
        if segment.flags.contains(Flags::SYN) {
            flow.iss = segment.seq;
        }
        self.known.learn(&mut flow.known, segment);
    }

    /// Returns the flow of a segment that the endpoint sent.
    fn flow_of(&self, segment: &Segment) -> Option<usize> {
        self.flows.iter().position(|flow| flow.local == segment.src && flow.peer == segment.dst)
    }

    /// Adds another flow for the peer to open, from the next port of its address. Returns the number for its lines.
    pub fn new_flow(&mut self) -> usize {
        let Flow { local, mut peer, .. } = self.flows[0];
        peer.set_port(peer.port() + self.flows.len() as u16);
        self.flows.push(Flow::new(local, peer));
        self.flows.len()
    }

    /// Lets time pass until `ms` milliseconds after the start.
    pub fn run_until(&mut self, ms: u64) {
        let end = Instant::from_millis(ms);
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.flush();
        }
        self.now = end;
    }

    pub fn run_for(&mut self, ms: u64) {
        self.run_until(self.now.as_millis() + ms);
    }

    /// Lets time pass, and asserts that nothing is sent.
    pub fn silent_until(&mut self, ms: u64) {
        self.expect_nothing();
        self.run_until(ms);
        self.expect_nothing();
    }

    /// The peer sends.
    pub fn inject(&mut self, text: &str) {
        let segment = self.parse(text);
        self.endpoint.handle_segment(segment, self.now);
        self.flush();
    }

    /// The peer sends a segment, which `change` modifies in transit.
    pub fn inject_with(&mut self, text: &str, change: impl FnOnce(&mut Segment)) {
        let mut segment = self.parse(text);
        change(&mut segment);
        self.endpoint.handle_segment(segment, self.now);
        self.flush();
    }

    /// A router reports that our packet whose data start at `seq`, of 1500 octets, is too big for 1400. `change` may
    /// modify the report.
    pub fn inject_too_big(&mut self, seq: i32, change: impl FnOnce(&mut TooBig)) {
        let flow = &self.flows[0];
        let seq = flow.iss + seq as u32;
        let mut error = TooBig { src: flow.local, dst: flow.peer, seq, packet_bytes: 1500, next_hop_mtu: 1400 };
        change(&mut error);
        self.endpoint.handle_too_big(&error, self.now);
        self.flush();
    }

    /// Returns the next segment sent, and asserts that it looks like `text`.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> Segment {
        let Some((at, segment)) = self.sent.pop_front() else { panic!("expected '{text}', nothing was sent") };
        assert_eq!(self.print(&segment), text, "at {at:?}");
        segment
    }

    /// Lets time pass until `ms`, and asserts that `text` is sent then and nothing before it.
    #[track_caller]
    pub fn expect_at(&mut self, ms: u64, text: &str) -> Segment {
        let waiting: Vec<_> = self.sent.iter().map(|(_, segment)| self.print(segment)).collect();
        assert!(waiting.is_empty(), "unexpected before {ms} ms: {waiting:?}");
        self.run_until(ms);
        let at = self.sent.front().map(|(at, _)| at.as_millis());
        assert_eq!(at, Some(ms), "when '{text}' is sent");
        self.expect(text)
    }

    #[track_caller]
    pub fn expect_nothing(&mut self) {
        let waiting: Vec<_> = self.sent.iter().map(|(at, segment)| (*at, self.print(segment))).collect();
        assert!(waiting.is_empty(), "expected nothing, got {waiting:?}");
    }

    /// Removes the segments that wait to be expected, and returns them as text.
    pub fn drain(&mut self) -> Vec<String> {
        let all: Vec<_> = self.sent.iter().map(|(_, segment)| self.print(segment)).collect();
        self.sent.clear();
        all
    }

    /// Removes the segments that wait to be expected, and returns them.
    pub fn drain_segments(&mut self) -> Vec<Segment> {
        self.sent.drain(..).map(|(_, segment)| segment).collect()
    }

    pub fn id(&self) -> ConnectionId {
        self.connection.expect("a connection")
    }

    /// The application writes `bytes` octets.
    pub fn send(&mut self, bytes: u32) {
        let payload = Payload::Pattern(Pattern { stream: 9, offset: self.written, len: bytes });
        let id = self.id();
        assert_eq!(self.endpoint.send(id, payload, self.now), Ok(bytes as usize));
        self.written += u64::from(bytes);
        self.flush();
    }

    /// Returns the number of octets that the application can read now; `None` once the peer has finished.
    pub fn recv(&mut self, max: usize) -> Option<usize> {
        let id = self.id();
        let mut total = 0;
        let read = loop {
            match self.endpoint.recv(id, max - total, self.now).unwrap() {
                Received::Data(payload) => total += payload.len(),
                Received::Finished if total == 0 => break None,
                _ => break Some(total),
            }
            if total == max {
                break Some(total);
            }
        };
        self.flush();
        read
    }

    pub fn shutdown(&mut self) {
        let id = self.id();
        self.endpoint.shutdown(id, self.now).unwrap();
        self.flush();
    }

    pub fn close(&mut self) {
        let id = self.id();
        self.endpoint.close(id, self.now).unwrap();
        self.flush();
    }

    pub fn abort(&mut self) {
        let id = self.id();
        self.endpoint.abort(id, self.now).unwrap();
        self.flush();
    }

    /// Any other command of the application.
    pub fn command<T>(&mut self, command: impl FnOnce(&mut Endpoint, ConnectionId, Instant) -> T) -> T {
        let id = self.id();
        let result = command(&mut self.endpoint, id, self.now);
        self.flush();
        result
    }

    /// Returns the state of the TCB by RFC 9293's name.
    pub fn state(&self) -> &'static str {
        let stats = self.endpoint.stats(self.id()).expect("statistics");
        stats.subflows[0].state
    }

    pub fn stats(&self) -> transport::SubflowStats {
        self.endpoint.stats(self.id()).expect("statistics").subflows[0].clone()
    }

    fn print(&self, segment: &Segment) -> String {
        let shown = |flag: Flags| segment.flags.contains(flag) && flag != Flags::PSH;
        let f = self.flow_of(segment).expect("it was learnt when it was sent");
        let mut text = if f > 0 { format!("{}: ", f + 1) } else { String::new() };
        text.extend(LETTERS.iter().filter(|(_, flag)| shown(*flag)).map(|(letter, _)| *letter));
        write!(text, " {}", segment.seq.since(self.flows[f].iss)).unwrap();
        if !segment.payload.is_empty() {
            write!(text, "+{}", segment.payload.len()).unwrap();
        }
        if segment.flags.contains(Flags::ACK) {
            write!(text, " ack {}", segment.ack.since(PEER_ISS)).unwrap();
        }
        for block in &segment.options.sack {
            write!(text, " sack {}-{}", block.start.since(PEER_ISS), block.end.since(PEER_ISS)).unwrap();
        }
        if segment.ecn == Ecn::Capable0 {
            text.push_str(" ect");
        }
        self.known.print(segment, &mut text);
        text
    }

    fn parse(&self, text: &str) -> Segment {
        let (f, text) = match text.split_once(": ") {
            Some((number, text)) => (number.parse::<usize>().unwrap() - 1, text),
            None => (0, text),
        };
        let Flow { local, peer, iss, known } = self.flows[f];
        let mut segment = Segment::new(peer, local);
        segment.window = 65535;
        let mut words = text.split_whitespace();
        for letter in words.next().unwrap().chars() {
            let (_, flag) = LETTERS.iter().find(|(known, _)| *known == letter).expect("a known flag");
            segment.flags |= *flag;
        }
        let place = words.next().unwrap();
        let (seq, len) = place.split_once('+').unwrap_or((place, "0"));
        segment.seq = PEER_ISS + seq.parse::<i32>().unwrap() as u32;
        let len: u32 = len.parse().unwrap();
        if len > 0 {
            let offset = u64::from(segment.seq.since(PEER_ISS + 1));
            segment.payload = Payload::Pattern(Pattern { stream: 7, offset, len });
        }
        while let Some(word) = words.next() {
            let mut number = || words.next().unwrap().parse::<u32>().unwrap();
            match word {
                "ack" => segment.ack = iss + words.next().unwrap().parse::<i32>().unwrap() as u32,
                "win" => segment.window = number() as u16,
                "mss" => segment.options.mss = Some(number() as u16),
                "wscale" => segment.options.window_scale = Some(number() as u8),
                "sackok" => segment.options.sack_permitted = true,
                "ts" => segment.options.timestamps = Some(Timestamps { value: number(), echo: number() }),
                "ce" => segment.ecn = Ecn::CongestionExperienced,
                "sack" => {
                    let (start, end) = words.next().unwrap().rsplit_once('-').unwrap();
                    let at = |text: &str| iss + text.parse::<i64>().unwrap() as u32;
                    segment.options.sack.push(SackBlock { start: at(start), end: at(end) });
                }
                "mpc" => segment.options.mptcp.push(self.known.capable(&segment)),
                "join" => segment.options.mptcp.push(self.known.join(&known, &segment)),
                "dack" => {
                    let ack = self.known.data_ack(number().into());
                    mptcp::signal(&mut segment).data_ack = ack;
                }
                "map" => {
                    let (ssn, len) = (segment.seq.since(PEER_ISS), segment.payload.len() as u16);
                    let mapping = mptcp::mapping(number().into(), ssn, len);
                    mptcp::signal(&mut segment).mapping = Some(mapping);
                }
                "dfin" => mptcp::end_stream(&mut segment, || number().into()),
                other => panic!("unknown word '{other}' in '{text}'"),
            }
        }
        segment
    }
}

/// Returns a duration in the engine's own unit.
pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
