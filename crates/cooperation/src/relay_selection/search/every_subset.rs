//! Finds feasible sets by trying every subset.

use super::chain::Chain;
use super::pool::{Extent, Found, Pool};
use crate::relay_selection::Range;
use crate::relay_selection::field::{Candidate, Field, Position};

/// Maximum number of relays among which every subset is tried: 2^24 subsets take a small part of a second.
pub const RELAYS_MAX: usize = 24;

/// Returns, of all feasible subsets of `field` (at most [`RELAYS_MAX`] relays), the one nearest to the target for every
/// number of relays and every number of relays shared with those that `in_use` marks; also the nearest misses.
pub fn search(field: &Field, range: Range, in_use: &[bool]) -> Pool {
    let mut trial = Trial::new(field, range, in_use);
    for step in 1_u32..1 << field.0.len() {
        trial.toggle(step.trailing_zeros() as usize);
        trial.assess();
    }
    trial.finish()
}

/// A subset with its sum.
#[derive(Clone, Copy)]
struct Subset {
    mask: u32,
    sum_bps: u64,
}

impl Subset {
    /// Returns whether this set comes before `other`, a set of equal size, in ascending order of relays: it has the
    /// lowest relay that is not in both.
    fn precedes(self, other: Self) -> bool {
        let differing = self.mask ^ other.mask;
        self.mask & differing & differing.wrapping_neg() != 0
    }
}

/// A walk through all subsets in the order of the Gray code: each step adds or removes one relay.
struct Trial<'a> {
    candidates: &'a [Candidate],
    range: Range,
    in_use: &'a [bool],
    mask: u32,
    sum_bps: u128,
    shared: usize,
    /// By number of relays and number of shared relays.
    nearest: Vec<Option<Subset>>,
    distances_bps: Extent,
    below: Option<Subset>,
    above: Option<Subset>,
}

impl<'a> Trial<'a> {
    fn new(field: &'a Field, range: Range, in_use: &'a [bool]) -> Self {
        let candidates = field.0.as_slice();
        let nearest = vec![None; (candidates.len() + 1) * (candidates.len() + 1)];
        let (below, above, distances_bps) = (None, None, Extent::EMPTY);
        Self { candidates, range, in_use, mask: 0, sum_bps: 0, shared: 0, nearest, distances_bps, below, above }
    }

    fn toggle(&mut self, position: usize) {
        let bps = u128::from(self.candidates[position].bps);
        self.mask ^= 1 << position;
        if self.mask & 1 << position != 0 {
            self.sum_bps += bps;
            self.shared += usize::from(self.in_use[position]);
        } else {
            self.sum_bps -= bps;
            self.shared -= usize::from(self.in_use[position]);
        }
    }

    fn assess(&mut self) {
        let subset = Subset { mask: self.mask, sum_bps: u64::try_from(self.sum_bps).unwrap_or(u64::MAX) };
        let range = self.range;
        let is_nearer = |known: &Option<Subset>| {
            let distance_bps = |subset: Subset| range.distance(subset.sum_bps);
            let key = |subset: Subset| (distance_bps(subset), subset.mask.count_ones());
            known.is_none_or(|known| key(subset) < key(known) || key(subset) == key(known) && subset.precedes(known))
        };
        let slot = if self.sum_bps < u128::from(range.low_bps) {
            &mut self.below
        } else if self.sum_bps > u128::from(range.high_bps) {
            &mut self.above
        } else {
            self.distances_bps.add(range.distance(subset.sum_bps));
            &mut self.nearest[self.mask.count_ones() as usize * (self.candidates.len() + 1) + self.shared]
        };
        if is_nearer(slot) {
            *slot = Some(subset);
        }
    }

    fn finish(self) -> Pool {
        let mut pool = Pool::default();
        let misses = self.below.into_iter().chain(self.above);
        for subset in self.nearest.iter().copied().flatten().chain(misses) {
            let positions = (0..self.candidates.len() as Position).filter(|position| subset.mask & 1 << position != 0);
            let chain = pool.chains.extend(Chain::EMPTY, positions);
            pool.add(Found { sum_bps: subset.sum_bps, chain }, self.range);
        }
        if self.distances_bps != Extent::EMPTY {
            pool.distances_bps.add(self.distances_bps.least);
            pool.distances_bps.add(self.distances_bps.most);
        }
        pool
    }
}
