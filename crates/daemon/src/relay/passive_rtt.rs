//! How long packets wait on the shared link in each direction, measured on lent traffic without probes. Sans-IO.
//!
//! A destination's segment carries a timestamp (RFC 7323), which the server's next segment echoes. The time in between
//! is a round trip over the shared link. Its excess over the shortest round trip to that server is time in queues,
//! mostly the link's: the rest of the path is wider. The server's own timestamps tell in which direction the packets
//! waited ([`OneWay`]).

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::{IpAddr, SocketAddr};

use units::{Duration, Instant};
use wire::{Segment, TcpChecksum, Timestamps};

use super::one_way::OneWay;

/// Maximum number of watched flows; others are ignored.
const FLOWS_MAX: usize = 64;
/// Maximum number of timestamps in flight per flow, and the minimum time between two of them: enough for the longest
/// echo.
const STAMPS_MAX: usize = 256;
const STEP: Duration = Duration::from_millis(12);
/// An echo that took longer does not count: the server had nothing to send.
const ECHO_MAX: Duration = Duration::from_secs(3);
/// Maximum number of servers whose shortest round trip is kept; more end a period early.
const SERVERS_MAX: usize = 256;
/// Lifetime of the shortest round trip, because routes change. The previous period counts too.
const PERIOD: Duration = Duration::from_secs(300);

/// A destination's flow: its address and the server's.
type Ends = (SocketAddr, SocketAddr);

/// Time that a packet or its predecessor in the other direction waited in queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// In one direction or in both.
    Somewhere(Duration),
    /// In each direction.
    Split {
        /// Towards this device.
        down: Duration,
        /// From this device.
        up: Duration,
    },
}

/// State of a flow.
#[derive(Debug, Default)]
struct Flow {
    stamps: VecDeque<(u32, Instant)>,
    /// The newest timestamp that left, noted or not.
    newest: u32,
    /// When the last noted timestamp left, also after its echo.
    noted_at: Option<Instant>,
    one_way: OneWay,
}

impl Flow {
    /// Handles a departing packet with this timestamp. A server echoes the first segment that it receives of several
    /// with one timestamp (RFC 7323 section 4.3), so only the first may count. A later one, which may have waited here,
    /// would make the path look too short for minutes.
    fn observe_up(&mut self, stamp: u32, now: Instant) {
        let last = self.noted_at.map(|sent| now.saturating_since(sent));
        // A reused port has another clock.
        let is_first = is_newer(stamp, self.newest) || last.is_none_or(|span| span >= ECHO_MAX);
        if !is_first {
            return;
        }
        self.newest = stamp;
        if last.is_none_or(|span| span >= STEP) {
            if self.stamps.len() == STAMPS_MAX {
                self.stamps.pop_front();
            }
            self.stamps.push_back((stamp, now));
            self.noted_at = Some(now);
        }
    }
}

/// Compares timestamps, which wrap around (RFC 7323 section 4.3).
fn is_newer(stamp: u32, than: u32) -> bool {
    i32::from_ne_bytes(stamp.wrapping_sub(than).to_ne_bytes()) > 0
}

/// State of all flows.
#[derive(Debug, Default)]
pub struct PassiveRtt {
    flows: BTreeMap<Ends, Flow>,
    shortest: BTreeMap<IpAddr, Duration>,
    shortest_before: BTreeMap<IpAddr, Duration>,
    period_ends: Option<Instant>,
}

impl PassiveRtt {
    /// Handles a destination's packet that leaves over the shared link.
    pub fn observe_up(&mut self, packet: &[u8], now: Instant) {
        let Some((source, destination, Timestamps { value: stamp, .. })) = stamped(packet) else { return };
        let ends = (source, destination);
        if !self.flows.contains_key(&ends) && self.flows.len() >= FLOWS_MAX {
            let is_live = |sent: Instant| now.saturating_since(sent) < ECHO_MAX;
            self.flows.retain(|_, flow| flow.noted_at.is_some_and(is_live));
            if self.flows.len() >= FLOWS_MAX {
                return;
            }
        }
        self.flows.entry(ends).or_default().observe_up(stamp, now);
    }

    /// Handles a packet for a destination that has come over the shared link. Returns how long it, or the packet it
    /// answers, waited in queues, if it shows that.
    pub fn observe_down(&mut self, packet: &[u8], now: Instant) -> Option<Wait> {
        let (source, destination, Timestamps { value, echo }) = stamped(packet)?;
        let ends = (destination, source);
        let stamps = &mut self.flows.get_mut(&ends)?.stamps;
        let position = stamps.iter().position(|(stamp, _)| *stamp == echo)?;
        let (_, sent) = stamps.drain(..=position).next_back()?;
        let span = now.saturating_since(sent);
        if span > ECHO_MAX {
            return None;
        }
        let both = span.saturating_sub(self.base(source.ip(), span, now)?);
        let down = self.flows.get_mut(&ends)?.one_way.observe(value, both, now);
        Some(down.map_or(Wait::Somewhere(both), |down| Wait::Split { down, up: both.saturating_sub(down) }))
    }

    /// Returns the shortest round trip to a server, including the present one of `span`; `None` for the first one,
    /// which shows nothing about queues. Otherwise frequent calls of new servers would hide every queue.
    fn base(&mut self, server: IpAddr, span: Duration, now: Instant) -> Option<Duration> {
        let ends = *self.period_ends.get_or_insert(now + PERIOD);
        if ends <= now || self.shortest.len() >= SERVERS_MAX {
            self.shortest_before = core::mem::take(&mut self.shortest);
            self.period_ends = Some(now + PERIOD);
        }
        let before = self.shortest_before.get(&server).copied();
        match self.shortest.entry(server) {
            Entry::Vacant(vacant) => {
                vacant.insert(span);
                before.map(|before| before.min(span))
            }
            Entry::Occupied(mut known) => {
                let shortest = span.min(*known.get());
                known.insert(shortest);
                Some(before.map_or(shortest, |before| before.min(shortest)))
            }
        }
    }
}

/// Returns the addresses and timestamps of a segment with timestamps. Whether the rest is valid is left to the hosts.
fn stamped(packet: &[u8]) -> Option<(SocketAddr, SocketAddr, Timestamps)> {
    let (segment, _) = Segment::parse_headers(packet, TcpChecksum::Trusted).ok()?;
    Some((segment.src, segment.dst, segment.options.timestamps?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::counters::Counters;
    use super::super::scavenger::{Passed, Scavenger};
    use super::*;

    const SERVER: &str = "203.0.113.5:443";

    /// Builds a packet from the destination's `port`, or to it.
    fn packet_of(port: u16, is_up: bool, value: u32, echo: u32) -> Vec<u8> {
        packet_between(SocketAddr::from(([10, 99, 98, 8], port)), SERVER.parse().unwrap(), is_up, value, echo)
    }

    fn packet_between(own: SocketAddr, server: SocketAddr, is_up: bool, value: u32, echo: u32) -> Vec<u8> {
        let mut segment = if is_up { Segment::new(own, server) } else { Segment::new(server, own) };
        segment.options.timestamps = Some(Timestamps { value, echo });
        let mut packet = Vec::new();
        segment.emit(&mut packet);
        packet
    }

    fn packet(is_up: bool, value: u32, echo: u32) -> Vec<u8> {
        packet_of(40000, is_up, value, echo)
    }

    #[test]
    fn what_is_longer_than_the_shortest_way_is_a_queue() {
        let (mut passive, ms) = (PassiveRtt::default(), Instant::from_millis);
        for (value, sent, heard, queue) in [(1, 0, 50, 0), (2, 60, 130, 20), (3, 140, 180, 0), (4, 190, 240, 10)] {
            passive.observe_up(&packet(true, value, 0), ms(sent));
            passive.observe_up(&packet(true, value, 0), ms(sent + 5));
            // The first round trip only shows the length of the path.
            let wait = (value > 1).then_some(Wait::Somewhere(Duration::from_millis(queue)));
            assert_eq!(passive.observe_down(&packet(false, 9, value), ms(heard)), wait);
            assert_eq!(passive.observe_down(&packet(false, 9, value), ms(heard + 1)), None, "told once");
        }
        assert_eq!(passive.observe_down(&packet(false, 9, 77), ms(300)), None, "nobody said that");
        passive.observe_up(&packet(true, 5, 0), ms(300));
        assert_eq!(passive.observe_down(&packet(false, 9, 5), ms(4000)), None, "the server had nothing to say");
    }

    /// ACKs of the same millisecond leave one by one during a pause.
    #[test]
    fn a_stamp_that_leaves_again_later_makes_no_way_shorter() {
        let (mut passive, ms) = (PassiveRtt::default(), Instant::from_millis);
        for round in 0..20_u64 {
            let (at, value) = (round * 100, round as u32 * 100);
            passive.observe_up(&packet(true, value, 0), ms(at));
            // Too soon after the one before, and again later.
            passive.observe_up(&packet(true, value + 5, 0), ms(at + 5));
            passive.observe_up(&packet(true, value + 5, 0), ms(at + 35));
            let first = passive.observe_down(&packet(false, 9, value), ms(at + 40));
            assert_eq!(first, (round > 0).then_some(Wait::Somewhere(Duration::ZERO)), "{round}");
            assert_eq!(passive.observe_down(&packet(false, 9, value + 5), ms(at + 45)), None, "{round}");
        }
        // Reuses the ports with another clock.
        passive.observe_up(&packet(true, 7, 0), ms(60_000));
        assert_eq!(passive.observe_down(&packet(false, 9, 7), ms(60_040)), Some(Wait::Somewhere(Duration::ZERO)));
    }

    /// The same, but the echo of the first comes before the second leaves: no stamp is left to compare with.
    #[test]
    fn a_stamp_that_leaves_again_after_its_echo_makes_no_way_shorter() {
        let (mut passive, ms) = (PassiveRtt::default(), Instant::from_millis);
        for round in 0..20_u64 {
            let (at, value) = (round * 100, round as u32 * 100);
            passive.observe_up(&packet(true, value, 0), ms(at));
            let first = passive.observe_down(&packet(false, 9, value), ms(at + 40));
            assert_eq!(first, (round > 0).then_some(Wait::Somewhere(Duration::ZERO)), "{round}");
            passive.observe_up(&packet(true, value, 0), ms(at + 45));
            assert_eq!(passive.observe_down(&packet(false, 9, value), ms(at + 46)), None, "{round}");
            // Older ones do not count either.
            passive.observe_up(&packet(true, value.wrapping_sub(1), 0), ms(at + 60));
            assert_eq!(passive.observe_down(&packet(false, 9, value.wrapping_sub(1)), ms(at + 61)), None, "{round}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_routes_change() {
        let mut passive = PassiveRtt::default();
        for number in 0..10_000_u32 {
            let packet = packet_of(number as u16, true, number, 0);
            passive.observe_up(&packet, Instant::from_millis(u64::from(number)));
        }
        assert!(passive.flows.len() <= FLOWS_MAX);
        let mut passive = PassiveRtt::default();
        let round_trip = |passive: &mut PassiveRtt, at: Instant, span: Duration| {
            passive.observe_up(&packet(true, 1, 0), at);
            passive.observe_down(&packet(false, 9, 1), at + span).map(|wait| match wait {
                Wait::Somewhere(wait) => wait,
                split @ Wait::Split { .. } => panic!("the server's clock stands still: {split:?}"),
            })
        };
        let (short, long) = (Duration::from_millis(20), Duration::from_millis(80));
        assert_eq!(round_trip(&mut passive, Instant::ZERO, short), None);
        for minutes in [1, 6] {
            let at = Instant::from_secs(minutes * 60);
            assert_eq!(round_trip(&mut passive, at, long), Some(Duration::from_millis(60)), "{minutes}");
        }
        assert_eq!(round_trip(&mut passive, Instant::from_secs(900), long), Some(Duration::ZERO));
    }

    /// A download whose packets wait for 100 ms, and in each tick a call of a new server.
    #[test]
    fn calls_of_new_servers_hide_no_queue() {
        let own = SocketAddr::from(([10, 99, 98, 8], 40000));
        let (mut passive, mut scavenger) = (PassiveRtt::default(), Scavenger::new(None, None));
        let round_trip = |passive: &mut PassiveRtt, server: SocketAddr, value: u32, sent: u64, ms: u64| {
            passive.observe_up(&packet_between(own, server, true, value, 0), Instant::from_millis(sent));
            passive.observe_down(&packet_between(own, server, false, 9, value), Instant::from_millis(sent + ms))
        };
        let download = SERVER.parse().unwrap();
        round_trip(&mut passive, download, 0, 0, 50);
        let down = |down_bytes| Counters { down_bytes, up_bytes: 0 };
        let (mut first, mut last) = (None, None);
        for tick in 1..=80_u64 {
            let other = SocketAddr::from(([203, 0, 114, tick as u8], 443));
            for (server, ms) in [(download, 150), (other, 180)] {
                if let Some(Wait::Somewhere(wait)) = round_trip(&mut passive, server, tick as u32, tick * 200, ms) {
                    scavenger.observe_wait(wait, false);
                }
            }
            // The owner begins after two seconds.
            let lent = down(if tick <= 20 { 125_000 } else { 87_500 });
            let passed = Passed { all: down(125_000), lent, waits: true };
            last = scavenger.tick(passed, Instant::from_millis(tick * 100));
            first = first.or(last);
        }
        let (first, last) = (first.unwrap(), last.unwrap());
        assert!(last.as_bps() < first.as_bps() / 4 * 3, "{first:?}, {last:?}");
    }

    proptest! {
        #[test]
        fn arbitrary_octets_are_looked_at(octets in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut passive = PassiveRtt::default();
            for first in [0x45, 0x4f, 0x60] {
                let mut octets = octets.clone();
                octets.splice(0..octets.len().min(1), [first]);
                passive.observe_up(&octets, Instant::ZERO);
                passive.observe_down(&octets, Instant::ZERO);
            }
        }
    }
}
