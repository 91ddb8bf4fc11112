//! Triggers: when the set in use no longer serves (SSRS sections I, II-B and IV, thesis sections 4.1.1, 4.1.2 and 7.3.2
//! name the one or the other).

use units::Rate;

use super::Goal;

/// The quantity that is compared with the accepted range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// Either of the two below.
    #[default]
    Either,
    /// The throughput over all subflows in the latest period.
    Throughput,
    /// The sum of the offers of the relays in use.
    Advert,
}

/// The quantity that was out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// The throughput was out of range.
    Throughput,
    /// The sum of the offers was out of range.
    Advert,
}

impl Trigger {
    /// Returns whether the set in use should be left, and why.
    pub fn check(self, goal: &Goal, throughput: Rate, offered: Rate) -> Option<Outage> {
        let range = goal.range();
        let by_throughput = self != Self::Advert && !range.contains(throughput.as_bps());
        let by_advert = self != Self::Throughput && !range.contains(offered.as_bps());
        match (by_throughput, by_advert) {
            (true, _) => Some(Outage::Throughput),
            (false, true) => Some(Outage::Advert),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_of_the_two_can_be_out_of_range() {
        let goal = Goal { target: Rate::from_mbps(3), tolerance: 0.1 };
        let rate = |kbps: u64| Rate::from_bps(kbps * 1000);
        let check = |trigger: Trigger| {
            [(3000, 3000), (2690, 3000), (3000, 3310), (2700, 3300)]
                .map(|(throughput, offered)| trigger.check(&goal, rate(throughput), rate(offered)))
        };
        assert_eq!(check(Trigger::Either), [None, Some(Outage::Throughput), Some(Outage::Advert), None]);
        assert_eq!(check(Trigger::Throughput), [None, Some(Outage::Throughput), None, None]);
        assert_eq!(check(Trigger::Advert), [None, None, Some(Outage::Advert), None]);
    }
}
