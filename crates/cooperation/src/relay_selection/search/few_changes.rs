//! Finds feasible sets a few additions and deletions away from the set in use.
//!
//! Among many relays, a search keeps the sets nearest to the target, which may share no relay with the set in use. This
//! search adds, for each number of deletions and additions up to two, the set nearest to the target.

use core::cmp::Ordering;

use arrayvec::ArrayVec;

use super::chain::Chain;
use super::pool::{Found, Pool};
use crate::relay_selection::Range;
use crate::relay_selection::field::{Field, Position};

/// Maximum number of deletions, and of additions.
const CHANGES_MAX: usize = 2;
/// Number of relays in use above which at most one is deleted: there would be too many pairs.
const PAIRS_MAX: usize = 32;

/// Adds to `pool` the best sets around the one that `in_use` marks.
///
/// `ascending` holds all positions in ascending order of their offers.
pub fn search(pool: &mut Pool, field: &Field, ascending: &[Position], range: Range, in_use: &[bool]) {
    let (mut used, mut free) = (Vec::with_capacity(ascending.len()), Vec::with_capacity(ascending.len()));
    for position in ascending {
        if in_use[usize::from(*position)] {
            used.push(*position);
        } else {
            free.push((field.bps(*position), *position));
        }
    }
    let used_bps = used.iter().map(|position| u128::from(field.bps(*position))).sum();
    let mut nearby = Nearby { field, range, in_use, used, used_bps, free, nearest: Default::default() };
    nearby.consider_all();
    for found in nearby.nearest.iter().flatten().flatten() {
        let chain = pool.chains.extend(Chain::EMPTY, nearby.set(found));
        pool.add(Found { sum_bps: found.sum_bps, chain }, range);
    }
}

/// A set, described by its differences from the set in use.
struct Change {
    deleted: ArrayVec<Position, CHANGES_MAX>,
    added: ArrayVec<Position, CHANGES_MAX>,
    sum_bps: u64,
}

struct Nearby<'a> {
    field: &'a Field,
    range: Range,
    /// Whether the relay at each position is in use.
    in_use: &'a [bool],
    used: Vec<Position>,
    used_bps: u128,
    /// Relays that are not in use, with their offers, in ascending order of the offers.
    free: Vec<(u64, Position)>,
    /// The feasible set nearest to the target, by number of deletions and of additions.
    nearest: [[Option<Change>; CHANGES_MAX + 1]; CHANGES_MAX + 1],
}

impl Nearby<'_> {
    fn consider_all(&mut self) {
        self.consider_without(&[]);
        for first in 0..self.used.len() {
            self.consider_without(&[self.used[first]]);
            let seconds = if self.used.len() <= PAIRS_MAX { first + 1..self.used.len() } else { 0..0 };
            for second in seconds {
                self.consider_without(&[self.used[first], self.used[second]]);
            }
        }
    }

    /// Considers the sets that lack `deleted` and have none, one or two additional relays.
    fn consider_without(&mut self, deleted: &[Position]) {
        let deleted_bps: u128 = deleted.iter().map(|position| u128::from(self.field.bps(*position))).sum();
        let left = u64::try_from(self.used_bps - deleted_bps).ok();
        let Some(sum_bps) = left.filter(|sum| *sum <= self.range.high_bps) else { return };
        if deleted.len() < self.used.len() {
            self.consider(deleted, &[], sum_bps);
        }
        if let Some(one) = self.nearest_one(sum_bps) {
            self.consider(deleted, &[one], sum_bps);
        }
        if let Some((one, other)) = self.nearest_two(sum_bps) {
            self.consider(deleted, &[one, other], sum_bps);
        }
    }

    /// Keeps the set if it is the nearest of its kind; ties go to the lowest numbers.
    fn consider(&mut self, deleted: &[Position], added: &[Position], left_bps: u64) {
        let sum = added.iter().try_fold(left_bps, |sum, position| sum.checked_add(self.field.bps(*position)));
        let Some(sum_bps) = sum.filter(|sum| self.range.contains(*sum)) else { return };
        let known = self.nearest[deleted.len()][added.len()].as_ref();
        if known.is_some_and(|known| self.range.distance(known.sum_bps) < self.range.distance(sum_bps)) {
            return;
        }
        let change =
            Change { deleted: deleted.iter().copied().collect(), added: added.iter().copied().collect(), sum_bps };
        let is_as_near = |known: &Change| self.range.distance(known.sum_bps) == self.range.distance(sum_bps);
        let precedes = known.is_none_or(|known| !is_as_near(known) || self.set(&change).lt(self.set(known)));
        if precedes {
            self.nearest[deleted.len()][added.len()] = Some(change);
        }
    }

    /// Returns the relays of a set, in ascending order.
    fn set(&self, change: &Change) -> impl Iterator<Item = Position> + use<> {
        let mut belongs = self.in_use.to_vec();
        change.deleted.iter().for_each(|position| belongs[usize::from(*position)] = false);
        change.added.iter().for_each(|position| belongs[usize::from(*position)] = true);
        (0..).zip(belongs).filter_map(|(position, belongs)| belongs.then_some(position))
    }

    fn nearest_one(&self, sum_bps: u64) -> Option<Position> {
        let reached = |bps: u64| sum_bps.saturating_add(bps);
        let split = self.free.partition_point(|(bps, _)| reached(*bps) < self.range.target_bps);
        let around = &self.free[split.saturating_sub(1)..self.free.len().min(split + 1)];
        let nearest = around.iter().min_by_key(|(bps, _)| self.range.distance(reached(*bps)));
        nearest.map(|(_, position)| *position)
    }

    /// Returns the pair nearest to the missing rate, if one is in the range. Searches from both ends of the order
    /// towards the middle.
    fn nearest_two(&self, sum_bps: u64) -> Option<(Position, Position)> {
        let with_smallest_bps = sum_bps.saturating_add(self.free.first()?.0);
        // A relay that exceeds the range even with the smallest one is in no pair.
        let fits = |(bps, _): &(u64, Position)| with_smallest_bps.saturating_add(*bps) <= self.range.high_bps;
        let fitting = self.free.partition_point(fits);
        let mut between = &self.free[..fitting];
        let (mut nearest, mut least_bps) = (None, u64::MAX);
        while let [(one_bps, one), inner @ .., (other_bps, other)] = between {
            let reached = sum_bps.saturating_add(*one_bps).saturating_add(*other_bps);
            let distance_bps = self.range.distance(reached);
            if distance_bps < least_bps {
                (nearest, least_bps) = (Some((*one, *other)), distance_bps);
            }
            match reached.cmp(&self.range.target_bps) {
                Ordering::Less => between = &between[1..],
                Ordering::Equal => break,
                Ordering::Greater => between = &between[..=inner.len()],
            }
        }
        nearest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{check, field, range};
    use super::*;

    fn sums(rates: &[u64], in_use: &[bool]) -> Vec<u64> {
        let (mut pool, range) = (Pool::default(), range(3000, 0.1));
        let field = field(rates);
        search(&mut pool, &field, &field.ascending(in_use), range, in_use);
        check(&pool, rates, range);
        pool.sets.iter().map(|found| found.sum_bps).collect()
    }

    #[test]
    fn the_nearest_set_of_each_change_is_found() {
        // One deletion leaves 2000: with 1030 it is 3030, with 400 and 610 it is 3010. Two leave 1000: the largest two
        // make only 2640.
        let rates = [1000, 1000, 1000, 400, 610, 1030];
        let in_use = [true, true, true, false, false, false];
        assert_eq!(sums(&rates, &in_use), [3000, 3030, 3010]);
    }

    #[test]
    fn with_nothing_in_use_one_or_two_relays_are_sought() {
        assert_eq!(sums(&[1600, 1300, 1500, 2900], &[false; 4]), [2900, 2900]);
        assert_eq!(sums(&[1600, 1300, 1500], &[false; 3]), [2900]);
    }

    proptest! {
        /// Pairs that the search skips are no better than the one found.
        #[test]
        fn the_nearest_pair_of_all_is_found(
            rates in proptest::collection::vec(prop_oneof![1_u64..3000, (1_u64..6).prop_map(|steps| steps * 500)], 2..20),
        ) {
            let (mut pool, range, field) = (Pool::default(), range(3000, 0.1), field(&rates));
            let in_use = vec![false; rates.len()];
            search(&mut pool, &field, &field.ascending(&in_use), range, &in_use);
            let of_two = pool.sets.iter().find(|found| pool.chains.len(found.chain) == 2);
            let pairs = (0..rates.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
            let sums = pairs.map(|(one, other)| rates[one] + rates[other]).filter(|sum| range.contains(*sum));
            let nearest = sums.map(|sum| range.distance(sum)).min();
            prop_assert_eq!(of_two.map(|found| range.distance(found.sum_bps)), nearest);
        }
    }
}
