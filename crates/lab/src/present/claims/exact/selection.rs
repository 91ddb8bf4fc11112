//! The subset sums that trimming keeps.

use cooperation::relay_selection::{
    Goal, Mode, Offer, RelayId, SelectorSettings, SelectorSpec, build, survives_trimming,
};
use units::{Prng, Rate};

const TARGET_BPS: u64 = 3_000_000;
const THETA: f64 = 0.1;
const EPSILON: f64 = 0.1;
/// Number of random draws of offers.
const DRAWS: u64 = 300;
/// Maximum number of relays: the test tries every subset.
const RELAYS_MAX: u64 = 12;

/// Share of random offers for which the lists of algorithm 1 hold a feasible set, among those with a subset whose sum is
/// at least (1 + epsilon) L and at most U: for these, trimming guarantees a feasible set.
pub(in super::super) fn feasible_found(mode: Mode) -> Option<f64> {
    let mut prng = Prng::new(65);
    let goal = Goal { target: Rate::from_bps(TARGET_BPS), tolerance: THETA };
    let (mut promised, mut found) = (0_u32, 0_u32);
    for _ in 0..DRAWS {
        let offers = draw(&mut prng);
        if has_sum_between(&offers, (1.0 + EPSILON) * (1.0 - THETA), 1.0 + THETA) {
            promised += 1;
            found += u32::from(is_found(mode, &offers, &goal, EPSILON)?);
        }
    }
    (promised > 0).then(|| f64::from(found) / f64::from(promised))
}

/// Returns whether the lists hold a feasible set. As corrected, the search alone is asked: the selector then tries every
/// subset, which finds whatever there is.
fn is_found(mode: Mode, offers: &[Offer], goal: &Goal, epsilon: f64) -> Option<bool> {
    if mode == Mode::Build {
        return Some(survives_trimming(offers, goal, epsilon));
    }
    let mut selector = build(&SelectorSpec::named("ssrs"), SelectorSettings { epsilon, mode }).ok()?;
    Some(selector.select(offers, goal, &[], &mut Prng::new(1)).feasible)
}

/// Draws from 2 to 12 relays with up to 1.5 Mbit/s each.
fn draw(prng: &mut Prng) -> Vec<Offer> {
    let count = 2 + prng.below(RELAYS_MAX - 1);
    let offer =
        |relay: u64| Offer { relay: RelayId(relay as u16), available: Rate::from_bps(1 + prng.below(1_500_000)) };
    (0..count).map(offer).collect()
}

/// Returns whether any subset has a sum in this range; tries all subsets. `low` and `high` are relative to the target.
fn has_sum_between(offers: &[Offer], low: f64, high: f64) -> bool {
    let sum_bps = |subset: u32| -> u64 {
        let chosen = offers.iter().enumerate().filter(|(index, _)| subset >> index & 1 == 1);
        chosen.map(|(_, offer)| offer.available.as_bps()).sum()
    };
    let target = TARGET_BPS as f64;
    (1..1_u32 << offers.len()).any(|subset| (low * target..=high * target).contains(&(sum_bps(subset) as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(rates_bps: [u64; 3]) -> Vec<Offer> {
        let offers = (0..).zip(rates_bps);
        offers.map(|(relay, bps)| Offer { relay: RelayId(relay), available: Rate::from_bps(bps) }).collect()
    }

    /// Only 101 and 200 make 301, which is less than (1 + epsilon) L; but 100 hides 101, as 100 (1 + 1 / 6) is more.
    #[test]
    fn what_trimming_loses_is_not_found() {
        let goal = Goal { target: Rate::from_bps(301), tolerance: 0.0 };
        let found = |mode, rates_bps| is_found(mode, &offers(rates_bps), &goal, 1.0);
        for mode in [Mode::Build, Mode::PaperThesis] {
            assert_eq!(found(mode, [100, 101, 200]), Some(false), "{mode:?}");
            assert_eq!(found(mode, [101, 100, 201]), Some(true), "{mode:?}");
        }
    }

    #[test]
    fn subsets_are_looked_at_one_by_one() {
        let offers = offers([700_000, 900_000, 1_400_000]);
        // All three offer 3 Mbit/s together, the largest two 2.3 Mbit/s.
        assert!(has_sum_between(&offers, 0.99, 1.1) && has_sum_between(&offers, 0.76, 0.77));
        assert!(!has_sum_between(&offers, 0.78, 0.99));
    }
}
