//! What the relay at the far end of a path reports about the flows that compete with the subflow there.

use super::arithmetic::{ONE_Q16, q16_from_f64};

/// Believed strength of competing flows, segments per round trip. No TCP-friendly flow is stronger than AIMD(3, 0),
/// thesis (7.2). A relay that reports more must not make the source unfriendly, and no report may stop the source's
/// growth.
const INCREASE: core::ops::RangeInclusive<f64> = 1.0 / 64.0..=3.0;
/// A subflow that kept more than this after a loss would hardly respond to congestion.
const DECREASE_MAX: f64 = 0.875;
/// Larger ratios make no difference.
const RATIO_MAX: f64 = 1000.0;

/// Competition of one subflow with flows that end at its relay (thesis section 7.2). Numbers outside the range that
/// controllers believe count as the nearest number inside it; NaN counts as unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Competition {
    /// How far the subflow would exceed its harmless share if it behaved as usual (rho_r); above 1 there is
    /// competition. At most 1000.
    pub ratio: f64,
    /// Segments that a competing flow gains per round trip (alpha'_r), between 1/64 and 3; 1 is NewReno.
    pub increase: f64,
    /// Fraction of a competing flow's window that a loss leaves (beta'_r), at most 7/8; 1/2 is NewReno.
    pub decrease: f64,
}

impl Competition {
    /// The values without a report: NewReno flows whose demand is met.
    pub const NONE: Self = Self { ratio: 1.0, increase: 1.0, decrease: 0.5 };

    /// Returns the values that controllers use.
    pub fn believed(self) -> Self {
        let q16 = |units: u64| units as f64 / ONE_Q16 as f64;
        Self { ratio: self.excess(), increase: q16(self.increase_q16()), decrease: q16(self.decrease_q16()) }
    }

    /// rho_r, at least 1.
    pub(super) fn excess(&self) -> f64 {
        if self.ratio.is_nan() { 1.0 } else { self.ratio.clamp(1.0, RATIO_MAX) }
    }

    /// alpha'_r in units of 2^-16.
    pub(super) fn increase_q16(&self) -> u64 {
        if self.increase.is_nan() {
            return ONE_Q16;
        }
        q16_from_f64(self.increase.clamp(*INCREASE.start(), *INCREASE.end()))
    }

    /// beta'_r in units of 2^-16.
    pub(super) fn decrease_q16(&self) -> u64 {
        if self.decrease.is_nan() { ONE_Q16 / 2 } else { q16_from_f64(self.decrease.clamp(0.0, DECREASE_MAX)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_numbers_count_as_the_nearest_that_are_believed() {
        let told = |number| {
            let competition = Competition { ratio: number, increase: number, decrease: number };
            (competition.excess(), competition.increase_q16(), competition.decrease_q16())
        };
        assert_eq!(told(0.75), (1.0, 49_152, 49_152));
        assert_eq!(told(2.0), (2.0, 131_072, 57_344));
        assert_eq!(told(f64::NAN), (1.0, 65_536, 32_768));
        assert_eq!(told(f64::INFINITY), (1000.0, 196_608, 57_344));
        assert_eq!(told(-1.0), (1.0, 1_024, 0));
        let believed = Competition { ratio: 0.5, increase: 5.0, decrease: 0.9 }.believed();
        assert_eq!(believed, Competition { ratio: 1.0, increase: 3.0, decrease: 0.875 });
        assert_eq!(Competition::NONE.believed(), Competition::NONE);
    }
}
