//! A point in the network whose host is elsewhere.

use std::collections::VecDeque;

use bytes::Bytes;
use host::Host;
use network::Datagram;
use units::Instant;
use wire::Segment;

/// A packet as it passes a portal.
#[derive(Clone, Debug, PartialEq)]
pub enum Passing {
    /// A TCP segment.
    Segment(Segment),
    /// A UDP datagram.
    Datagram(Datagram),
    /// An IP packet that is neither.
    Octets(Bytes),
}

/// Takes the place of a host: keeps arriving packets for a carrier outside, and sends the packets that the carrier
/// brings.
#[derive(Debug, Default)]
pub struct Portal {
    arrived: VecDeque<Passing>,
    segments: VecDeque<Segment>,
    datagrams: VecDeque<Datagram>,
    octets: VecDeque<Bytes>,
    /// Whether packets only pass through, to a host that the simulation contains and observers watch there.
    in_transit: bool,
}

impl Portal {
    /// Creates a portal for a host outside, whose packets observers see here.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a portal that packets pass between two hosts of the simulation.
    pub fn in_transit() -> Self {
        Self { in_transit: true, ..Self::default() }
    }

    /// Takes the next packet that arrived.
    pub fn take(&mut self) -> Option<Passing> {
        self.arrived.pop_front()
    }

    /// Returns whether packets wait to be taken.
    pub fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Accepts a packet from outside, to be sent.
    pub fn bring(&mut self, packet: Passing) {
        match packet {
            Passing::Segment(segment) => self.segments.push_back(segment),
            Passing::Datagram(datagram) => self.datagrams.push_back(datagram),
            Passing::Octets(octets) => self.octets.push_back(octets),
        }
    }
}

impl Host for Portal {
    fn handle_segment(&mut self, segment: &mut Segment, _now: Instant) {
        self.arrived.push_back(Passing::Segment(core::mem::take(segment)));
    }

    fn handle_datagram(&mut self, datagram: Datagram, _now: Instant) {
        self.arrived.push_back(Passing::Datagram(datagram));
    }

    fn handle_octets(&mut self, octets: Bytes, _now: Instant) {
        self.arrived.push_back(Passing::Octets(octets));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, segment: &mut Segment, _now: Instant) -> bool {
        let Some(brought) = self.segments.pop_front() else { return false };
        *segment = brought;
        true
    }

    fn poll_datagram(&mut self, _now: Instant) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    fn poll_octets(&mut self) -> Option<Bytes> {
        self.octets.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }

    fn is_in_transit(&self, _segment: &Segment) -> bool {
        self.in_transit
    }
}
