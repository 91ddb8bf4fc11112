//! Finds feasible sets by trimmed subset sums: SSRS Alg. 1, thesis Alg. 1, corrected.
//!
//! Relays are taken one after another. A list holds the sums of subsets of the relays taken so far, ascending, none
//! above the range. Of sums closer than the factor 1 + d, d = epsilon / 2N, only the smallest stays (Cormen et al.,
//! trimming). Feasible sets are collected before the lists are trimmed. For every feasible sum y, the search therefore
//! finds one from y / (1 + epsilon) to y.

use core::cmp::Ordering;

use super::chain::{Chain, Chains};
use super::pool::{Found, Pool};
use crate::relay_selection::field::{Field, Position};
use crate::relay_selection::{Goal, Offer, Range};

/// The sums that may trim each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// Sums of sets with equally many relays: a set never hides one with fewer relays.
    PerCardinality,
    /// All sums, as the papers print it.
    One,
}

/// The lists, which keep their memory between searches.
#[derive(Debug, Default)]
pub struct Lists {
    /// By number of relays; with [`Classes::One`], all in the first list.
    by_class: Vec<Vec<Found>>,
    merged: Vec<Found>,
}

impl Lists {
    /// Prepares lists for this many relays; none is taken yet.
    fn start(&mut self, relays: usize) {
        if self.by_class.len() <= relays {
            self.by_class.resize(relays + 1, Vec::new());
        }
        self.by_class.iter_mut().for_each(Vec::clear);
        self.by_class[0].push(Found { sum_bps: 0, chain: Chain::EMPTY });
    }
}

/// Adds feasible sets of `field` to `pool`, which is empty; `in_use` marks the relays that carry data. With
/// [`Classes::One`], also records the nearest misses.
pub fn search(
    pool: &mut Pool,
    lists: &mut Lists,
    field: &Field,
    range: Range,
    epsilon: f64,
    classes: Classes,
    in_use: &[bool],
) {
    let count = field.0.len();
    lists.start(count);
    let trim = epsilon / (2.0 * count as f64);
    let in_use = in_use.contains(&true).then_some(in_use);
    let mut search = Search { range, trim, in_use, pool, lists };
    for (at, candidate) in field.0.iter().enumerate() {
        // A sum that leaves no room for another relay is useless, unless it is a relevant miss.
        let smallest_left = field.0[at + 1..].iter().map(|left| left.bps).min();
        let room_bps = smallest_left.and_then(|left| range.high_bps.checked_sub(left));
        let kept_bps = match classes {
            Classes::PerCardinality => room_bps,
            Classes::One => room_bps.max(range.low_bps.checked_sub(1)),
        };
        let newcomer = Newcomer { position: at as Position, bps: candidate.bps, kept_bps };
        match classes {
            // In descending order, so a set uses the relay at most once.
            Classes::PerCardinality => (0..=at).rev().for_each(|class| search.take(class, class + 1, newcomer)),
            Classes::One => {
                search.miss_above(newcomer);
                search.take(0, 0, newcomer);
            }
        }
    }
    if classes == Classes::One {
        search.miss_below();
    }
}

/// Returns whether any set of `offers` in the range of `goal` survives trimming by `epsilon`, with lists for each number
/// of relays. The selector tries every subset if none does; this shows what its lists find alone.
pub fn survives_trimming(offers: &[Offer], goal: &Goal, epsilon: f64) -> bool {
    let (mut pool, mut lists) = (Pool::default(), Lists::default());
    search(&mut pool, &mut lists, &Field::new(offers), goal.range(), epsilon, Classes::PerCardinality, &[]);
    !pool.sets.is_empty()
}

/// A relay that is added to sets.
#[derive(Clone, Copy)]
struct Newcomer {
    position: Position,
    bps: u64,
    /// Largest sum that is kept for the following relays; `None` if no sum is.
    kept_bps: Option<u64>,
}

struct Search<'a> {
    range: Range,
    /// d
    trim: f64,
    /// `None` if no relay is in use.
    in_use: Option<&'a [bool]>,
    pool: &'a mut Pool,
    lists: &'a mut Lists,
}

impl Search<'_> {
    /// Adds the relay to the sets of class `from`, collects the feasible results, and puts the sets that later relays
    /// may extend into class `to`.
    fn take(&mut self, from: usize, to: usize, newcomer: Newcomer) {
        let Some(limit) = self.range.high_bps.checked_sub(newcomer.bps) else { return };
        let low = self.range.low_bps.saturating_sub(newcomer.bps);
        let parents = &self.lists.by_class[from];
        if parents.is_empty() {
            return;
        }
        for parent in parents.iter().rev().skip_while(|parent| parent.sum_bps > limit) {
            if parent.sum_bps < low {
                break;
            }
            let chain = self.pool.chains.push(parent.chain, newcomer.position);
            self.pool.add(Found { sum_bps: parent.sum_bps + newcomer.bps, chain }, self.range);
        }
        if let Some(limit) = newcomer.kept_bps.and_then(|kept_bps| kept_bps.checked_sub(newcomer.bps)) {
            self.merge(from, to, newcomer, limit);
        }
    }

    /// Puts the sets that the relay forms with those of class `from` that are not above `limit` into class `to`, and
    /// trims.
    fn merge(&mut self, from: usize, to: usize, newcomer: Newcomer, limit: u64) {
        let (parents, old) = (&self.lists.by_class[from], &self.lists.by_class[to]);
        let Some(first) = parents.first().filter(|first| first.sum_bps <= limit) else { return };
        // Old sums below the first new set stay as they are, and so do those after the last new one.
        let mut next = old.partition_point(|old| old.sum_bps < first.sum_bps + newcomer.bps);
        let merged = &mut self.lists.merged;
        merged.clear();
        merged.extend_from_slice(&old[..next]);
        let trim = self.trim;
        // Rounded down: sums are integers, so the next one is above this limit if and only if it is above the exact
        // one.
        let trimmed_to = |found: &Found| found.sum_bps.saturating_add((found.sum_bps as f64 * trim) as u64);
        let mut hidden = merged.last().map(trimmed_to);
        let mut keep = |found: Found| {
            if hidden.is_none_or(|hidden| found.sum_bps > hidden) {
                hidden = Some(trimmed_to(&found));
                merged.push(found);
            }
        };
        for parent in parents.iter().take_while(|parent| parent.sum_bps <= limit) {
            let chain = self.pool.chains.push(parent.chain, newcomer.position);
            let new = Found { sum_bps: parent.sum_bps + newcomer.bps, chain };
            while let Some(found) = old.get(next).filter(|old| precedes(&self.pool.chains, self.in_use, **old, new)) {
                keep(*found);
                next += 1;
            }
            keep(new);
        }
        let rest = &old[next..];
        let hidden = rest.iter().take_while(|old| hidden.is_some_and(|hidden| old.sum_bps <= hidden)).count();
        merged.extend_from_slice(&rest[hidden..]);
        core::mem::swap(&mut self.lists.by_class[to], &mut self.lists.merged);
    }

    /// Records the smallest sum above the range that the relay forms with the only list.
    fn miss_above(&mut self, newcomer: Newcomer) {
        let mut sums =
            self.lists.by_class[0].iter().map_while(|parent| Some((parent, parent.sum_bps.checked_add(newcomer.bps)?)));
        if let Some((parent, sum_bps)) = sums.find(|(_, sum_bps)| *sum_bps > self.range.high_bps) {
            let chain = self.pool.chains.push(parent.chain, newcomer.position);
            self.pool.add(Found { sum_bps, chain }, self.range);
        }
    }

    /// Records the largest sum below the range in the only list: feasible sums were collected on the way.
    fn miss_below(&mut self) {
        let is_below = |found: &&Found| (1..self.range.low_bps).contains(&found.sum_bps);
        self.pool.below = self.lists.by_class[0].iter().rfind(is_below).copied();
    }
}

/// Returns whether `old` comes first: by the smaller sum, then by fewer changes, then by the lowest numbers.
fn precedes(chains: &Chains, in_use: Option<&[bool]>, old: Found, new: Found) -> bool {
    let ties = || {
        let changes = |marks: &[bool], found: Found| {
            chains.len(found.chain) as i64 - 2 * chains.marked(found.chain, marks) as i64
        };
        let by_changes = in_use.map_or(Ordering::Equal, |marks| changes(marks, old).cmp(&changes(marks, new)));
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
        search(&mut pool, &mut Lists::default(), &field(rates), range, epsilon, classes, &vec![false; rates.len()]);
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
        // 500 + 500 hides 1001 if they share a list, and 1001 + 2000 with it.
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
            search(
                &mut pool,
                &mut Lists::default(),
                &field(&rates),
                range(3000, 0.0),
                0.1,
                Classes::PerCardinality,
                &in_use,
            );
            sets(&pool)
        };
        assert_eq!(only([false; 4]), [[0, 3]]);
        assert_eq!(only([false, false, true, true]), [[2, 3]]);
    }

    proptest! {
        /// C65: for every sum in the range, a nearby one is found; with classes, one with as few relays.
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
