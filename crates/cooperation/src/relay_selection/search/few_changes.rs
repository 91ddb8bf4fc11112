//! Feasible sets a few additions and deletions away from the set in use.
//!
//! Among many relays a search keeps the sets nearest to the target, and these need not share a relay with the set in use. This
//! adds, for up to two deletions and up to two additions each, the set nearest to the target.

use super::chain::Chain;
use super::pool::{Found, Pool};
use crate::relay_selection::Range;
use crate::relay_selection::field::{Field, Position};

/// Relays in use beyond which at most one is deleted: pairs would be too many.
const PAIRS_MAX: usize = 32;

/// Adds to `pool` the best sets around the one that `in_use` marks.
pub fn search(pool: &mut Pool, field: &Field, range: Range, in_use: &[bool]) {
    let (used, free): (Vec<Position>, Vec<Position>) =
        field.ascending(in_use).into_iter().partition(|position| in_use[usize::from(*position)]);
    let mut nearby = Nearby { pool, field, range, used, free };
    nearby.add_sets(&[]);
    for first in 0..nearby.used.len() {
        nearby.add_sets(&[nearby.used[first]]);
        let seconds = if nearby.used.len() <= PAIRS_MAX { first + 1..nearby.used.len() } else { 0..0 };
        for second in seconds {
            nearby.add_sets(&[nearby.used[first], nearby.used[second]]);
        }
    }
}

struct Nearby<'a> {
    pool: &'a mut Pool,
    field: &'a Field,
    range: Range,
    used: Vec<Position>,
    /// Relays not in use, ascending by what they offer.
    free: Vec<Position>,
}

impl Nearby<'_> {
    /// The sets that lack `deleted` and have none, one or two relays more.
    fn add_sets(&mut self, deleted: &[Position]) {
        let kept: Vec<Position> = self.used.iter().copied().filter(|position| !deleted.contains(position)).collect();
        let sum: u128 = kept.iter().map(|position| u128::from(self.field.bps(*position))).sum();
        let Some(sum_bps) = u64::try_from(sum).ok().filter(|sum| *sum <= self.range.high_bps) else { return };
        if !kept.is_empty() {
            self.offer(&kept, sum_bps, &[]);
        }
        if let Some(one) = self.nearest_one(sum_bps) {
            self.offer(&kept, sum_bps, &[one]);
        }
        if let Some((one, other)) = self.nearest_two(sum_bps) {
            self.offer(&kept, sum_bps, &[one, other]);
        }
    }

    fn offer(&mut self, kept: &[Position], sum_bps: u64, added: &[Position]) {
        let sum = added.iter().try_fold(sum_bps, |sum, position| sum.checked_add(self.field.bps(*position)));
        if let Some(sum_bps) = sum.filter(|sum| self.range.contains(*sum)) {
            let chain = self.pool.chains.extend(Chain::EMPTY, kept.iter().chain(added).copied());
            self.pool.add(Found { sum_bps, chain }, self.range);
        }
    }

    fn nearest_one(&self, sum_bps: u64) -> Option<Position> {
        let reached = |position: &Position| sum_bps.saturating_add(self.field.bps(*position));
        let split = self.free.partition_point(|position| reached(position) < self.range.target_bps);
        let around = &self.free[split.saturating_sub(1)..self.free.len().min(split + 1)];
        around.iter().copied().min_by_key(|position| self.range.distance(reached(position)))
    }

    /// The pair nearest to what is missing: from both ends of the order towards each other.
    fn nearest_two(&self, sum_bps: u64) -> Option<(Position, Position)> {
        let (mut low, mut high) = (0, self.free.len().checked_sub(1)?);
        let mut nearest = None;
        while low < high {
            let (one, other) = (self.free[low], self.free[high]);
            let reached = sum_bps.saturating_add(self.field.bps(one)).saturating_add(self.field.bps(other));
            let distance_bps = self.range.distance(reached);
            if nearest.is_none_or(|(least, _)| distance_bps < least) {
                nearest = Some((distance_bps, (one, other)));
            }
            if reached < self.range.target_bps { low += 1 } else { high -= 1 }
        }
        nearest.map(|(_, pair)| pair)
    }
}
