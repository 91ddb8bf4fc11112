//! The contract between a host and its driver.

use core::net::SocketAddr;

use bytes::Bytes;
use network::Datagram;
use transport::inspection::Sight;
use units::Instant;
use wire::Segment;

/// A host: segments in, segments out, and a time at which it wants to be called.
pub trait Host {
    /// The run begins.
    fn start(&mut self, now: Instant) {
        let _ = now;
    }

    /// Takes a segment from the network. What it keeps of it, it takes out of its place: segments are large.
    fn handle_segment(&mut self, segment: &mut Segment, now: Instant);

    /// Whether it is worth telling of segments to come ([`Self::expect`]).
    #[inline]
    fn is_crowded(&self) -> bool {
        false
    }

    /// A segment will arrive after a few others: what it will need may be fetched into the cache meanwhile. Nothing else follows from it,
    /// nor must it arrive.
    fn expect(&mut self, segment: &Segment) {
        let _ = segment;
    }

    /// Takes a UDP datagram from the network.
    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        let _ = (datagram, now);
    }

    /// Takes an IP packet from the network that the driver knows as neither, such as an ICMP error.
    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        let _ = (octets, now);
    }

    /// Takes note of the time; called at [`Self::poll_timeout`], or a little later.
    fn handle_timeout(&mut self, now: Instant);

    /// Makes `segment`, whatever it holds, the next one to send; false if there is none, and then what it holds means nothing.
    /// Called after every other call until there is none.
    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool;

    /// The next datagram to send; called as [`Self::poll_transmit`] is.
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let _ = now;
        None
    }

    /// The next packet that is neither; called as [`Self::poll_transmit`] is.
    fn poll_octets(&mut self) -> Option<Bytes> {
        None
    }

    /// When [`Self::handle_timeout`] must be called next; after that call it must lie ahead, or do so soon: a time that has
    /// passed gives others their turn first.
    fn poll_timeout(&mut self) -> Option<Instant>;

    /// Something outside of the host has changed that it may wait for; never in virtual time.
    fn handle_wake(&mut self, now: Instant) {
        let _ = now;
    }

    /// The run ends. What the host wants to send then is still sent, so that others need not wait for somebody who is gone.
    fn handle_end(&mut self, now: Instant) {
        let _ = now;
    }

    /// Whether all is done and the run may end. Asked after every other call.
    fn is_finished(&self) -> bool {
        false
    }

    /// Octets of payload in the largest packet of the segment that it gave last, if it knows: where a driver may leave it to
    /// others to cut the segment.
    #[inline]
    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        let _ = segment;
        None
    }

    /// Whether a segment only passes through the host, and neither begins nor ends here.
    #[inline]
    fn is_in_transit(&self, segment: &Segment) -> bool {
        let _ = segment;
        false
    }

    /// A look at the subflow from `local` to `remote`, for checkers; nothing if the host is not the engine.
    fn inspect(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Sight<'_>> {
        let _ = (local, remote);
        None
    }

    /// What the host found wrong, in words; nothing in a good run.
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
