//! Credit: how far offers of relays are believed, from delivered over advertised rates while they carried data.
//!
//! ```text
//! after a period in which relay i carried data, and any arrived over any relay:
//!     q = delivered / advertised;  q < 1/2:  c_i = q, lies += 1      else: c_i = 1, lies = 0
//! after any other period:  c_i = 1 - (1 - c_i) 2^(-1 / h),  h = 4 2^(lies - 1) periods, at most 32
//! an offer of i counts as c_i b_i
//! ```
//!
//! A relay that cannot fill its link for a moment still delivers more than half of what it advertises. One whose source
//! pauses does not: the destination cannot tell it from one that lies. It is believed less until it delivers half
//! again, which one that advertises more than twice what it has never does.

use std::collections::BTreeMap;

use units::Rate;

use super::RelayId;

/// A relay that delivers less than this share of its advertised rate loses credit.
const HONEST_SHARE: f64 = 0.5;
/// Periods after which half of a first lie is forgotten; each further lie doubles them.
const HALF_LIFE_PERIODS: f64 = 4.0;
/// Number of lies after which the half-life stops growing.
const LIES_MAX: u32 = 4;
/// Credit above which a relay counts as fully forgiven.
const FORGIVEN: f64 = 0.99;

/// The credit of all relays.
#[derive(Clone, Debug, Default)]
pub struct Credit {
    entries: BTreeMap<RelayId, Entry>,
}

/// What a relay carried in a period.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// The relay.
    pub relay: RelayId,
    /// The rate that it had advertised.
    pub advertised: Rate,
    /// The rate at which data arrived through it.
    pub delivered: Rate,
}

impl Carried {
    /// Returns the delivered share of the advertised rate, if any was advertised.
    fn share(&self) -> Option<f64> {
        let advertised = Some(self.advertised).filter(|rate| *rate > Rate::ZERO)?;
        Some(self.delivered.as_bps() as f64 / advertised.as_bps() as f64)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    credit: f64,
    lies: u32,
}

impl Credit {
    /// Judges the relays that carried data in a period, all of them together. A period in which nothing arrived over
    /// any of them shows nothing about anybody.
    pub fn judge(&mut self, carried: &[Carried]) {
        if carried.iter().all(|carried| carried.delivered == Rate::ZERO) {
            return;
        }
        for (relay, share) in carried.iter().filter_map(|carried| Some((carried.relay, carried.share()?))) {
            if share < HONEST_SHARE {
                let entry = self.entries.entry(relay).or_insert(Entry { credit: 1.0, lies: 0 });
                *entry = Entry { credit: share, lies: (entry.lies + 1).min(LIES_MAX) };
            } else {
                self.entries.remove(&relay);
            }
        }
    }

    /// Records a period in which `relay` carried nothing.
    pub fn rested(&mut self, relay: RelayId) {
        if let Some(Entry { credit, lies }) = self.entries.get_mut(&relay) {
            let half_life = HALF_LIFE_PERIODS * f64::from(1_u32 << (*lies - 1));
            let lost = (1.0 - *credit) * libm::exp2(-1.0 / half_life);
            *credit = if 1.0 - lost > FORGIVEN { 1.0 } else { 1.0 - lost };
        }
    }

    /// Returns the rate that an offer of `relay` counts as.
    pub fn believed(&self, relay: RelayId, offered: Rate) -> Rate {
        match self.entries.get(&relay) {
            Some(entry) => Rate::from_bps((offered.as_bps() as f64 * entry.credit).round() as u64),
            None => offered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIAR: RelayId = RelayId(3);
    const SAID: Rate = Rate::from_mbps(3);

    fn carried(credit: &mut Credit, relay: RelayId, advertised: Rate, delivered: Rate) {
        credit.judge(&[Carried { relay, advertised, delivered }]);
    }

    fn believed_kbps(credit: &Credit) -> u64 {
        credit.believed(LIAR, SAID).as_bps() / 1000
    }

    #[test]
    fn a_lie_is_discounted_and_forgotten_over_time() {
        let mut credit = Credit::default();
        carried(&mut credit, LIAR, SAID, Rate::from_bps(300_000));
        assert_eq!(believed_kbps(&credit), 300);
        // Four periods: half of the lost 90 % are back.
        (0..4).for_each(|_| credit.rested(LIAR));
        assert_eq!(believed_kbps(&credit), 1650);
        // 0.9 / 2^(n / 4) is below 1 % after 26 periods.
        (4..25).for_each(|_| credit.rested(LIAR));
        assert!(believed_kbps(&credit) < 3000);
        credit.rested(LIAR);
        assert_eq!(believed_kbps(&credit), 3000);
    }

    #[test]
    fn who_lies_again_is_mistrusted_for_longer() {
        let mut credit = Credit::default();
        (0..2).for_each(|_| carried(&mut credit, LIAR, SAID, Rate::from_bps(300_000)));
        (0..8).for_each(|_| credit.rested(LIAR));
        assert_eq!(believed_kbps(&credit), 1650);
    }

    #[test]
    fn who_delivers_again_is_believed_again() {
        let mut credit = Credit::default();
        carried(&mut credit, LIAR, SAID, Rate::from_bps(300_000));
        carried(&mut credit, LIAR, SAID, Rate::ZERO);
        assert_eq!(believed_kbps(&credit), 300, "a period without any data shows nothing");
        carried(&mut credit, LIAR, SAID, Rate::from_bps(1_500_000));
        assert_eq!(believed_kbps(&credit), 3000);
    }

    #[test]
    fn who_delivers_half_is_believed() {
        let mut credit = Credit::default();
        carried(&mut credit, LIAR, SAID, Rate::from_bps(1_500_000));
        carried(&mut credit, RelayId(4), Rate::ZERO, Rate::ZERO);
        credit.rested(LIAR);
        assert_eq!((believed_kbps(&credit), credit.believed(RelayId(4), SAID)), (3000, SAID));
    }
}
