//! Shared parts of the nodes' tests: packets of a given size, and a lane that drives one node.

use core::net::SocketAddr;

use units::Instant;
use wire::{Ecn, Pattern, Payload, Segment};

use crate::{DropCause, Node, Output, Packet};

pub(crate) const CLIENT: SocketAddr =
    SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1)), 1000);
pub(crate) const SERVER: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2)), 80);

/// A segment from client to server with `len` octets of pattern data.
pub(crate) fn segment(len: u32) -> Segment {
    let mut segment = Segment::new(CLIENT, SERVER);
    if len > 0 {
        segment.payload = Payload::Pattern(Pattern { stream: 1, offset: 0, len });
    }
    segment
}

/// A packet of `wire_len` octets: headers of 40 octets and data.
pub(crate) fn packet(wire_len: u32) -> Packet {
    Packet::from_segment(segment(wire_len - 40))
}

/// As [`packet`], but ECN-capable.
pub(crate) fn ecn_packet(wire_len: u32) -> Packet {
    Packet::from_segment(Segment { ecn: Ecn::Capable0, ..segment(wire_len - 40) })
}

pub(crate) fn is_marked(packet: &Packet) -> bool {
    packet.segment().is_some_and(|segment| segment.ecn == Ecn::CongestionExperienced)
}

/// Drives one node in virtual time and records its output, with times in microseconds.
pub(crate) struct Lane<N> {
    pub node: N,
    pub arrived: Vec<(u64, Packet)>,
    pub dropped: Vec<(u64, DropCause)>,
    output: Output,
}

impl<N: Node> Lane<N> {
    pub fn new(node: N) -> Self {
        Self { node, arrived: Vec::new(), dropped: Vec::new(), output: Output::new() }
    }

    /// Lets time pass to `now`, then sends `packet`.
    pub fn send(&mut self, packet: Packet, now: Instant) {
        self.run_until(now);
        self.step(Some(packet), now);
    }

    pub fn send_all(&mut self, segments: impl IntoIterator<Item = Segment>) {
        segments.into_iter().for_each(|segment| self.send(Packet::from_segment(segment), Instant::ZERO));
    }

    pub fn run(&mut self) {
        self.run_until(Instant::FAR_FUTURE);
    }

    pub fn run_until(&mut self, end: Instant) {
        while let Some(at) = self.node.next_wakeup().filter(|at| *at <= end && *at < Instant::FAR_FUTURE) {
            self.step(None, at);
        }
    }

    /// The segments that arrived.
    pub fn segments(&self) -> Vec<Segment> {
        self.arrived.iter().filter_map(|(_, packet)| packet.segment().cloned()).collect()
    }

    fn step(&mut self, packet: Option<Packet>, now: Instant) {
        self.node.process(packet, now, &mut self.output);
        self.arrived.extend(self.output.take_forwarded().map(|packet| (now.as_micros(), packet)));
        self.dropped.extend(self.output.take_dropped().map(|(_, cause)| (now.as_micros(), cause)));
    }
}

/// Times and sizes of the packets that arrived.
pub(crate) fn arrivals<N>(lane: &Lane<N>) -> Vec<(u64, u32)> {
    lane.arrived.iter().map(|(at, packet)| (*at, packet.wire_len())).collect()
}
