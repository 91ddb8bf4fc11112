//! Announcements of the destination to its relays about the data that it wants next, and the size of a range.

use units::{Dsn, Duration, Rate};

/// The data that relays forward at once (DSN_RANGE); both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsnRange {
    /// Number of the range in its connection, from 1; the range with the highest number is valid.
    pub seq: u64,
    /// MIN: the first octet of the range.
    pub min: Dsn,
    /// MAX: the last octet of the range.
    pub max: Dsn,
}

impl DsnRange {
    /// Returns H, octets.
    pub const fn len_bytes(&self) -> u64 {
        self.max.since(self.min).wrapping_add(1)
    }

    /// Returns whether this range was announced after `other`.
    pub const fn is_newer_than(&self, other: &Self) -> bool {
        self.seq > other.seq
    }
}

/// What the destination has, and what it can take (CUM_ACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CumAck {
    /// The first missing octet; a relay acknowledges it to the source as DATA_ACK.
    pub rcv_nxt: Dsn,
    /// The shared window from there on, octets.
    pub window_bytes: u64,
    /// Octets that the relays add to the window. The rest is what the destination announces on its own subflows.
    pub widened_bytes: u64,
}

impl CumAck {
    /// Returns the first octet that the window does not cover.
    pub fn edge(&self) -> Dsn {
        self.rcv_nxt + self.window_bytes
    }
}

/// A new range, with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeUpdate {
    /// The range.
    pub range: DsnRange,
    /// The acknowledgement.
    pub ack: CumAck,
}

/// Computes H = TBR F / 8: the octets that the application takes in a period. At least one.
pub fn range_len_bytes(target: Rate, period: Duration) -> u64 {
    target.bytes_in(period).max(1)
}

/// rho: the part of a range that must have arrived before the next one is announced. Above 0, at most 1; stored in
/// millionths, so rho H is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    millionths: u32,
}

impl Threshold {
    /// The thesis's choice: 0.95.
    pub const THESIS: Self = Self { millionths: 950_000 };
    /// The choice for Co-MPTCP: 0.9.
    pub const COMPTCP: Self = Self { millionths: 900_000 };

    /// Creates the threshold `rho`, to the nearest millionth; returns `None` outside (0, 1].
    pub fn new(rho: f64) -> Option<Self> {
        let millionths = (rho * 1e6).round();
        (1.0..=1e6).contains(&millionths).then_some(Self { millionths: millionths as u32 })
    }

    /// Returns the fewest octets that are `rho` of `len_bytes`. At least one.
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
