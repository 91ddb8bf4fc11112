//! Bounds of the rate that a receiver may ask for.
//!
//! ```text
//! mss / rtt  <=  rate  <=  2 * max( delivered, IW / rtt )
//! ```
//!
//! A lying receiver can make any TCP sender double its window every round-trip time, by acknowledging data that have
//! not arrived. A desired rate gives it no more than that. `delivered` is the rate that the path's ACKs showed in the
//! last round-trip time. The lower bound is TCP's smallest window, which keeps a path in use from falling silent.

use units::{Duration, Instant};

/// A path, as its sender knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathFacts {
    /// Total payload acknowledged.
    pub(crate) acked_bytes: u64,
    /// Largest payload of a packet.
    pub(crate) packet_bytes: u32,
    /// Initial window, packets.
    pub(crate) initial_packets: u32,
    pub(crate) rtt: Duration,
    pub(crate) rto: Duration,
}

/// Measures the delivery rate of a path, and bounds wishes by it.
#[derive(Debug)]
pub(super) struct RateBounds {
    acked_bytes: u64,
    since: Instant,
    delivered_bytes_per_s: u64,
}

impl RateBounds {
    pub(super) fn new(acked_bytes: u64, now: Instant) -> Self {
        Self { acked_bytes, since: now, delivered_bytes_per_s: 0 }
    }

    /// Returns the rate to send at, in octets per second, for the receiver's wish.
    pub(super) fn bound(&mut self, wish_bytes_per_s: u32, facts: &PathFacts, now: Instant) -> u64 {
        let elapsed = now.saturating_since(self.since);
        if elapsed >= facts.rtt {
            self.delivered_bytes_per_s = per_second(facts.acked_bytes - self.acked_bytes, elapsed);
            (self.acked_bytes, self.since) = (facts.acked_bytes, now);
        }
        let packet_bytes = u64::from(facts.packet_bytes);
        let least = per_second(packet_bytes, facts.rtt).max(1);
        let initial = per_second(packet_bytes * u64::from(facts.initial_packets.max(1)), facts.rtt);
        u64::from(wish_bytes_per_s).clamp(least, self.delivered_bytes_per_s.max(initial).saturating_mul(2).max(least))
    }
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let nanos = u128::from(time.as_nanos().max(1));
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn facts(acked_bytes: u64) -> PathFacts {
        let (rtt, rto) = (Duration::from_millis(100), Duration::from_millis(300));
        PathFacts { acked_bytes, packet_bytes: 1000, initial_packets: 10, rtt, rto }
    }

    /// 10 kB in 100 ms is 100 kB/s, and twice that is 200 kB/s; one packet in 100 ms is 10 kB/s.
    #[test]
    fn a_wish_at_the_start_is_within_twice_the_initial_window() {
        let mut bounds = RateBounds::new(0, at(0));
        assert_eq!(bounds.bound(150_000, &facts(0), at(10)), 150_000);
        assert_eq!(bounds.bound(u32::MAX, &facts(0), at(10)), 200_000);
        assert_eq!(bounds.bound(0, &facts(0), at(10)), 10_000);
    }

    /// 50 kB in 100 ms is 500 kB/s.
    #[test]
    fn a_wish_is_within_twice_what_arrives() {
        let mut bounds = RateBounds::new(7, at(0));
        assert_eq!(bounds.bound(u32::MAX, &facts(50_007), at(100)), 1_000_000);
        assert_eq!(bounds.bound(u32::MAX, &facts(90_007), at(150)), 1_000_000, "half a round-trip time says nothing");
        assert_eq!(bounds.bound(u32::MAX, &facts(50_007), at(300)), 200_000);
    }
}
