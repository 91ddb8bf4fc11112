//! Whether a transport block arrives intact.

use super::config::HarqConfig;
use super::decibel::{Decibel, to_db};

/// Decades of odds above which a failure counts as impossible.
const DECADES_MAX: f64 = 8.0;

/// Probability that a transmission fails: by chance, or because the channel is worse than the report by more than the
/// margin. `gain` is by how much the channel is better than the report. `attempt` is the number of earlier
/// transmissions of the block, whose energy adds up.
#[inline]
pub(crate) fn failure_probability(harq: &HarqConfig, gain: Decibel, attempt: u8) -> f64 {
    let transmissions = f64::from(attempt) + 1.0;
    let by_chance = match harq.block_error_rate.value() {
        0.0 => 0.0,
        rate => (0..attempt).fold(rate, |product, _| product * rate),
    };
    let combining_db = if attempt == 0 { 0.0 } else { to_db(transmissions) };
    let decades = (gain.db() + combining_db + harq.margin_db) / harq.decade_db;
    let by_channel = if decades > DECADES_MAX { 0.0 } else { 1.0 / (1.0 + libm::exp10(decades)) };
    by_chance + by_channel - by_chance * by_channel
}

#[cfg(test)]
mod tests {
    use units::Probability;

    use super::*;

    #[test]
    fn failures_follow_the_channel() {
        let harq = HarqConfig { margin_db: 5.0, decade_db: 0.5, ..HarqConfig::default() };
        let failure = |gain_db, attempt| failure_probability(&harq, Decibel::from_db(gain_db), attempt);
        assert_eq!([failure(0.0, 0), failure(-5.0, 0)], [0.0, 0.5]);
        // One decade of odds either way: 1/11 and 10/11.
        assert!((failure(-4.5, 0) - 1.0 / 11.0).abs() < 1e-9);
        assert!((failure(-5.5, 0) - 10.0 / 11.0).abs() < 1e-9);
        // Combining two transmissions gains 3 dB.
        assert!(failure(-7.0, 1) < 0.01 && failure(-9.1, 1) > 0.99);
    }

    #[test]
    fn chance_strikes_less_and_less() {
        let harq = HarqConfig { block_error_rate: Probability::new(0.1).unwrap(), ..HarqConfig::default() };
        assert_eq!(failure_probability(&harq, Decibel::ZERO, 0), 0.1);
        assert!((failure_probability(&harq, Decibel::ZERO, 1) - 0.01).abs() < 1e-12);
    }
}
