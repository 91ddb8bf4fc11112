//! The range around the target bit rate in which the sum of a relay set is accepted.

use super::Goal;

/// Unit in which the tolerance is counted, as parts of 1: bounds are exact integers, so equal sums compare as equal.
const PARTS: u128 = 1_000_000_000;

/// The sums that a [`Goal`] accepts, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Lower bound, (1 - theta) TBR rounded up.
    pub low_bps: u64,
    /// TBR.
    pub target_bps: u64,
    /// Upper bound, (1 + theta) TBR rounded down.
    pub high_bps: u64,
}

impl Range {
    /// Returns whether the sum is accepted.
    pub fn contains(self, sum_bps: u64) -> bool {
        (self.low_bps..=self.high_bps).contains(&sum_bps)
    }

    /// Returns the distance of the sum from the target (Delta B), bit/s.
    pub fn distance(self, sum_bps: u64) -> u64 {
        sum_bps.abs_diff(self.target_bps)
    }
}

impl Goal {
    /// Returns the accepted range. A tolerance below 0 (or NaN) counts as 0, above 1 as 1; it is rounded to a
    /// billionth.
    pub fn range(&self) -> Range {
        let target_bps = self.target.as_bps();
        let tolerance = (self.tolerance.clamp(0.0, 1.0) * PARTS as f64).round() as u128;
        let scaled = |parts: u128| u128::from(target_bps) * parts;
        Range {
            low_bps: saturated(scaled(PARTS - tolerance).div_ceil(PARTS)),
            target_bps,
            high_bps: saturated(scaled(PARTS + tolerance) / PARTS),
        }
    }
}

fn saturated(bps: u128) -> u64 {
    u64::try_from(bps).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;

    fn range(target_bps: u64, tolerance: f64) -> (u64, u64) {
        let range = Goal { target: Rate::from_bps(target_bps), tolerance }.range();
        (range.low_bps, range.high_bps)
    }

    #[test]
    fn ten_percent_of_three_megabit() {
        assert_eq!(range(3_000_000, 0.1), (2_700_000, 3_300_000));
        let range = Goal { target: Rate::from_mbps(3), tolerance: 0.1 }.range();
        assert!(range.contains(2_700_000) && range.contains(3_300_000));
        assert!(!range.contains(2_699_999) && !range.contains(3_300_001));
        assert_eq!((range.distance(2_950_000), range.distance(3_100_000)), (50_000, 100_000));
    }

    #[test]
    fn bounds_lie_within_the_tolerance() {
        // 10 % of 15 bit/s are 1.5: 14 is in, 13 is out, 16 is in, 17 is out.
        assert_eq!(range(15, 0.1), (14, 16));
        assert_eq!(range(15, 0.0), (15, 15));
        assert_eq!(range(0, 0.1), (0, 0));
    }

    #[test]
    fn absurd_values_have_a_range() {
        assert_eq!(range(15, -1.0), (15, 15));
        assert_eq!(range(15, f64::NAN), (15, 15));
        assert_eq!(range(15, f64::INFINITY), (0, 30));
        assert_eq!(range(u64::MAX, 0.5), (u64::MAX / 2 + 1, u64::MAX));
    }
}
