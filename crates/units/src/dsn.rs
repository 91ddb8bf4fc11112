//! MPTCP data sequence numbers (RFC 8684 section 3.3): 64 bits, of which the wire may carry the low 32.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use crate::narrow::low_u32;

/// A 64-bit data sequence number. Compared modulo 2^64, like [`crate::SeqNr`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dsn(pub u64);

impl Dsn {
    /// `self < other` in data sequence space.
    pub const fn before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) >= 1 << 63
    }

    /// `self <= other` in data sequence space.
    pub const fn before_or_at(self, other: Self) -> bool {
        // One comparison covers both cases, equal and before.
        other.0.wrapping_sub(self.0) <= 1 << 63
    }

    /// `self > other` in data sequence space.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// `self >= other` in data sequence space.
    pub const fn at_or_after(self, other: Self) -> bool {
        other.before_or_at(self)
    }

    /// Octets from `earlier` up to `self`, modulo 2^64.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }

    /// The later of two data sequence numbers.
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The earlier of two data sequence numbers.
    pub const fn min(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }

    /// The low 32 bits: a 4-octet number on the wire.
    pub const fn low(self) -> u32 {
        low_u32(self.0)
    }

    /// The 64-bit number nearest to `reference` whose low 32 bits are `low` (RFC 8684 section 3.3.1: the upper bits
    /// of a 4-octet number are implied by the window).
    pub const fn expand(low: u32, reference: Self) -> Self {
        let ahead = low.wrapping_sub(reference.low());
        if ahead < 1 << 31 {
            Self(reference.0.wrapping_add(ahead as u64))
        } else {
            Self(reference.0.wrapping_sub(ahead.wrapping_neg() as u64))
        }
    }
}

impl Add<u64> for Dsn {
    type Output = Dsn;
    fn add(self, octets: u64) -> Dsn {
        Dsn(self.0.wrapping_add(octets))
    }
}

impl AddAssign<u64> for Dsn {
    fn add_assign(&mut self, octets: u64) {
        *self = *self + octets;
    }
}

impl Sub<u64> for Dsn {
    type Output = Dsn;
    fn sub(self, octets: u64) -> Dsn {
        Dsn(self.0.wrapping_sub(octets))
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_to_the_nearest() {
        let reference = Dsn(0x1_ffff_fff0);
        assert_eq!(Dsn::expand(0xffff_fff8, reference), Dsn(0x1_ffff_fff8));
        assert_eq!(Dsn::expand(0x0000_0010, reference), Dsn(0x2_0000_0010));
        assert_eq!(Dsn::expand(0xffff_ff00, Dsn(0x2_0000_0010)), Dsn(0x1_ffff_ff00));
    }

    #[test]
    fn compares_across_the_wrap() {
        let last = Dsn(u64::MAX);
        assert!(last.before(last + 1));
        assert_eq!((last + 2).since(last), 2);
    }

    #[test]
    fn before_or_at_is_either_however_far() {
        for distance in [0, 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX] {
            let (first, other) = (Dsn(5), Dsn(5) + distance);
            assert_eq!(first.before_or_at(other), first == other || first.before(other), "{distance}");
            assert_eq!(first.at_or_after(other), first == other || first.after(other), "{distance}");
        }
    }
}
