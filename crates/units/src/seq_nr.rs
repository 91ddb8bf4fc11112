//! TCP sequence numbers (RFC 9293 section 3.4): 32 bits, compared modulo 2^32.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use crate::narrow::precedes;

/// A TCP sequence number. Comparisons hold for numbers less than 2^31 apart; the type therefore has no `Ord`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNr(pub u32);

impl SeqNr {
    /// `self < other` in sequence space.
    pub const fn before(self, other: Self) -> bool {
        precedes(self.0, other.0)
    }

    /// `self <= other` in sequence space.
    pub const fn before_or_at(self, other: Self) -> bool {
        // One comparison covers both cases, equal and before.
        other.0.wrapping_sub(self.0) <= 1 << 31
    }

    /// `self > other` in sequence space.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// `self >= other` in sequence space.
    pub const fn at_or_after(self, other: Self) -> bool {
        other.before_or_at(self)
    }

    /// `low <= self < low + len`: the acceptability test of RFC 9293 section 3.4.
    pub const fn in_window(self, low: Self, len: u32) -> bool {
        self.0.wrapping_sub(low.0) < len
    }

    /// Octets from `earlier` up to `self`, modulo 2^32.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// The later of two sequence numbers.
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The earlier of two sequence numbers.
    pub const fn min(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }
}

impl Add<u32> for SeqNr {
    type Output = SeqNr;
    fn add(self, octets: u32) -> SeqNr {
        SeqNr(self.0.wrapping_add(octets))
    }
}

impl AddAssign<u32> for SeqNr {
    fn add_assign(&mut self, octets: u32) {
        *self = *self + octets;
    }
}

impl Sub<u32> for SeqNr {
    type Output = SeqNr;
    fn sub(self, octets: u32) -> SeqNr {
        SeqNr(self.0.wrapping_sub(octets))
    }
}

impl fmt::Debug for SeqNr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_across_the_wrap() {
        let before_wrap = SeqNr(u32::MAX - 1);
        let after_wrap = before_wrap + 4;
        assert_eq!(after_wrap, SeqNr(2));
        assert!(before_wrap.before(after_wrap));
        assert!(after_wrap.after(before_wrap));
        assert_eq!(after_wrap.since(before_wrap), 4);
        assert_eq!(before_wrap.max(after_wrap), after_wrap);
        assert!(after_wrap.in_window(before_wrap, 5));
        assert!(!after_wrap.in_window(before_wrap, 4));
    }

    #[test]
    fn before_or_at_is_either_however_far() {
        for distance in [0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX] {
            let (first, other) = (SeqNr(5), SeqNr(5) + distance);
            assert_eq!(first.before_or_at(other), first == other || first.before(other), "{distance}");
            assert_eq!(first.at_or_after(other), first == other || first.after(other), "{distance}");
        }
    }
}
