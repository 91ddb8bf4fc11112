//! A limit on a UE's rate.

use units::{Instant, Rate};

use super::TTI;

/// Unused capacity expires after this many TTIs.
const CREDIT_TTIS: u64 = 20;

/// A virtual clock that advances by the time that each grant takes at the limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    rate: Rate,
    paid_until: Instant,
}

impl Pace {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, paid_until: Instant::ZERO }
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts octets sent in `tti`. Returns the first TTI in which more may follow.
    pub(crate) fn charge(&mut self, bytes: u32, tti: u64) -> u64 {
        let oldest = Instant::from_nanos(tti.saturating_sub(CREDIT_TTIS) * TTI.as_nanos());
        self.paid_until = self.paid_until.max(oldest) + self.rate.time_to_send(u64::from(bytes));
        self.paid_until.as_nanos().div_ceil(TTI.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mbps_are_250_octets_per_tti() {
        let mut pace = Pace::new(Rate::from_mbps(2));
        // 5000 octets are 20 TTIs; the credit from before TTI 100 is used first.
        assert_eq!([pace.charge(5000, 100), pace.charge(2500, 100), pace.charge(250, 110)], [100, 110, 111]);
        assert_eq!(pace.charge(1, 111), 112);
        assert_eq!(pace.charge(5250, 1000), 1001);
    }
}
