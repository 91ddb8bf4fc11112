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
pub fn search(field: &Field, range: Range, epsilon: f64, classes: Classes, in_use: &[bool]) -> Pool {
    let count = field.0.len();
    let trim = epsilon / (2.0 * count as f64);
    let mut lists = Lists { field, range, trim, in_use, pool: Pool::new(), merged: Vec::new() };
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
    lists.pool
}

struct Lists<'a> {
    field: &'a Field,
    range: Range,
    /// d
    trim: f64,
    in_use: &'a [bool],
    pool: Pool,
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
            let chain = self.pool.chains.push(parent.chain, position);
            let new = Found { sum_bps: parent.sum_bps.saturating_add(bps), chain };
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
    use units::Rate;

    use super::*;
    use crate::relay_selection::{Goal, Offer, RelayId};

    /// Ten relays from 0.5 to 1.1 Mbit/s.
    const TEN: [u64; 10] = [500, 600, 700, 800, 850, 900, 950, 1000, 1050, 1100];

    fn found(rates_kbps: &[u64], tolerance: f64, classes: Classes) -> Vec<(u64, Vec<Position>)> {
        let offer = |(relay, kbps): (usize, &u64)| Offer {
            relay: RelayId(relay as u16),
            available: Rate::from_bps(kbps * 1000),
        };
        let field = Field::new(&rates_kbps.iter().enumerate().map(offer).collect::<Vec<_>>());
        let range = Goal { target: Rate::from_mbps(3), tolerance }.range();
        let pool = search(&field, range, 0.1, classes, &vec![false; rates_kbps.len()]);
        pool.sets.iter().map(|found| (found.sum_bps, pool.chains.sorted(found.chain))).collect()
    }

    #[test]
    fn ten_relays_have_72_sets_that_trimming_leaves() {
        let sets = found(&TEN, 0.1, Classes::PerCardinality);
        assert_eq!(sets.len(), 72);
        for set in [[4, 8, 9], [6, 7, 8], [3, 8, 9]] {
            assert!(sets.iter().any(|(_, found)| *found == set), "{set:?}");
        }
        let mut distinct: Vec<_> = sets.iter().map(|(_, set)| set).collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 72);
        for (sum_bps, set) in &sets {
            assert_eq!(*sum_bps, set.iter().map(|position| TEN[usize::from(*position)] * 1000).sum::<u64>());
            assert!((2_700_000..=3_300_000).contains(sum_bps));
        }
    }

    #[test]
    fn without_classes_a_set_may_hide_one_with_fewer_relays() {
        // 0.5 + 0.5 comes before 1.0 and hides it, so that 1.0 + 2.0 is not found.
        let rates = [500, 500, 1000, 2000];
        let has_pair = |classes| found(&rates, 0.0, classes).iter().any(|(_, set)| *set == [2, 3]);
        assert!(has_pair(Classes::PerCardinality));
        assert_eq!(found(&rates, 0.0, Classes::PerCardinality).len(), 2);
    }
}
