//! O3-DSN (MPTCP-rec): distance of a received chunk from the one received before it.

/// Offsets between the DSNs of chunks in order of arrival, duplicates included.
///
/// By this definition data in order have an offset of a chunk's length, not zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reordering {
    last_dsn: Option<u64>,
    window_peak_bytes: i64,
    peak_bytes: i64,
}

impl Reordering {
    /// A chunk with first octet `dsn` arrives. Returns its offset, unless it is the first.
    pub fn arrival(&mut self, dsn: u64) -> Option<i64> {
        let last = self.last_dsn.replace(dsn)?;
        let offset = dsn.wrapping_sub(last) as i64;
        for peak in [&mut self.window_peak_bytes, &mut self.peak_bytes] {
            if offset.unsigned_abs() > peak.unsigned_abs() {
                *peak = offset;
            }
        }
        Some(offset)
    }

    /// Ends the window: its offset with the largest absolute value, with sign; 0 without one.
    pub fn close(&mut self) -> i64 {
        core::mem::take(&mut self.window_peak_bytes)
    }

    /// The largest absolute value.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_keeps_its_sign_within_a_window() {
        let mut reordering = Reordering::default();
        let offsets: Vec<_> = [0, 1000, 9000, 2000, 3000].map(|dsn| reordering.arrival(dsn)).to_vec();
        assert_eq!(offsets, [None, Some(1000), Some(8000), Some(-7000), Some(1000)]);
        assert_eq!(reordering.close(), 8000);
        reordering.arrival(1000);
        reordering.arrival(2000);
        assert_eq!((reordering.close(), reordering.close()), (-2000, 0));
        assert_eq!(reordering.peak_bytes(), 8000);
    }
}
