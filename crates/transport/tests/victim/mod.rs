//! An endpoint between an honest client and forgers: whatever the forgers do, the honest connection continues.

use std::net::SocketAddr;

use transport::path_manager::LocalAddress;
use transport::{
    ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, EndpointConfig, Event, ListenerId, Received,
};
use units::{Duration, Instant};
use wire::{Flags, Pattern, Payload, Segment};

use crate::forger::{Flow, Forger};

pub const PORT: u16 = 80;
/// Maximum number of segments that one event may cause before time passes.
const BURST_MAX: usize = 20_000;

/// The endpoint under attack.
pub struct Victim {
    pub endpoint: Endpoint,
    pub now: Instant,
    pub listener: ListenerId,
    /// Segments to anyone but the honest client that the test has not taken yet.
    pub sent: Vec<Segment>,
    pub events: Vec<Event>,
    honest: Endpoint,
    /// (the client's, the victim's) end of the honest connection.
    honest_ids: (ConnectionId, ConnectionId),
    next_port: u16,
}

fn honest_ip() -> SocketAddr {
    SocketAddr::from(([10, 8, 0, 1], 0))
}

pub fn victim_address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], PORT))
}

impl Victim {
    pub fn new(config: &ConnectionConfig) -> Self {
        Self::with_limits(config, EndpointConfig::default())
    }

    pub fn with_limits(config: &ConnectionConfig, limits: EndpointConfig) -> Self {
        let local_addresses = vec![LocalAddress { ip: victim_address(1).ip(), backup: false }];
        let mut endpoint = Endpoint::with_seed(EndpointConfig { local_addresses, ..limits }, 1);
        let listener = endpoint.listen(SocketAddr::from(([0, 0, 0, 0], PORT)), config.clone()).unwrap();
        let mut honest = Endpoint::with_seed(EndpointConfig::default(), 2);
        let now = Instant::from_secs(1);
        let client = honest.connect(honest_ip(), victim_address(1), config.clone(), now).unwrap();
        // The victim's end is known after the first exchange.
        let mut victim = Self {
            endpoint,
            now,
            listener,
            sent: Vec::new(),
            events: Vec::new(),
            honest,
            honest_ids: (client, client),
            next_port: 1024,
        };
        victim.exchange();
        victim.honest_ids.1 = victim.endpoint.accept(listener).expect("the honest client is connected");
        victim
    }

    /// Exchanges segments between the victim and the honest client at once, and keeps all others.
    fn exchange(&mut self) {
        for _ in 0..BURST_MAX {
            while let Some(event) = self.endpoint.poll_event() {
                self.events.push(event);
            }
            while self.honest.poll_event().is_some() {}
            if let Some(segment) = self.honest.poll_transmit(self.now) {
                self.endpoint.handle_segment(segment, self.now);
            } else if let Some(segment) = self.endpoint.poll_transmit(self.now) {
                if segment.dst.ip() == honest_ip().ip() {
                    self.honest.handle_segment(segment, self.now);
                } else {
                    self.sent.push(segment);
                }
            } else {
                return;
            }
        }
        panic!("poll_transmit does not end");
    }

    /// Delivers a segment of a forger. Returns the victim's answers.
    pub fn inject(&mut self, segment: Segment) -> Vec<Segment> {
        self.endpoint.handle_segment(segment, self.now);
        self.exchange();
        core::mem::take(&mut self.sent)
    }

    /// Lets time pass. Returns the segments that the victim sends in the meantime.
    pub fn wait(&mut self, span: Duration) -> Vec<Segment> {
        let end = self.now + span;
        loop {
            self.exchange();
            let next = [self.endpoint.poll_timeout(), self.honest.poll_timeout()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.endpoint.handle_timeout(self.now);
            self.honest.handle_timeout(self.now);
        }
        self.now = end;
        core::mem::take(&mut self.sent)
    }

    /// Returns a flow from an unused address and port.
    pub fn new_flow(&mut self) -> Flow {
        self.next_port += 1;
        Flow::new(SocketAddr::from(([10, 9, 0, 1], self.next_port)), victim_address(1), 1000)
    }

    /// Creates an established and accepted connection of a forger.
    pub fn connect(&mut self, mptcp: bool) -> (Forger, ConnectionId) {
        self.connect_as(Forger::new(mptcp, 0xf0f0))
    }

    pub fn connect_as(&mut self, mut forger: Forger) -> (Forger, ConnectionId) {
        let flow = self.new_flow();
        forger.flows.push(flow);
        self.play(&mut forger, |forger, now| forger.syn(0, now));
        self.play(&mut forger, |forger, now| forger.third_ack(0, now));
        self.play(&mut forger, |forger, now| forger.ack(0, now));
        let id = self.endpoint.accept(self.listener).expect("the forger is connected");
        (forger, id)
    }

    /// Lets the victim open a connection to a forger, up to its third ACK.
    pub fn connect_out(&mut self, config: ConnectionConfig) -> (Forger, ConnectionId) {
        let mut forger = Forger::new(true, 0xf0f0);
        let mut flow = self.new_flow();
        let id = self.endpoint.connect(SocketAddr::new(flow.remote.ip(), 0), flow.local, config, self.now).unwrap();
        let syn = self.wait(Duration::ZERO).remove(0);
        flow.remote = syn.src;
        forger.flows.push(flow);
        forger.learn(&syn);
        self.play(&mut forger, |forger, now| forger.syn_ack(0, now));
        (forger, id)
    }

    /// Opens another flow of a forger, up to the victim's SYN/ACK.
    pub fn begin_join(&mut self, forger: &mut Forger) -> usize {
        let flow = self.new_flow();
        forger.flows.push(flow);
        let f = forger.flows.len() - 1;
        self.play(forger, |forger, now| forger.join_syn(f, now));
        f
    }

    /// Opens another flow of a forger, ready for data.
    pub fn join(&mut self, forger: &mut Forger) -> usize {
        let f = self.begin_join(forger);
        self.play(forger, |forger, now| forger.join_ack(f, now));
        f
    }

    /// The forger sends a segment and learns from the answer.
    pub fn play(&mut self, forger: &mut Forger, segment: impl FnOnce(&Forger, Instant) -> Segment) -> Vec<Segment> {
        let answers = self.inject(segment(forger, self.now));
        for answer in &answers {
            forger.learn(answer);
        }
        answers
    }

    /// Sends the next `len` octets of the forger's stream on flow `f`, as an honest peer would.
    pub fn send_data(&mut self, forger: &mut Forger, f: usize, len: u16) -> Vec<Segment> {
        let answers = self.play(forger, |forger, now| forger.data(f, len, now));
        forger.sent(f, len);
        answers
    }

    /// Reads everything available from a connection, checks it against `forger`'s stream, and returns the number of
    /// octets.
    pub fn read(&mut self, id: ConnectionId, forger: &Forger, mut offset: u64) -> u64 {
        let start = offset;
        while let Ok(Received::Data(payload)) = self.endpoint.recv(id, usize::MAX, self.now) {
            let expected = forger.stream(crate::forger::keys::first_dsn(forger.key) + offset, payload.len() as u32);
            assert_eq!(payload.to_bytes(), expected.to_bytes(), "the stream from {offset} on");
            offset += payload.len() as u64;
        }
        offset - start
    }

    pub fn stats(&self, id: ConnectionId) -> ConnectionStats {
        self.endpoint.stats(id).expect("the connection was not released")
    }

    /// Asserts that the honest connection carries data both ways without loss.
    pub fn assert_honest_goes_on(&mut self) {
        const BYTES: u64 = 200_000;
        let (client, server) = self.honest_ids;
        let now = self.now;
        let base = self.honest.stats(client).unwrap().written_bytes;
        let data = Payload::Pattern(Pattern { stream: 3, offset: base, len: BYTES as u32 });
        assert_eq!(self.honest.send(client, data.clone(), now), Ok(BYTES as usize));
        assert_eq!(self.endpoint.send(server, data.clone(), now), Ok(BYTES as usize));
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            let sent = self.wait(Duration::from_millis(5));
            self.sent.extend(sent);
            let now = self.now;
            if let Ok(Received::Data(payload)) = self.endpoint.recv(server, usize::MAX, now) {
                up.extend_from_slice(&payload.to_bytes());
            }
            if let Ok(Received::Data(payload)) = self.honest.recv(client, usize::MAX, now) {
                down.extend_from_slice(&payload.to_bytes());
            }
            if up.len() as u64 == BYTES && down.len() as u64 == BYTES {
                break;
            }
        }
        assert!(up == data.to_bytes() && down == data.to_bytes(), "{} up, {} down", up.len(), down.len());
    }
}

/// Returns the number of `segments` that are resets.
pub fn resets(segments: &[Segment]) -> usize {
    segments.iter().filter(|segment| segment.flags.contains(Flags::RST)).count()
}
