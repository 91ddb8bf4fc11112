//! The part of a host that cooperates with other hosts.

use bytes::Bytes;
use transport::{Endpoint, Event};
use units::Instant;
use wire::Segment;

/// Part of a host that sees segments before the engine, and events before the applications. It carries out the host's
/// cooperation with others.
///
/// It commands the engine as applications do. Applications start once it is ready.
pub trait Agent {
    /// Called when the host starts.
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Returns whether applications may start. Once true, it stays true.
    fn is_ready(&self) -> bool {
        true
    }

    /// Handles a segment that has arrived. Returns true if the agent has taken it out of its place; otherwise the
    /// engine gets it.
    #[inline]
    fn take_segment(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let _ = (segment, now);
        false
    }

    /// Handles an IP packet that the driver recognises neither as a segment nor as a datagram, such as an ICMP error.
    /// Returns what is left for the engine.
    fn take_octets(&mut self, octets: Bytes, now: Instant) -> Option<Bytes> {
        let _ = now;
        Some(octets)
    }

    /// Handles an event of the engine.
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        let _ = (event, endpoint, now);
    }

    /// Called at the time of [`Self::poll_timeout`].
    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Called when the host ends. The agent says goodbye to its peers and begins nothing more.
    fn retire(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Returns when it wants to be called. Asked after every other call.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Returns the next segment that the agent itself sends. Called after every other call, until it returns nothing.
    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let _ = now;
        None
    }

    /// Returns the next packet of [`Self::take_octets`] to be sent on.
    fn poll_octets(&mut self) -> Option<Bytes> {
        None
    }

    /// Returns the payload octets of the largest packet for a segment of [`Self::poll_transmit`], if the driver may cut
    /// it.
    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        let _ = segment;
        None
    }

    /// Returns whether a segment only passes through, and neither begins nor ends here.
    fn is_in_transit(&self, segment: &Segment) -> bool {
        let _ = segment;
        false
    }
}

/// The agent of a host that cooperates with no other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Agent for Alone {}
