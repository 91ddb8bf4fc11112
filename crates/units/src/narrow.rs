//! Conversions to fewer bits, one function per behaviour: a bare cast does not say whether it may lose anything.

/// Returns the low 32 bits: what a field or counter of four octets shows of a larger number.
pub const fn low_u32(number: u64) -> u32 {
    (number & 0xffff_ffff) as u32
}

/// Returns `number`, at most `u16::MAX`.
pub fn u16_from(number: u64) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// Returns `number`, at most `u32::MAX`.
pub fn u32_from(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns `number`, at most `u64::MAX`.
pub fn u64_from(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns `number`, at most `usize::MAX`; nothing in memory is larger.
pub fn usize_from(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns whether `one` comes before `other` on a counter that wraps (RFC 7323 section 5.2).
pub const fn precedes(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) >= 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_largest() {
        assert_eq!([u16_from(65_535), u16_from(65_536)], [65_535, 65_535]);
        assert_eq!([u32_from(7), u32_from(1 << 32)], [7, u32::MAX]);
        assert_eq!([u64_from(7), u64_from(1 << 64)], [7, u64::MAX]);
        assert_eq!(usize_from(7), 7);
        assert_eq!(low_u32(0x1_2345_6789), 0x2345_6789);
    }

    #[test]
    fn counters_wrap() {
        assert!(precedes(1, 2) && precedes(u32::MAX, 0) && precedes(0, (1 << 31) - 1));
        assert!(!precedes(2, 2) && !precedes(2, 1) && !precedes(0, u32::MAX));
    }
}
