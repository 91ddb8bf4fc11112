//! Differentiated forwarding at a relay that only routes: it holds segments, and the source waits for their
//! acknowledgement.
//!
//! Segments that the relay cannot place in the stream pass at once. So do retransmissions, because the source waits for
//! them. The copy that the relay holds of one, and what it holds behind that, go on before it: their timestamps are
//! older, so the destination would drop them afterwards (PAWS, RFC 7323 section 5.3). The copy's timestamp also shows
//! the source that it need not have sent the data again (Eifel, RFC 3522). Without timestamps, the copy is dropped.
//!
//! Segments do not show to which connection their subflow belongs. If the destination has several, data of the others
//! may wait, too, as long as the limits allow.

use core::net::IpAddr;

use units::{Dsn, Instant};
use wire::mptcp::Token;
use wire::{Flags, Segment};

use super::hold_queue::{HoldLimits, HoldQueue, HoldStats};
use super::packet_dsn::{PacketDsn, PacketDsns};
use super::range::DsnRange;

/// Holds segments on their way to the destination of one connection.
///
/// After every call, take the segments to forward with [`Self::poll_forward`]. [`Self::handle_timeout`] is due at
/// [`Self::poll_timeout`].
#[derive(Debug)]
pub struct Routed {
    queue: HoldQueue<Segment>,
    /// The connection that the latest range is about, by the source's token.
    connection: Option<Token>,
    /// The address of the destination that it comes from, if the relay serves several.
    destination: Option<IpAddr>,
    dsns: PacketDsns,
}

impl Routed {
    /// Creates a queue that forwards everything until a range arrives.
    pub fn new(limits: HoldLimits) -> Self {
        Self { queue: HoldQueue::new(limits), connection: None, destination: None, dsns: PacketDsns::default() }
    }

    /// Takes a segment to the destination.
    pub fn on_segment(&mut self, now: Instant, segment: Segment) {
        let ends = segment.flags.contains(Flags::FIN);
        match self.place(&segment) {
            Some(dsn) => self.queue.on_packet(now, dsn, segment.payload.len() as u32, segment),
            None => self.queue.pass(segment),
        }
        if ends {
            // No later segment of this subflow could release the held ones.
            self.queue.flush();
        }
    }

    /// Returns the first octet of a segment that may wait.
    fn place(&mut self, segment: &Segment) -> Option<Dsn> {
        let near = self.queue.range().map_or(Dsn(0), |range| range.min);
        let is_meant = self.destination.is_none_or(|address| address == segment.dst.ip());
        match self.dsns.look(segment, near) {
            PacketDsn::Data { dsn, again: true } => {
                if segment.options.timestamps.is_some() {
                    self.queue.forward_if(|held| becomes_old(held, segment));
                }
                if let Some(dsn) = dsn.filter(|_| is_meant) {
                    // Without timestamps, its copy is still held.
                    self.queue.discard(dsn, |held| is_of_one_subflow(held, segment));
                }
                None
            }
            PacketDsn::Data { dsn, again: false } => dsn.filter(|_| is_meant),
            PacketDsn::NoData => None,
        }
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

    /// Forwards everything until a range arrives again, because the range that this destination wants is unknown
    /// (`None`: whichever one the range is of).
    pub fn forget_range(&mut self, destination: Option<IpAddr>) {
        if destination.is_none() || destination == self.destination {
            self.queue.forget_range();
        }
    }

    /// Changes the limits.
    pub fn set_limits(&mut self, now: Instant, limits: HoldLimits) {
        self.queue.set_limits(now, limits);
    }

    /// Forwards everything, now and from now on: the relay leaves.
    pub fn leave(&mut self) {
        self.queue.leave();
    }

    /// Returns the next segment to forward.
    pub fn poll_forward(&mut self) -> Option<Segment> {
        self.queue.poll_forward()
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.queue.poll_timeout()
    }

    /// Forwards segments that have waited T_hold.
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

/// Whether the destination would drop `held` as an old duplicate after `newer`, which left the source after it, but does
/// not come after it in their subflow.
fn becomes_old(held: &Segment, newer: &Segment) -> bool {
    let is_older = match (held.options.timestamps, newer.options.timestamps) {
        (Some(held), Some(newer)) => (held.value.wrapping_sub(newer.value) as i32) < 0,
        _ => false,
    };
    is_older && is_of_one_subflow(held, newer) && newer.seq.before_or_at(held.seq)
}

fn is_of_one_subflow(one: &Segment, other: &Segment) -> bool {
    (one.src, one.dst) == (other.src, other.dst)
}

#[cfg(test)]
mod tests {
    use units::{Duration, SeqNr};
    use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
    use wire::{Pattern, Payload, Timestamps};

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

    fn relay() -> Routed {
        let mut relay = Routed::new(LIMITS);
        relay.on_range(CONNECTION, range(1, 299));
        relay
    }

    /// Returns the first octets of what goes on.
    fn forwarded(relay: &mut Routed) -> Vec<u32> {
        core::iter::from_fn(|| relay.poll_forward()).map(|segment| segment.seq.0 - 10_000).collect()
    }

    fn take(relay: &mut Routed, dsns: &[u32]) -> Vec<u32> {
        dsns.iter().for_each(|dsn| relay.on_segment(NOW, packet(*dsn)));
        forwarded(relay)
    }

    #[test]
    fn a_destination_holds_up_only_its_own_data() {
        let mut relay = relay();
        relay.only_for(Some("10.1.0.2".parse().unwrap()));
        relay.on_range(CONNECTION, range(2, 299));
        assert_eq!(take(&mut relay, &[400]), []);
        relay.forget_range(Some("10.1.0.9".parse().unwrap()));
        assert_eq!(forwarded(&mut relay), [0; 0]);
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
    fn what_is_held_behind_a_retransmission_goes_on_before_it() {
        let at = |dsn, value| {
            let mut segment = packet(dsn);
            segment.options.timestamps = Some(Timestamps { value, echo: 0 });
            segment
        };
        let of_another = |dsn| Segment { src: "10.0.0.1:81".parse().unwrap(), ..at(dsn, 0) };
        let mut relay = relay();
        // 300 passes an outage before it; the clock of the timestamps wraps around.
        let others = [of_another(400), of_another(700)];
        let sent = [at(200, u32::MAX - 2), at(400, u32::MAX - 1), at(500, u32::MAX), at(600, 3)];
        let sent = sent.into_iter().chain(others);
        sent.for_each(|segment| relay.on_segment(NOW, segment));
        assert_eq!(forwarded(&mut relay), [200]);
        // Sent before 400 and out of order: nothing would be dropped because of it.
        relay.on_segment(NOW, at(300, u32::MAX - 1));
        assert_eq!(forwarded(&mut relay), [300]);
        relay.on_segment(NOW, at(400, 2));
        assert_eq!(forwarded(&mut relay), [400, 500, 400], "600 is newer, 700 of another subflow");
        // What another subflow brings of the same data is not its copy.
        assert_eq!(relay.held_bytes(), 300);
        relay.leave();
        assert_eq!(forwarded(&mut relay), [400, 600, 700]);
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
        relay.on_segment(NOW, acknowledgement);
        let mut bare = packet(5000);
        bare.options.mptcp.clear();
        relay.on_segment(NOW, bare);
        assert_eq!(forwarded(&mut relay), [900, 5000]);
        assert_eq!(take(&mut relay, &[6000]), [0; 0]);
        let mut fin = packet(6100);
        (fin.payload, fin.flags) = (Payload::Empty, Flags::FIN);
        relay.on_segment(NOW, fin);
        assert_eq!(forwarded(&mut relay), [6100, 6000]);
    }

    #[test]
    fn without_somebody_who_says_what_is_wanted_everything_passes() {
        let mut relay = relay();
        assert_eq!(take(&mut relay, &[300]), [0; 0]);
        relay.forget_range(None);
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
