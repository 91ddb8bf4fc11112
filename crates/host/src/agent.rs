//! What a host does besides being an end of connections.

use bytes::Bytes;
use transport::{Endpoint, Event};
use units::Instant;
use wire::Segment;

/// Part of a host that sees segments before the engine, and events before the applications: how it works together with others.
///
/// It commands the engine as applications do. Applications start once it is ready.
pub trait Agent {
    /// The host starts.
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Whether applications can begin. Once true, true for ever.
    fn is_ready(&self) -> bool {
        true
    }

    /// A segment arrived. True if the agent has taken it, out of its place; if not, it is the engine's.
    #[inline]
    fn take_segment(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let _ = (segment, now);
        false
    }

    /// An IP packet arrived that the driver knows as neither a segment nor a datagram, such as an ICMP error. What it gives back is for the
    /// engine; the rest it has taken.
    fn take_octets(&mut self, octets: Bytes, now: Instant) -> Option<Bytes> {
        let _ = now;
        Some(octets)
    }

    /// The engine tells something.
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        let _ = (event, endpoint, now);
    }

    /// The time of [`Self::poll_timeout`] has come.
    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// The host ends: says goodbye to those it works with, and begins nothing more.
    fn retire(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// When it wants to be called. Asked after every other call.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The next segment that it sends itself; called after every other call until it gives nothing.
    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let _ = now;
        None
    }

    /// The next packet of [`Self::take_octets`] that goes on.
    fn poll_octets(&mut self) -> Option<Bytes> {
        None
    }

    /// Octets of payload in the largest packet of a segment of [`Self::poll_transmit`], where a driver may cut it.
    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        let _ = segment;
        None
    }

    /// Whether a segment only passes through, and neither begins nor ends here.
    fn is_in_transit(&self, segment: &Segment) -> bool {
        let _ = segment;
        false
    }
}

/// The agent of a host that works with nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Agent for Alone {}
