//! Rates in bit/s, amounts in octets, probabilities.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Duration;

const BITS_PER_BYTE: u128 = 8;
const NANOS_PER_SEC: u128 = 1_000_000_000;

/// A rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Rate(u64);

/// An amount of data in octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ByteCount(pub u64);

/// A number from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Serialize)]
pub struct Probability(f64);

impl Probability {
    /// Probability zero.
    pub const ZERO: Self = Self(0.0);

    /// Returns the probability `value`, if it lies in `[0, 1]`.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns the number.
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl Rate {
    /// Rate zero.
    pub const ZERO: Self = Self(0);

    /// `bps` bit/s.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// `mbps` Mbit/s (10^6 bit/s).
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// Returns the rate that moves `bytes` octets in `span`; zero for an empty span.
    pub fn from_bytes_per(bytes: u64, span: Duration) -> Self {
        if span.is_zero() {
            return Self::ZERO;
        }
        let bps = u128::from(bytes) * BITS_PER_BYTE * NANOS_PER_SEC / u128::from(span.as_nanos());
        Self(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// Returns the rate in bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns the time to serialise `bytes` octets, rounded up to a nanosecond; [`Duration::MAX`] at rate zero.
    pub fn time_to_send(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // Packets fit 64-bit arithmetic, which divides several times faster than 128-bit.
        if let Some(bit_nanos) = bytes.checked_mul(8_000_000_000) {
            return Duration::from_nanos(bit_nanos.div_ceil(self.0));
        }
        let nanos = (u128::from(bytes) * BITS_PER_BYTE * NANOS_PER_SEC).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the number of octets that fit into `span`, rounded down.
    pub fn bytes_in(self, span: Duration) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / (BITS_PER_BYTE * NANOS_PER_SEC);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

impl fmt::Debug for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_at_ten_mbps_takes_1_2_ms() {
        let rate = Rate::from_mbps(10);
        assert_eq!(rate.time_to_send(1500), Duration::from_micros(1200));
        assert_eq!(rate.bytes_in(Duration::from_micros(1200)), 1500);
        assert_eq!(Rate::from_bytes_per(1500, Duration::from_micros(1200)), rate);
        assert_eq!(Rate::ZERO.time_to_send(1), Duration::MAX);
    }

    #[test]
    fn gigabytes_do_not_overflow() {
        assert_eq!(Rate::from_bps(8).time_to_send(10_000_000_000), Duration::from_secs(10_000_000_000));
    }
}
