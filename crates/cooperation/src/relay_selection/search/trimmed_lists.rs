//! Feasible sets by trimmed subset sums: SSRS Alg. 1, thesis Alg. 1, corrected.
//!
//! Relays are taken one after another. A list holds the sums of subsets of those taken so far, ascending, none above the range;
//! of sums closer than the factor 1 + d, d = epsilon / 2N, only the smallest stays (Cormen et al., trimming). Feasible sets
//! are collected before the lists are trimmed. So for every feasible sum y one from y / (1 + epsilon) to y is found.

use core::cmp::{Ordering, Reverse};

use super::chain::{Chain, Chains};
use super::pool::{Found, Pool};
use crate::relay_selection::Range;
use crate::relay_selection::field::{Field, Position};

/// Which sums may trim each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// Those of sets with equally many relays: a set never hides one with fewer relays.
    PerCardinality,
    /// All, as the papers print it.
    One,
}

/// Feasible sets of `field`; `in_use` marks the relays that carry data.
pub fn search(pool: &mut Pool, field: &Field, range: Range, epsilon: f64, classes: Classes, in_use: &[bool]) {
    let count = field.0.len();
    let trim = epsilon / (2.0 * count as f64);
    let mut lists = Lists { field, range, trim, in_use, pool, merged: Vec::new() };
    let empty = Found { sum_bps: 0, chain: Chain::EMPTY };
    let mut by_class = vec![vec![empty]];
    for position in 0..count as u32 {
        match classes {
            Classes::PerCardinality => lists.take_per_cardinality(&mut by_class, position as Position),
            Classes::One => lists.take(&mut by_class, 0, 0, position as Position),
        }
    }
    // Feasible sums were collected on the way; what is left below the range is the nearest miss.
    let below = by_class.iter().flatten().filter(|found| found.sum_bps < range.low_bps);
    let nearest = below.max_by_key(|found| (found.sum_bps, Reverse(lists.pool.chains.len(found.chain)))).copied();
    lists.pool.below = nearest.filter(|found| found.sum_bps > 0);
}

struct Lists<'a> {
    field: &'a Field,
    range: Range,
    /// d
    trim: f64,
    in_use: &'a [bool],
    pool: &'a mut Pool,
    merged: Vec<Found>,
}

impl Lists<'_> {
    /// One more relay, classes in descending order: it is used at most once in a set.
    fn take_per_cardinality(&mut self, by_class: &mut Vec<Vec<Found>>, position: Position) {
        by_class.push(Vec::new());
        for class in (1..by_class.len()).rev() {
            self.take(by_class, class - 1, class, position);
        }
        if by_class.last().is_some_and(Vec::is_empty) {
            by_class.pop();
        }
    }

    /// Adds the relay to the sets of class `from`, merges the result into class `to`, and trims.
    fn take(&mut self, by_class: &mut [Vec<Found>], from: usize, to: usize, position: Position) {
        let bps = self.field.bps(position);
        let mut merged = core::mem::take(&mut self.merged);
        merged.clear();
        let mut trimmed_to = None;
        let mut keep = |found: Found| {
            if trimmed_to.is_none_or(|limit| found.sum_bps > limit) {
                // Rounded down: sums are integers, so the next one is above the limit if and only if it is above the real one.
                let width = (found.sum_bps as f64 * self.trim) as u64;
                trimmed_to = Some(found.sum_bps.saturating_add(width));
                merged.push(found);
            }
        };
        let mut old = by_class[to].iter().copied().peekable();
        for parent in &by_class[from] {
            let Some(sum_bps) = parent.sum_bps.checked_add(bps) else { break };
            let new = Found { sum_bps, chain: self.pool.chains.push(parent.chain, position) };
            if new.sum_bps >= self.range.low_bps {
                self.pool.add(new, self.range);
            }
            if new.sum_bps > self.range.high_bps {
                break;
            }
            let chains = &self.pool.chains;
            let precedes = |old: &Found| precedes(chains, self.in_use, *old, new);
            while let Some(found) = old.next_if(precedes) {
                keep(found);
            }
            keep(new);
        }
        old.for_each(keep);
        self.merged = core::mem::replace(&mut by_class[to], merged);
    }
}

/// Whether `old` comes first: the smaller sum; of equal sums the set that takes fewer changes, then the lowest numbers.
fn precedes(chains: &Chains, in_use: &[bool], old: Found, new: Found) -> bool {
    let ties = || {
        let changes = |found: Found| chains.len(found.chain) as i64 - 2 * chains.marked(found.chain, in_use) as i64;
        let by_changes = changes(old).cmp(&changes(new));
        let by_size = || chains.len(old.chain).cmp(&chains.len(new.chain));
        by_changes.then_with(by_size).then_with(|| chains.compare_ascending(old.chain, new.chain))
    };
    old.sum_bps.cmp(&new.sum_bps).then_with(ties) != Ordering::Greater
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{check, field, range, sums_by_count};
    use super::*;

    /// Ten relays from 0.5 to 1.1 Mbit/s, in kbit/s.
    const TEN: [u64; 10] = [500, 600, 700, 800, 850, 900, 950, 1000, 1050, 1100];

    fn pool(rates: &[u64], range: Range, epsilon: f64, classes: Classes) -> Pool {
        let mut pool = Pool::default();
        search(&mut pool, &field(rates), range, epsilon, classes, &vec![false; rates.len()]);
        check(&pool, rates, range);
        pool
    }

    fn sets(pool: &Pool) -> Vec<Vec<Position>> {
        let mut sets: Vec<_> = pool.sets.iter().map(|found| pool.chains.sorted(found.chain)).collect();
        sets.sort();
        sets.dedup();
        sets
    }

    #[test]
    fn ten_relays_have_72_sets_that_trimming_leaves() {
        let pool = pool(&TEN, range(3000, 0.1), 0.1, Classes::PerCardinality);
        let sets = sets(&pool);
        assert_eq!((pool.sets.len(), sets.len()), (72, 72));
        for set in [[4, 8, 9], [6, 7, 8], [3, 8, 9]] {
            assert!(sets.iter().any(|found| *found == set), "{set:?}");
        }
    }

    #[test]
    fn a_class_of_their_own_keeps_sets_with_few_relays() {
        // 500 + 500 hides 1001 if they share a list, and with it 1001 + 2000.
        let rates = [500, 500, 1001, 2000];
        let with = |classes| sets(&pool(&rates, range(3000, 0.001), 0.1, classes));
        assert_eq!(with(Classes::PerCardinality), [vec![0, 1, 3], vec![2, 3]]);
        assert_eq!(with(Classes::One), [[0, 1, 3]]);
    }

    #[test]
    fn of_equal_sums_the_set_in_use_stays() {
        // 2 and 3, or 0 and 3, make 3000.
        let rates = [1000, 800, 1000, 2000];
        let only = |in_use: [bool; 4]| {
            let mut pool = Pool::default();
            search(&mut pool, &field(&rates), range(3000, 0.0), 0.1, Classes::PerCardinality, &in_use);
            sets(&pool)
        };
        assert_eq!(only([false; 4]), [[0, 3]]);
        assert_eq!(only([false, false, true, true]), [[2, 3]]);
    }

    proptest! {
        /// C65: whatever sum is in the range, one near it is found; with classes, one of as few relays.
        #[test]
        fn every_feasible_sum_is_represented(
            rates in proptest::collection::vec(1_u64..1500, 1..13),
            target in 500_u64..5000,
            tolerance in 0.0..0.4,
            epsilon in 0.001..1.0,
        ) {
            let range = range(target, tolerance);
            let by_class = pool(&rates, range, epsilon, Classes::PerCardinality);
            let single = pool(&rates, range, epsilon, Classes::One);
            let represents = |found: &Found, sum: u64| {
                found.sum_bps <= sum && found.sum_bps as f64 >= sum as f64 / (1.0 + epsilon)
            };
            for (count, sums) in sums_by_count(&rates, range.high_bps).iter().enumerate().skip(1) {
                let assured = sums.iter().filter(|sum| **sum as f64 >= (1.0 + epsilon) * range.low_bps as f64);
                for sum in assured {
                    prop_assert!(single.sets.iter().any(|found| represents(found, *sum)));
                    let of_count = |found: &&Found| by_class.chains.len(found.chain) == count;
                    prop_assert!(by_class.sets.iter().filter(of_count).any(|found| represents(found, *sum)));
                }
            }
        }
    }
}
