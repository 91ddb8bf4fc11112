//! Differentiated forwarding at a relay that only routes: it holds packets, and the source waits for their
//! acknowledgement.
//!
//! Packets that the relay cannot place in the stream pass at once. So do retransmissions, because the source waits for
//! them; the relay drops the copy that it holds.
//!
//! Packets do not show to which connection their subflow belongs. If the destination has several, data of the others
//! may wait, too, as long as the limits allow.

use core::net::IpAddr;

use units::{Dsn, Instant};
use wire::mptcp::Token;
use wire::{Flags, Segment};

use super::hold_queue::{HoldLimits, HoldQueue, HoldStats};
use super::packet_dsn::{PacketDsn, PacketDsns};
use super::range::DsnRange;

/// The place of a packet in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first octet, if the packet may wait.
    dsn: Option<Dsn>,
    len_bytes: u32,
    /// Whether the packet ends its subflow.
    ends: bool,
}

/// Holds packets on their way to the destination of one connection. `T` is the item to forward.
///
/// After every call, take the items to forward with [`Self::poll_forward`]. [`Self::handle_timeout`] is due at
/// [`Self::poll_timeout`].
#[derive(Debug)]
pub struct Routed<T> {
    queue: HoldQueue<T>,
    /// The connection that the latest range is about, by the source's token.
    connection: Option<Token>,
    /// The address of the destination that it comes from, if the relay serves several.
    destination: Option<IpAddr>,
    dsns: PacketDsns,
}

impl<T> Routed<T> {
    /// Creates a queue that forwards everything until a range arrives.
    pub fn new(limits: HoldLimits) -> Self {
        Self { queue: HoldQueue::new(limits), connection: None, destination: None, dsns: PacketDsns::default() }
    }

    /// Inspects a packet to the destination, which must be the next one passed to [`Self::on_packet`].
    pub fn look(&mut self, segment: &Segment) -> Place {
        let near = self.queue.range().map_or(Dsn(0), |range| range.min);
        let is_meant = self.destination.is_none_or(|address| address == segment.dst.ip());
        let dsn = match self.dsns.look(segment, near) {
            PacketDsn::Data { dsn: Some(dsn), again: true } if is_meant => {
                self.queue.discard(dsn);
                None
            }
            PacketDsn::Data { dsn, again: false } if is_meant => dsn,
            PacketDsn::Data { .. } | PacketDsn::NoData => None,
        };
        Place { dsn, len_bytes: segment.payload.len() as u32, ends: segment.flags.contains(Flags::FIN) }
    }

    /// Takes a packet whose place is known.
    pub fn on_packet(&mut self, now: Instant, place: Place, packet: T) {
        match place.dsn {
            Some(dsn) => self.queue.on_packet(now, dsn, place.len_bytes, packet),
            None => self.queue.pass(packet),
        }
        if place.ends {
            // No later packet of this subflow could release the held ones.
            self.queue.flush();
        }
    }

    /// Takes a packet that is not a segment.
    pub fn pass(&mut self, packet: T) {
        self.queue.pass(packet);
    }

    /// Handles a range that the destination announced, of the connection with this token of the source.
    pub fn on_range(&mut self, connection: Token, range: DsnRange) {
        if self.connection.replace(connection).is_some_and(|known| known != connection) {
            // The ranges of each connection are numbered from 1.
            self.queue.forget_range();
        }
        self.queue.on_range(range);
    }

    /// Lets only data for this address wait, whose destination announces the next range: a destination must not hold up
    /// the data of another one. `None`: there is only one.
    pub fn only_for(&mut self, destination: Option<IpAddr>) {
        if core::mem::replace(&mut self.destination, destination) != destination {
            self.queue.forget_range();
        }
    }

    /// Forwards everything until a range arrives again, because the wanted range is unknown.
    pub fn forget_range(&mut self) {
        self.queue.forget_range();
    }

    /// Changes the limits.
    pub fn set_limits(&mut self, now: Instant, limits: HoldLimits) {
        self.queue.set_limits(now, limits);
    }

    /// Forwards everything, now and from now on: the relay leaves.
    pub fn leave(&mut self) {
        self.queue.leave();
    }

    /// Returns the next packet to forward.
    pub fn poll_forward(&mut self) -> Option<T> {
        self.queue.poll_forward()
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.queue.poll_timeout()
    }

    /// Forwards packets that have waited T_hold.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.queue.handle_timeout(now);
    }

    /// Returns the octets of data that wait.
    pub const fn held_bytes(&self) -> u64 {
        self.queue.held_bytes()
    }

    /// Returns the totals so far.
    pub const fn stats(&self) -> &HoldStats {
        self.queue.stats()
    }
}

#[cfg(test)]
mod tests {
    use units::{Duration, SeqNr};
    use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
    use wire::{Pattern, Payload};

    use super::*;

    const LIMITS: HoldLimits = HoldLimits { size_bytes: 1000, stay: Duration::from_secs(4) };
    const NOW: Instant = Instant::from_secs(1);
    const CONNECTION: Token = Token(7);

    fn range(seq: u64, max: u64) -> DsnRange {
        DsnRange { seq, min: Dsn(0), max: Dsn(max) }
    }

    /// Returns a packet of 100 octets that begin with `dsn`, always at the same place of the subflow.
    fn packet(dsn: u32) -> Segment {
        let [src, dst] = ["10.0.0.1:80", "10.1.0.2:4000"].map(|address| address.parse().unwrap());
        let mut segment = Segment::new(src, dst);
        segment.seq = SeqNr(10_000 + dsn);
        segment.payload = Payload::Pattern(Pattern { stream: 0, offset: dsn.into(), len: 100 });
        let mapping = Some(Mapping { dsn: DataSeq::Short(dsn), ssn: dsn + 1, len: 100, checksum: None });
        segment.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: None, mapping, data_fin: false }));
        segment
    }

    fn relay() -> Routed<u32> {
        let mut relay = Routed::new(LIMITS);
        relay.on_range(CONNECTION, range(1, 299));
        relay
    }

    fn give(relay: &mut Routed<u32>, segment: &Segment, packet: u32) {
        let place = relay.look(segment);
        relay.on_packet(NOW, place, packet);
    }

    fn forwarded(relay: &mut Routed<u32>) -> Vec<u32> {
        core::iter::from_fn(|| relay.poll_forward()).collect()
    }

    fn take(relay: &mut Routed<u32>, dsns: &[u32]) -> Vec<u32> {
        dsns.iter().for_each(|dsn| give(relay, &packet(*dsn), *dsn));
        forwarded(relay)
    }

    #[test]
    fn a_destination_holds_up_only_its_own_data() {
        let mut relay = relay();
        relay.only_for(Some("10.1.0.2".parse().unwrap()));
        relay.on_range(CONNECTION, range(2, 299));
        assert_eq!(take(&mut relay, &[400]), []);
        relay.only_for(Some("10.1.0.9".parse().unwrap()));
        assert_eq!(forwarded(&mut relay), [400]);
        relay.on_range(Token(8), range(1, 0));
        assert_eq!(take(&mut relay, &[500]), [500], "data of another destination");
    }

    #[test]
    fn what_lies_beyond_the_range_waits_for_a_later_one() {
        let mut relay = relay();
        assert_eq!(take(&mut relay, &[0, 200, 300, 400]), [0, 200]);
        assert_eq!((relay.held_bytes(), relay.stats().held_packets), (200, 2));
        relay.on_range(CONNECTION, range(2, 399));
        assert_eq!(forwarded(&mut relay), [300]);
        // An older range changes nothing.
        relay.on_range(CONNECTION, range(1, 999));
        assert_eq!(forwarded(&mut relay), [0; 0]);
    }

    #[test]
    fn what_the_source_sends_again_passes_and_its_copy_is_dropped() {
        let mut relay = relay();
        assert_eq!(take(&mut relay, &[300, 400, 300]), [300]);
        relay.leave();
        assert_eq!(forwarded(&mut relay), [400]);
    }

    #[test]
    fn overflow_age_and_leaving_forward_the_lowest_first() {
        let mut relay = relay();
        assert_eq!(take(&mut relay, &[300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200]), [0; 0]);
        assert_eq!(take(&mut relay, &[1300]), [300]);
        assert_eq!(relay.poll_timeout(), Some(Instant::from_secs(5)));
        relay.set_limits(NOW, HoldLimits { size_bytes: 900, ..LIMITS });
        assert_eq!(forwarded(&mut relay), [400]);
        relay.handle_timeout(Instant::from_secs(5));
        assert_eq!(forwarded(&mut relay), [500, 600, 700, 800, 900, 1000, 1100, 1200, 1300]);
        assert_eq!(take(&mut relay, &[1400]), [0; 0]);
        relay.leave();
        assert_eq!(take(&mut relay, &[1500]), [1400, 1500]);
    }

    #[test]
    fn what_has_no_place_in_the_stream_and_the_end_of_a_subflow_pass() {
        let mut relay = relay();
        let mut acknowledgement = packet(900);
        acknowledgement.payload = Payload::Empty;
        give(&mut relay, &acknowledgement, 1);
        let mut bare = packet(5000);
        bare.options.mptcp.clear();
        give(&mut relay, &bare, 2);
        relay.pass(3);
        assert_eq!(forwarded(&mut relay), [1, 2, 3]);
        assert_eq!(take(&mut relay, &[6000]), [0; 0]);
        let mut fin = packet(6100);
        (fin.payload, fin.flags) = (Payload::Empty, Flags::FIN);
        give(&mut relay, &fin, 4);
        assert_eq!(forwarded(&mut relay), [4, 6000]);
    }

    #[test]
    fn without_somebody_who_says_what_is_wanted_everything_passes() {
        let mut relay = relay();
        assert_eq!(take(&mut relay, &[300]), [0; 0]);
        relay.forget_range();
        assert_eq!(take(&mut relay, &[400]), [300, 400]);
        // The range is announced again, with the same values.
        relay.on_range(CONNECTION, range(1, 299));
        assert_eq!(take(&mut relay, &[500]), [0; 0]);
    }

    #[test]
    fn ranges_of_another_connection_are_numbered_anew() {
        let mut relay = relay();
        relay.on_range(CONNECTION, range(9, 299));
        assert_eq!(take(&mut relay, &[300]), [0; 0]);
        relay.on_range(Token(8), range(1, 499));
        assert_eq!(forwarded(&mut relay), [300]);
        assert_eq!(take(&mut relay, &[400, 500]), [400]);
    }

    #[test]
    fn a_limit_of_zero_holds_nothing() {
        let mut relay = Routed::new(HoldLimits { size_bytes: 0, ..LIMITS });
        relay.on_range(CONNECTION, range(1, 99));
        assert_eq!(take(&mut relay, &[100, 200]), [100, 200]);
        assert_eq!(relay.held_bytes(), 0);
    }
}
