//! The energy price of relays, and a selection that takes it into account (thesis section 8.2 leaves energy to future
//! work).
//!
//! ```text
//! E_k          = sum of b_i e_i over the relays of set k                    power if all that is offered is carried
//! cost_active' = norm(Delta B_k) + norm(N_k) + w norm(E_k)
//! cost_backup' = norm(Delta B_k) + norm(N_k) + norm(M_ops(A, k)) + w norm(E_k)
//! ```
//!
//! The terms are those of the selectors (`choice.rs`), over all feasible sets; w = 0 is the exact selection. A relay
//! sends its price with every advert, because only the relay knows its radio.

use core::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use units::Prng;

use super::field::Field;
use super::{Choice, Goal, Offer, Reasons, RelayId, RelaySelector, RelaySet};

/// With more relays than this, the other selector decides, because this one tries every subset.
const RELAYS_MAX: usize = 16;

/// Price of a relay for forwarding a bit, in nanojoules: from 0, which also stands for an unknown price, to
/// [`Self::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EnergyPrice(f64);

impl EnergyPrice {
    /// 1 J: far above any radio, and low enough for sums over all relays at any rate.
    pub const MAX: Self = Self(1e9);

    /// Creates the price; returns `None` if `nj_per_bit` is out of bounds.
    pub fn new(nj_per_bit: f64) -> Option<Self> {
        (0.0..=Self::MAX.0).contains(&nj_per_bit).then_some(Self(nj_per_bit))
    }

    /// Returns the price in nanojoules per bit.
    pub const fn nj_per_bit(self) -> f64 {
        self.0
    }
}

/// Sound, because a price is never NaN.
impl Eq for EnergyPrice {}

/// Selects relays with energy as an additional factor.
pub struct EnergyAware {
    /// The selector that decides if no set is feasible, and with too many relays.
    otherwise: Box<dyn RelaySelector>,
    prices: BTreeMap<RelayId, EnergyPrice>,
    weight: f64,
}

impl EnergyAware {
    /// Creates the selector. `weight` (w) is at least 0; at 1, energy counts as much as the distance from the target.
    pub fn new(otherwise: Box<dyn RelaySelector>, weight: f64) -> Self {
        Self { otherwise, prices: BTreeMap::new(), weight }
    }

    fn nj_per_bit(&self, relay: RelayId) -> f64 {
        self.prices.get(&relay).copied().unwrap_or_default().nj_per_bit()
    }

    /// Returns all feasible sets.
    fn feasible(&self, field: &Field, goal: &Goal) -> Vec<Rated> {
        let range = goal.range();
        let rated = (1_u32..1 << field.0.len()).filter_map(|mask| {
            let members =
                || field.0.iter().enumerate().filter(move |(at, _)| mask & 1 << at != 0).map(|(_, relay)| relay);
            let sum_bps: u64 = members().map(|relay| relay.bps).try_fold(0, u64::checked_add)?;
            range.contains(sum_bps).then(|| Rated {
                mask,
                sum_bps,
                distance: range.distance(sum_bps) as f64,
                power: members().map(|relay| relay.bps as f64 * self.nj_per_bit(relay.id)).sum(),
            })
        });
        rated.collect()
    }
}

/// A feasible set.
#[derive(Clone, Copy)]
struct Rated {
    mask: u32,
    sum_bps: u64,
    distance: f64,
    power: f64,
}

impl Rated {
    fn count(&self) -> f64 {
        f64::from(self.mask.count_ones())
    }

    fn relay_set(&self, field: &Field) -> RelaySet {
        let members = field.0.iter().enumerate().filter(|(at, _)| self.mask & 1 << at != 0);
        RelaySet { relays: members.map(|(_, relay)| relay.id).collect(), sum_bps: self.sum_bps }
    }
}

/// Normalises values to their place between the least and the greatest.
struct Norm {
    least: f64,
    width: f64,
}

impl Norm {
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) =
            values.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), x| (least.min(x), most.max(x)));
        Self { least, width: most - least }
    }

    fn of(&self, value: f64) -> f64 {
        if self.width > 0.0 { (value - self.least) / self.width } else { 0.0 }
    }
}

/// Returns the set of least cost. Ties: fewer relays, then nearer to the target, then fewer changes, then the lowest
/// numbers.
fn cheapest(sets: &[Rated], weight: f64, operations: impl Fn(&Rated) -> f64) -> Option<Rated> {
    let distance = Norm::over(sets.iter().map(|set| set.distance));
    let count = Norm::over(sets.iter().map(Rated::count));
    let power = Norm::over(sets.iter().map(|set| set.power));
    let changes = Norm::over(sets.iter().map(&operations));
    let cost = |set: &Rated| {
        distance.of(set.distance) + count.of(set.count()) + changes.of(operations(set)) + weight * power.of(set.power)
    };
    let key = |set: &Rated| [cost(set), set.count(), set.distance, operations(set)];
    sets.iter().copied().min_by(|one, other| {
        let by_key = key(one).into_iter().zip(key(other)).map(|(one, other)| one.total_cmp(&other));
        // Of two sets of equal size, the one with the lowest relay that is not in both comes first.
        by_key.fold(Ordering::Equal, Ordering::then).then(other.mask.reverse_bits().cmp(&one.mask.reverse_bits()))
    })
}

impl RelaySelector for EnergyAware {
    fn name(&self) -> &'static str {
        "energy"
    }

    fn hear_price(&mut self, relay: RelayId, price: EnergyPrice) {
        self.prices.insert(relay, price);
    }

    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId], prng: &mut Prng) -> Choice {
        let field = Field::new(offers);
        let sets = if field.0.len() <= RELAYS_MAX { self.feasible(&field, goal) } else { Vec::new() };
        let Some(active) = cheapest(&sets, self.weight, |_| 0.0) else {
            return self.otherwise.select(offers, goal, in_use, prng);
        };
        let active = active.relay_set(&field);
        let in_use: BTreeSet<RelayId> =
            if in_use.is_empty() { &active.relays } else { in_use }.iter().copied().collect();
        let marks = field.marks(&in_use.iter().copied().collect::<Vec<_>>());
        let present = marks.iter().enumerate().fold(0, |mask, (at, mark)| mask | u32::from(*mark) << at);
        let absent = (in_use.len() - present.count_ones() as usize) as f64;
        let operations = |set: &Rated| f64::from((set.mask ^ present).count_ones()) + absent;
        let others: Vec<Rated> = sets.into_iter().filter(|set| operations(set) > 0.0).collect();
        let backup = cheapest(&others, self.weight, operations).map(|set| set.relay_set(&field));
        Choice { active, backup, feasible: true }
    }

    fn reasons(&self, feasible: bool) -> Reasons {
        if !feasible {
            return self.otherwise.reasons(feasible);
        }
        Reasons {
            active: "least cost of the sets in range, with the relays' costs counted as well",
            backup: "least cost of the others, with the relays' costs and the number of changes counted as well",
        }
    }
}

#[cfg(test)]
mod tests {
    use units::{Duration, Instant, Rate};

    use super::super::manager::{ManagerSettings, RelayManager};
    use super::super::monitor::Advert;
    use super::super::{Exact, SelectorSettings, SelectorSpec, build};
    use super::*;

    const GOAL: Goal = Goal { target: Rate::from_mbps(3), tolerance: 0.1 };

    fn offers(kbps: &[u64]) -> Vec<Offer> {
        let offer =
            |(relay, kbps): (u16, &u64)| Offer { relay: RelayId(relay), available: Rate::from_bps(kbps * 1000) };
        (0..).zip(kbps).map(offer).collect()
    }

    fn choice(kbps: &[u64], nj_per_bit: &[f64], weight: f64, in_use: &[u16]) -> Choice {
        let otherwise = build(&SelectorSpec::named("ssrs"), SelectorSettings::default()).unwrap();
        let in_use: Vec<RelayId> = in_use.iter().map(|relay| RelayId(*relay)).collect();
        let mut selector = EnergyAware::new(otherwise, weight);
        let prices = (0..).map(RelayId).zip(nj_per_bit);
        prices.for_each(|(relay, price)| selector.hear_price(relay, EnergyPrice::new(*price).unwrap()));
        selector.select(&offers(kbps), &GOAL, &in_use, &mut Prng::new(1))
    }

    fn relays(set: &RelaySet) -> Vec<u16> {
        set.relays.iter().map(|relay| relay.0).collect()
    }

    /// Feasible are {0, 1} with 3.0 Mbit/s at 100 nJ/bit (0.3 W), {2, 3} with 3.0 at 50 (0.15 W), and mixed pairs in
    /// between.
    #[test]
    fn among_equal_sets_the_cheaper_one_is_preferred() {
        let (kbps, prices) = ([1500, 1500, 1500, 1500], [100.0, 100.0, 50.0, 50.0]);
        assert_eq!(relays(&choice(&kbps, &prices, 0.5, &[]).active), [2, 3]);
        assert_eq!(relays(&choice(&kbps, &prices, 0.0, &[]).active), [0, 1]);
    }

    /// {0, 1} has 3.0 Mbit/s at 0.3 W, {0, 2} 2.8 at 0.215, {1, 2} 2.8 at 0.215: the distances are 0 and 1, the powers
    /// 1 and 0.
    #[test]
    fn the_weight_decides_between_nearness_and_energy() {
        let (kbps, prices) = ([1500, 1500, 1300], [100.0, 100.0, 50.0]);
        assert_eq!(relays(&choice(&kbps, &prices, 0.9, &[]).active), [0, 1]);
        assert_eq!(relays(&choice(&kbps, &prices, 1.1, &[]).active), [0, 2]);
    }

    #[test]
    fn the_backup_is_another_set_with_few_changes() {
        let (kbps, prices) = ([1500, 1500, 1500, 1500], [100.0, 100.0, 50.0, 50.0]);
        // From {0, 1}: {2, 3} costs 4 changes; a mixed pair costs 2 and saves half as much.
        assert_eq!(relays(&choice(&kbps, &prices, 0.5, &[0, 1]).backup.unwrap()), [0, 2]);
        assert_eq!(relays(&choice(&kbps, &prices, 3.0, &[0, 1]).backup.unwrap()), [2, 3]);
        assert_eq!(choice(&[1500, 1500], &[], 1.0, &[0, 1]).backup, None);
    }

    #[test]
    fn what_is_no_price_is_none() {
        assert_eq!(
            [0.0, 333.5, 1e9].map(|nj| EnergyPrice::new(nj).map(EnergyPrice::nj_per_bit)),
            [0.0, 333.5, 1e9].map(Some)
        );
        assert_eq!([-1.0, 1.1e9, f64::INFINITY, f64::NAN].map(EnergyPrice::new), [None; 4]);
    }

    /// The highest price at the highest rates still gives sums that can be compared.
    #[test]
    fn absurd_prices_are_avoided_and_nothing_else() {
        let mut selector =
            EnergyAware::new(build(&SelectorSpec::named("ssrs"), SelectorSettings::default()).unwrap(), 1.0);
        selector.hear_price(RelayId(0), EnergyPrice::MAX);
        let offers = [1500, 1500, 1500].map(|kbps| Rate::from_bps(kbps * 1000));
        let offers: Vec<Offer> =
            (0..).map(RelayId).zip(offers).map(|(relay, available)| Offer { relay, available }).collect();
        assert_eq!(relays(&selector.select(&offers, &GOAL, &[], &mut Prng::new(1)).active), [1, 2]);
    }

    /// As above: {2, 3} costs half of {0, 1}.
    #[test]
    fn prices_come_with_adverts() {
        let otherwise = build(&SelectorSpec::named("ssrs"), SelectorSettings::default()).unwrap();
        let selector = Box::new(EnergyAware::new(otherwise, 0.5));
        let mut manager =
            RelayManager::new(ManagerSettings::build(Duration::from_secs(2)), GOAL, selector, Prng::new(1));
        for (relay, nj_per_bit) in (0..).map(RelayId).zip([100.0, 100.0, 50.0, 50.0]) {
            let (at, capacity, local) = (Instant::ZERO, Rate::from_bps(1_500_000), Rate::ZERO);
            let energy = EnergyPrice::new(nj_per_bit).unwrap();
            manager.handle_advert(Advert { relay, at, capacity, local, energy }, at);
        }
        manager.start(Instant::ZERO);
        assert_eq!(manager.target(), [2, 3].map(RelayId));
    }

    #[test]
    fn without_weight_it_is_the_exact_selection() {
        let kbps = [500, 600, 700, 800, 850, 900, 950, 1000, 1050, 1100];
        for in_use in [vec![], vec![4, 8, 9], vec![1, 2, 3], vec![0, 12]] {
            let ids: Vec<RelayId> = in_use.iter().map(|relay| RelayId(*relay)).collect();
            let exact = Exact.select(&offers(&kbps), &GOAL, &ids, &mut Prng::new(1));
            assert_eq!(choice(&kbps, &[1.0; 10], 0.0, &in_use), exact, "{in_use:?}");
        }
    }

    #[test]
    fn without_a_feasible_set_another_selector_decides() {
        let choice = choice(&[500, 600], &[1.0, 2.0], 1.0, &[]);
        assert_eq!((relays(&choice.active), choice.feasible), (vec![0, 1], false));
    }
}
