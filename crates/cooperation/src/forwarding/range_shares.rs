//! A separate range for each relay: the faster a relay, the further ahead it may forward (thesis section 8.2 leaves
//! this to future work, without a formula).
//!
//! ```text
//! H_i = H n r_i / (r_1 + ... + r_n)        r_i: rate of relay i, of n in use
//! H_i is at least H and at most 2 H; all begin at MIN
//! ```
//!
//! Never less than H: the range moves on when all of [MIN, MIN + H - 1] has arrived, so a relay that held a part of it
//! would delay all others until its packets have waited T_hold.

use units::Rate;

use super::range::DsnRange;
use crate::relay_selection::RelayId;

/// The relays in use, with their rates.
#[derive(Clone, Debug, Default)]
pub struct RangeShares {
    rates: Vec<(RelayId, Rate)>,
}

impl RangeShares {
    /// Creates the shares of relays that carry data at these rates.
    pub fn new(rates: Vec<(RelayId, Rate)>) -> Self {
        Self { rates }
    }

    /// Returns the range for `relay` when the common range is `range`. A relay that is not in use gets the common
    /// range.
    pub fn of(&self, relay: RelayId, range: DsnRange) -> DsnRange {
        let rate = self.rates.iter().find(|(known, _)| *known == relay).map(|(_, rate)| u128::from(rate.as_bps()));
        let sum: u128 = self.rates.iter().map(|(_, rate)| u128::from(rate.as_bps())).sum();
        let Some(rate_bps) = rate.filter(|_| sum > 0) else { return range };
        let len_bytes = u128::from(range.len_bytes());
        let share = len_bytes.saturating_mul(self.rates.len() as u128).saturating_mul(rate_bps) / sum;
        let share_bytes = share.clamp(len_bytes, 2 * len_bytes).min(u128::from(u64::MAX)) as u64;
        DsnRange { max: range.min + (share_bytes - 1), ..range }
    }
}

#[cfg(test)]
mod tests {
    use units::Dsn;

    use super::*;

    fn lengths(rates_kbps: &[u64], relays: &[u16]) -> Vec<u64> {
        let rate = |(relay, kbps): (u16, &u64)| (RelayId(relay), Rate::from_bps(kbps * 1000));
        let shares = RangeShares::new((0..).zip(rates_kbps).map(rate).collect());
        let range = DsnRange { seq: 7, min: Dsn(1001), max: Dsn(2000) };
        let told = relays.iter().map(|relay| shares.of(RelayId(*relay), range));
        told.inspect(|told| assert_eq!((told.seq, told.min), (7, range.min))).map(|told| told.len_bytes()).collect()
    }

    #[test]
    fn a_share_is_in_proportion_to_the_rate() {
        // 3 Mbit/s over three: 0.8, 1.0 and 1.2 times 1000 octets, but never less than 1000. Relay 9 carries nothing.
        assert_eq!(lengths(&[800, 1000, 1200], &[0, 1, 2, 9]), [1000, 1000, 1200, 1000]);
        assert_eq!(lengths(&[1500, 1500], &[0, 1]), [1000, 1000]);
    }

    #[test]
    fn no_share_is_tiny_or_huge() {
        // One tenth and 1.9 of it; then, over four, 2.8 times.
        assert_eq!(lengths(&[100, 1900], &[0, 1]), [1000, 1900]);
        assert_eq!(lengths(&[100, 100, 100, 700], &[3, 0]), [2000, 1000]);
    }

    #[test]
    fn without_rates_the_range_is_as_it_is() {
        assert_eq!(lengths(&[0, 0], &[0, 1]), [1000, 1000]);
        assert_eq!(lengths(&[], &[0]), [1000]);
    }

    #[test]
    fn the_longest_range_does_not_overflow() {
        let shares = RangeShares::new(vec![(RelayId(0), Rate::from_bps(u64::MAX)), (RelayId(1), Rate::ZERO)]);
        let range = DsnRange { seq: 1, min: Dsn(0), max: Dsn(u64::MAX - 1) };
        assert_eq!(shares.of(RelayId(0), range).max, Dsn(u64::MAX - 1));
    }
}
