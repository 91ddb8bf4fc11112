//! Changes of a relay's offer over time. Sans-IO.

/// Minimum growth of an offer, bit/s; it must also double. Larger than the error of a relay's estimate (0.2 Mbit/s is
/// its goal, docs/relay.md).
const GROWTH_MIN_BPS: u64 = 500_000;

/// The lowest offer of a relay since its last growth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offer {
    least_bps: Option<u64>,
}

impl Offer {
    /// Notes the current offer (`None`: no limit). Returns true if it is much more than before: the relay's owner is
    /// done.
    pub fn grows_to(&mut self, bps: Option<u64>) -> bool {
        let bps = bps.unwrap_or(u64::MAX);
        let least_bps = self.least_bps.unwrap_or(bps);
        let grows = bps / 2 >= least_bps && bps - least_bps >= GROWTH_MIN_BPS;
        self.least_bps = Some(if grows { bps } else { bps.min(least_bps) });
        grows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_who_is_done_is_noticed_once() {
        let mut offer = Offer::default();
        let offers = [
            None,
            Some(16_000_000),
            Some(4_000_000),
            Some(20_000),
            Some(100_000),
            Some(15_000_000),
            Some(16_000_000),
            None,
        ];
        assert_eq!(offers.map(|bps| offer.grows_to(bps)), [false, false, false, false, false, true, false, true]);
    }

    #[test]
    fn little_more_is_nothing_new() {
        let mut offer = Offer::default();
        let offers = [10_000, 400_000, 10_000_000, 15_000_000, 9_000_000, 17_000_000, 18_000_000];
        let grows = offers.map(|bps| offer.grows_to(Some(bps)));
        assert_eq!(grows, [false, false, true, false, false, false, true]);
    }
}
