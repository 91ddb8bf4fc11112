//! Random sets that reach the target: the baseline for selectors that weigh offers.
//!
//! ```text
//! drawn set   relays in random order, all orders equally likely, until S >= L       S: sum of offers; [L, U]: range
//! choice      the first of up to `draws` sets with S <= U; without one, the set nearest to TBR
//! b_i < `least` TBR   relay i takes part only if the others together do not reach L
//! ```
//!
//! With `draws` = 1 nobody looks at the range: the set only reaches the target.

use units::Prng;
use units::narrow::usize_from;

use super::field::{Candidate, Field};
use super::{Choice, Goal, Offer, Parameter, Range, Reasons, RelayId, RelaySelector, RelaySet, Values};

/// The parameters, in the order of the specification.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "draws",
        default: 100.0,
        values: Values::Whole(1, 10_000),
        meaning: "sets drawn in search of one in range; 1 takes the first that reaches the target",
    },
    Parameter {
        name: "least",
        default: 0.0,
        values: Values::Within(0.0, 1.0),
        meaning: "share of the target below which an offer counts only if the others do not suffice",
    },
];

/// Draws sets of relays. The backup is drawn in the same way: another set in range, or one that is nearer to the target
/// than the set in use.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    draws: u64,
    least: f64,
}

impl Random {
    /// Creates the selector from valid values of its parameters; the registry checks them.
    pub(super) fn new(draws: f64, least: f64) -> Self {
        Self { draws: draws as u64, least }
    }

    /// Returns the relays that take part.
    fn field(self, offers: &[Offer], range: Range) -> Field {
        let all = Field::new(offers);
        let large = all.offering((range.target_bps as f64 * self.least).ceil() as u64);
        if large.sum_bps() >= u128::from(range.low_bps) { large } else { all }
    }

    /// Draws a set other than `except`: the first in range, otherwise the nearest to the target.
    fn draw(self, order: &mut [&Candidate], range: Range, except: Option<&[RelayId]>, prng: &mut Prng) -> RelaySet {
        let mut nearest: Option<RelaySet> = None;
        for _ in 0..self.draws {
            let set = until_reached(order, range, prng);
            if except == Some(&set.relays[..]) {
                continue;
            }
            if range.contains(set.sum_bps) {
                return set;
            }
            let is_nearer = |other: &RelaySet| range.distance(set.sum_bps) < range.distance(other.sum_bps);
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = Some(set);
            }
        }
        nearest.unwrap_or_default()
    }
}

/// Takes relays at random until their sum reaches the range. The order of `order` does not matter, and changes.
fn until_reached(order: &mut [&Candidate], range: Range, prng: &mut Prng) -> RelaySet {
    let (mut sum_bps, mut taken) = (0, 0);
    while sum_bps < u128::from(range.low_bps) && taken < order.len() {
        let others = (order.len() - taken) as u64;
        order.swap(taken, taken + usize_from(prng.below(others)));
        sum_bps += u128::from(order[taken].bps);
        taken += 1;
    }
    RelaySet::of(&order[..taken])
}

impl RelaySelector for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId], prng: &mut Prng) -> Choice {
        let range = goal.range();
        let field = self.field(offers, range);
        let mut order: Vec<&Candidate> = field.0.iter().collect();
        let active = self.draw(&mut order, range, None, prng);
        let used = if in_use.is_empty() { active.clone() } else { offered(offers, in_use) };
        let another = self.draw(&mut order, range, Some(&used.relays), prng);
        let serves = range.contains(another.sum_bps) || range.distance(another.sum_bps) < range.distance(used.sum_bps);
        let backup = Some(another).filter(|set| serves && set.relays != used.relays);
        Choice { feasible: range.contains(active.sum_bps), active, backup }
    }

    fn reasons(&self, feasible: bool) -> Reasons {
        let active = match feasible {
            true => "relays in random order until the range is reached, the first such set in range",
            false => {
                "relays in random order until the range is reached; of the sets drawn, none is in range and this \
                      is the nearest"
            }
        };
        Reasons { active, backup: "another set drawn in the same way" }
    }
}

/// Returns the set in use, each relay once, and the sum of what its relays offer now.
fn offered(offers: &[Offer], in_use: &[RelayId]) -> RelaySet {
    let mut relays = in_use.to_vec();
    relays.sort_unstable();
    relays.dedup();
    let field = Field::new(offers);
    let used = field.0.iter().filter(|candidate| relays.binary_search(&candidate.id).is_ok());
    let sum_bps = used.map(|candidate| candidate.bps).fold(0, u64::saturating_add);
    RelaySet { relays, sum_bps }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;

    const GOAL: Goal = Goal { target: Rate::from_bps(3_000), tolerance: 0.1 };

    fn offers(rates_bps: &[u64]) -> Vec<Offer> {
        let offer = |(relay, bps): (u16, &u64)| Offer { relay: RelayId(relay), available: Rate::from_bps(*bps) };
        (0..).zip(rates_bps).map(offer).collect()
    }

    fn active(selector: Random, rates_bps: &[u64], prng: &mut Prng) -> Vec<u16> {
        let choice = { selector }.select(&offers(rates_bps), &GOAL, &[], prng);
        choice.active.relays.iter().map(|relay| relay.0).collect()
    }

    /// Any two of four equal relays make the target, each of the six pairs with probability 1/6.
    #[test]
    fn equal_relays_are_equally_likely() {
        let mut prng = Prng::new(11);
        let mut pairs = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            *pairs.entry(active(Random::new(1.0, 0.0), &[1_500; 4], &mut prng)).or_insert(0) += 1;
        }
        assert_eq!(pairs.len(), 6);
        // Binomial(6000, 1/6) has a standard deviation of 29; the test allows five of them on either side.
        assert!(pairs.iter().all(|(pair, count)| pair.len() == 2 && (855..=1145).contains(count)), "{pairs:?}");
    }

    /// Of the pairs, only {0, 1} is in range, and so are {0, 2, 3} and {1, 2, 3} with 2900.
    #[test]
    fn one_draw_takes_what_reaches_the_target_and_many_draws_look_for_the_range() {
        let rates_bps = [1_500, 1_500, 700, 700];
        let in_range = |draws| {
            let mut prng = Prng::new(3);
            let goes = |_| { Random::new(draws, 0.0) }.select(&offers(&rates_bps), &GOAL, &[], &mut prng);
            (0..1_000).map(goes).filter(|choice| choice.feasible).count()
        };
        // From the 24 orders: {0, 1} comes first in 4; {2, 3} first in 4, then 0 or 1; {0 or 1, 2 or 3} first in 16,
        // then the other small one in half of them (2900), the other large one (3700) in the others. 16 of 24 in range.
        let one = in_range(1.0);
        // Binomial(1000, 2/3) has a standard deviation of 15.
        assert!((592..=742).contains(&one), "{one}");
        assert_eq!(in_range(100.0), 1_000);
    }

    #[test]
    fn small_offers_count_only_where_the_others_do_not_suffice() {
        let mut prng = Prng::new(5);
        // 10 % of 3000 is 300.
        let selector = Random::new(100.0, 0.1);
        for _ in 0..100 {
            let chosen = active(selector, &[1_500, 1_500, 299, 300], &mut prng);
            assert!(!chosen.contains(&2), "{chosen:?}");
        }
        assert_eq!(active(selector, &[1_500, 1_100, 299], &mut prng), [0, 1, 2]);
    }

    #[test]
    fn the_backup_is_a_set_that_serves() {
        let mut prng = Prng::new(8);
        let mut selector = Random::new(100.0, 0.0);
        let mut backup = |rates_bps: &[u64], in_use: &[u16]| {
            let in_use: Vec<RelayId> = in_use.iter().copied().map(RelayId).collect();
            selector.select(&offers(rates_bps), &GOAL, &in_use, &mut prng).backup.map(|set| set.sum_bps)
        };
        assert_eq!(backup(&[1_500, 1_500, 1_500], &[0, 1]), Some(3_000));
        assert_eq!(backup(&[1_500, 1_500, 0], &[1, 0, 0]), None, "there is no other");
        // All together do not reach the range: there is nothing better than all.
        assert_eq!((backup(&[500, 600], &[0, 1]), backup(&[500, 600], &[0])), (None, Some(1_100)));
        // 4000 is as far from the target as the 2000 in use, and 4000 of others is no better.
        assert_eq!(backup(&[2_000, 2_000], &[0]), None);
    }
}
