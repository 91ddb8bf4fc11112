//! Integer arithmetic shared by the controllers. A kernel has no floating point, so all windows are octets or segments
//! in fixed point.

use super::{AckSample, PathView, WindowStep};

/// One, in units of 2^-16.
pub(super) const ONE_Q16: u64 = 1 << 16;

/// Returns `a * b / c`, rounded down and at most `u64::MAX`; a divisor of zero counts as one.
pub(super) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    let c = c.max(1);
    // Windows and segments fit 64-bit arithmetic, which divides several times faster than 128-bit.
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

/// `value` in units of 2^-16, for parameters that arrive as decimal numbers.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that does not fit gives the nearest integer that does"
)]
pub(super) fn q16_from_f64(value: f64) -> u64 {
    (value * ONE_Q16 as f64).round() as u64
}

/// Returns the octets of `ack` that may grow the window: none if the window was not the limit (RFC 7661), at most one
/// window's worth (RFC 3465 section 2.1). An ACK for much more than was sent therefore gains nothing.
pub(super) fn creditable_bytes(ack: &AckSample, path: &PathView) -> u64 {
    if ack.cwnd_limited { ack.acked_bytes.min(path.cwnd) } else { 0 }
}

/// Returns the growth, in 2^-16 octet, that `acked_bytes` earn in a window of `window_bytes` that grows by
/// `per_window_q16` per round trip: for 1 MSS, `per_window_q16 = mss_q16(path)`.
pub(super) fn share_q16(acked_bytes: u64, per_window_q16: u64, window_bytes: u64) -> u64 {
    mul_div(acked_bytes, per_window_q16, window_bytes)
}

/// One maximum segment in 2^-16 octet.
pub(super) fn mss_q16(path: &PathView) -> u64 {
    u64::from(path.mss) * ONE_Q16
}

/// A growth of `q16` units of 2^-16 octet.
pub(super) fn grow_q16(q16: u64) -> WindowStep {
    WindowStep::from_q16(i64::try_from(q16).unwrap_or(i64::MAX))
}

/// The integer cube root: the largest `r` with `r^3 <= n`.
pub(super) fn cube_root(n: u64) -> u64 {
    // 2642245^3 is the largest cube in 64 bits.
    let (mut low, mut high) = (0_u64, 2_642_245_u64);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= n {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_round_down() {
        assert_eq!([0, 1, 7, 8, 26, 27].map(cube_root), [0, 1, 1, 2, 2, 3]);
        assert_eq!(cube_root(999_999_999_999), 9_999);
        assert_eq!(cube_root(1_000_000_000_000), 10_000);
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }

    #[test]
    fn products_beyond_64_bits_divide_right() {
        assert_eq!(mul_div(7, 5, 2), 17);
        assert_eq!(mul_div(1 << 40, 1 << 40, 1 << 30), 1 << 50);
        assert_eq!(mul_div(u64::MAX, u64::MAX, 1), u64::MAX);
        assert_eq!(mul_div(6, 7, 0), 42);
    }
}
