//! What the destination tells its relays about the data it wants next, and how large a range is.

use units::{Dsn, Duration, Rate};

/// The data that relays forward at once (DSN_RANGE): both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsnRange {
    /// Counts the ranges of a connection from 1 on: of two ranges the one with the higher number holds.
    pub seq: u64,
    /// MIN: the first octet of the range.
    pub min: Dsn,
    /// MAX: the last octet of the range.
    pub max: Dsn,
}

impl DsnRange {
    /// H, octets.
    pub const fn len_bytes(&self) -> u64 {
        self.max.since(self.min).wrapping_add(1)
    }

    /// Whether this range was announced after `other`.
    pub const fn is_newer_than(&self, other: &Self) -> bool {
        self.seq > other.seq
    }
}

/// What the destination has, and what it can take (CUM_ACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CumAck {
    /// The first octet that is missing: what a relay acknowledges to the source as DATA_ACK.
    pub rcv_nxt: Dsn,
    /// The shared window from there on, octets.
    pub window_bytes: u64,
    /// What the relays add to it. The rest is what the destination announces on its own subflows.
    pub widened_bytes: u64,
}

impl CumAck {
    /// The first octet that the window does not cover.
    pub fn edge(&self) -> Dsn {
        self.rcv_nxt + self.window_bytes
    }
}

/// A new range, and the acknowledgement that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeUpdate {
    /// The range.
    pub range: DsnRange,
    /// What the destination has.
    pub ack: CumAck,
}

/// H = TBR F / 8: the octets that the application takes in a period. At least one.
pub fn range_len_bytes(target: Rate, period: Duration) -> u64 {
    target.bytes_in(period).max(1)
}

/// rho: the part of a range that must have arrived before the next one is announced. More than 0, at most 1; kept in
/// millionths, so that rho H is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    millionths: u32,
}

impl Threshold {
    /// The thesis' choice: 0.95.
    pub const THESIS: Self = Self { millionths: 950_000 };
    /// The choice for Co-MPTCP: 0.9.
    pub const COMPTCP: Self = Self { millionths: 900_000 };

    /// `rho`, to the nearest millionth; none outside (0, 1].
    pub fn new(rho: f64) -> Option<Self> {
        let millionths = (rho * 1e6).round();
        (1.0..=1e6).contains(&millionths).then_some(Self { millionths: millionths as u32 })
    }

    /// The fewest octets that are `rho` of `len_bytes`. At least one.
    pub(super) fn of(self, len_bytes: u64) -> u64 {
        let part = (u128::from(len_bytes) * u128::from(self.millionths)).div_ceil(1_000_000);
        (part as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_the_target_rate_takes_in_a_period() {
        // 3 Mbit/s for 2 s: 750000 octets, 536 packets of 1400 octets or 1400 of 536.
        let len_bytes = range_len_bytes(Rate::from_mbps(3), Duration::from_secs(2));
        assert_eq!(len_bytes, 750_000);
        assert_eq!((len_bytes.div_ceil(1400), len_bytes.div_ceil(536)), (536, 1400));
        assert_eq!(range_len_bytes(Rate::ZERO, Duration::from_secs(2)), 1);
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        assert_eq!(DsnRange { seq: 1, min: Dsn(0), max: Dsn(99) }.len_bytes(), 100);
        assert_eq!(DsnRange { seq: 1, min: Dsn(u64::MAX - 9), max: Dsn(89) }.len_bytes(), 100);
    }

    #[test]
    fn thresholds_are_exact() {
        assert_eq!(Threshold::THESIS.of(100), 95);
        assert_eq!(Threshold::COMPTCP.of(750_000), 675_000);
        assert_eq!(Threshold::new(0.07).unwrap().of(100), 7);
        assert_eq!(Threshold::new(0.95).unwrap().of(750_001), 712_501);
        assert_eq!(Threshold::new(0.000_001).unwrap().of(10), 1);
        assert_eq!(Threshold::new(1.0).unwrap().of(u64::MAX), u64::MAX);
        let refused = [0.0, -0.5, 1.1, f64::NAN, f64::INFINITY].map(Threshold::new);
        assert_eq!(refused, [None; 5]);
    }
}
