//! Hosts other than the engine: a sender with a fixed window and a receiver that acknowledges every second segment.

use core::net::SocketAddr;

use network::{Link, PathEnds, TwoHosts};
use simulator::{Host, Simulation};
use units::{Duration, Instant, SeqNr};
use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
use wire::{Flags, Pattern, Payload, Segment, Timestamps};

pub const MSS: u32 = 1400;

/// A sender on the client's side, or a receiver on the server's.
pub enum Dummy {
    Sender(Sender),
    Receiver(Receiver),
}

/// Always keeps `window_segments` in flight on each path; restarts after a silence.
pub struct Sender {
    flows: Vec<Flow>,
    window_segments: u32,
    retry: Duration,
    next_flow: usize,
    pub timeouts: u64,
}

struct Flow {
    local: SocketAddr,
    remote: SocketAddr,
    next: SeqNr,
    acked: SeqNr,
    deadline: Instant,
}

#[derive(Default)]
pub struct Receiver {
    pub data_segments: u64,
    answers: Vec<Segment>,
}

/// Creates a simulation with `links`, one path each.
pub fn simulation(links: Vec<Link>, window_segments: u32, seed: u64) -> Simulation<Dummy> {
    let wired = links.into_iter().fold(TwoHosts::new(seed), TwoHosts::path).build();
    let flow = |path: &PathEnds| Flow {
        local: SocketAddr::new(path.client, 1000),
        remote: SocketAddr::new(path.server, 80),
        next: SeqNr(1),
        acked: SeqNr(1),
        deadline: Instant::ZERO,
    };
    let flows = wired.paths.iter().map(flow).collect();
    let sender = Sender { flows, window_segments, retry: Duration::from_secs(1), next_flow: 0, timeouts: 0 };
    let mut simulation = Simulation::new(wired.network);
    simulation.attach(wired.client, Dummy::Sender(sender));
    simulation.attach(wired.server, Dummy::Receiver(Receiver::default()));
    simulation
}

impl Sender {
    fn transmit(&mut self, now: Instant) -> Option<Segment> {
        for _ in 0..self.flows.len() {
            let flow = &mut self.flows[self.next_flow];
            if flow.next.since(flow.acked) < self.window_segments * MSS {
                flow.deadline = now + self.retry;
                return Some(flow.data());
            }
            self.next_flow = (self.next_flow + 1) % self.flows.len();
        }
        None
    }

    fn handle_timeout(&mut self, now: Instant) {
        for flow in self.flows.iter_mut().filter(|flow| flow.deadline <= now) {
            self.timeouts += 1;
            flow.next = flow.acked;
            flow.deadline = now + self.retry;
        }
    }

    fn handle_ack(&mut self, segment: &Segment, now: Instant) {
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.local == segment.dst) {
            flow.acked = flow.acked.max(segment.ack);
            flow.deadline = now + self.retry;
        }
    }
}

impl Flow {
    fn data(&mut self) -> Segment {
        let mut segment = Segment::new(self.local, self.remote);
        segment.seq = self.next;
        segment.flags = Flags::ACK;
        segment.payload = Payload::Pattern(Pattern { stream: 1, len: MSS, offset: u64::from(self.next.0) });
        segment.options.timestamps = Some(Timestamps { value: self.next.0, echo: self.acked.0 });
        let mapping = Mapping { dsn: DataSeq::Short(self.next.0), ssn: self.next.0, len: MSS as u16, checksum: None };
        let dss = Dss { data_ack: None, mapping: Some(mapping), data_fin: false };
        segment.options.mptcp.push(MptcpOption::Dss(dss));
        self.next += MSS;
        segment
    }
}

impl Receiver {
    fn handle_data(&mut self, segment: &Segment) {
        self.data_segments += 1;
        if segment.seq.0 / MSS % 2 == 1 {
            let mut answer = Segment::new(segment.dst, segment.src);
            answer.flags = Flags::ACK;
            answer.ack = segment.end();
            answer.options.timestamps = segment.options.timestamps;
            self.answers.push(answer);
        }
    }
}

impl Host for Dummy {
    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        match self {
            Self::Sender(sender) => sender.handle_ack(segment, now),
            Self::Receiver(receiver) => receiver.handle_data(segment),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Self::Sender(sender) = self {
            sender.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let next = match self {
            Self::Sender(sender) => sender.transmit(now),
            Self::Receiver(receiver) => receiver.answers.pop(),
        };
        let Some(next) = next else { return false };
        *segment = next;
        true
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        match self {
            Self::Sender(sender) => sender.flows.iter().map(|flow| flow.deadline).min(),
            Self::Receiver(_) => None,
        }
    }
}
