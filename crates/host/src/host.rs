//! The contract between a host and its driver.

use core::net::SocketAddr;

use bytes::Bytes;
use network::Datagram;
use transport::inspection::Sight;
use units::Instant;
use wire::Segment;

/// A host: segments in, segments out, and a time at which it wants to be called.
pub trait Host {
    /// Called when the run begins.
    fn start(&mut self, now: Instant) {
        let _ = now;
    }

    /// Handles a segment from the network. Takes what it keeps out of its place, because segments are large.
    fn handle_segment(&mut self, segment: &mut Segment, now: Instant);

    /// Returns whether it helps to announce segments in advance ([`Self::expect`]).
    #[inline]
    fn is_crowded(&self) -> bool {
        false
    }

    /// Announces a segment that will arrive after a few others, so that its state can be fetched into the cache.
    /// Nothing else may depend on it, and the segment need not arrive.
    fn expect(&mut self, segment: &Segment) {
        let _ = segment;
    }

    /// Handles a UDP datagram from the network.
    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        let _ = (datagram, now);
    }

    /// Handles an IP packet from the network that the driver recognises as neither, such as an ICMP error.
    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        let _ = (octets, now);
    }

    /// Handles the passage of time. Called at [`Self::poll_timeout`] or a little later.
    fn handle_timeout(&mut self, now: Instant);

    /// Overwrites `segment` with the next one to send. Returns false if there is none; the content is undefined then.
    /// Called after every other call until there is none.
    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool;

    /// Returns the next datagram to send. Called like [`Self::poll_transmit`].
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let _ = now;
        None
    }

    /// Returns the next packet that is neither. Called like [`Self::poll_transmit`].
    fn poll_octets(&mut self) -> Option<Bytes> {
        None
    }

    /// Returns when [`Self::handle_timeout`] must be called next. After that call the time must lie in the future, or
    /// soon do so: a time in the past gives others their turn first.
    fn poll_timeout(&mut self) -> Option<Instant>;

    /// Called after a change outside the host for which it may wait; never in virtual time.
    fn handle_wake(&mut self, now: Instant) {
        let _ = now;
    }

    /// Called when the run ends. What the host wants to send in reaction is still sent, so peers need not wait for a
    /// time-out.
    fn handle_end(&mut self, now: Instant) {
        let _ = now;
    }

    /// Returns whether all work is done and the run may end. Asked after every other call.
    fn is_finished(&self) -> bool {
        false
    }

    /// Returns the payload octets of the largest packet of the last segment to send, if known. A driver may leave it to
    /// others to cut the segment.
    #[inline]
    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        let _ = segment;
        None
    }

    /// Returns whether a segment only passes through the host, and neither begins nor ends here.
    #[inline]
    fn is_in_transit(&self, segment: &Segment) -> bool {
        let _ = segment;
        false
    }

    /// Returns a view of the subflow from `local` to `remote`, for checkers; `None` if the host is not the engine.
    fn inspect(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Sight<'_>> {
        let _ = (local, remote);
        None
    }

    /// Returns descriptions of the errors that the host found; empty in a good run.
    fn faults(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Host for Box<dyn Host> {
    fn start(&mut self, now: Instant) {
        self.as_mut().start(now);
    }

    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        self.as_mut().handle_segment(segment, now);
    }

    fn is_crowded(&self) -> bool {
        self.as_ref().is_crowded()
    }

    fn expect(&mut self, segment: &Segment) {
        self.as_mut().expect(segment);
    }

    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        self.as_mut().handle_datagram(datagram, now);
    }

    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        self.as_mut().handle_octets(octets, now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.as_mut().handle_timeout(now);
    }

    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        self.as_mut().poll_transmit(segment, now)
    }

    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        self.as_mut().poll_datagram(now)
    }

    fn poll_octets(&mut self) -> Option<Bytes> {
        self.as_mut().poll_octets()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.as_mut().poll_timeout()
    }

    fn handle_wake(&mut self, now: Instant) {
        self.as_mut().handle_wake(now);
    }

    fn handle_end(&mut self, now: Instant) {
        self.as_mut().handle_end(now);
    }

    fn is_finished(&self) -> bool {
        self.as_ref().is_finished()
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.as_ref().packet_payload(segment)
    }

    fn is_in_transit(&self, segment: &Segment) -> bool {
        self.as_ref().is_in_transit(segment)
    }

    fn inspect(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Sight<'_>> {
        self.as_ref().inspect(local, remote)
    }

    fn faults(&self) -> Vec<String> {
        self.as_ref().faults()
    }
}
