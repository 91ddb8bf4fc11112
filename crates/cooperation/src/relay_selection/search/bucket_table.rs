//! Feasible sets among many relays: subset sums in buckets of equal width instead of trimmed lists.
//!
//! A layer holds the sums of sets with equally many relays, one set a bucket: that with the smallest sum. Whatever set a bucket
//! drops, one with a sum less than a width smaller stays, and since buckets do not move with the sums in them, a set
//! of k relays is represented within k widths. Trimmed lists lose a little with every relay offered, buckets only with every
//! relay taken.

use core::cmp::Ordering;

use super::chain::Chain;
use super::pool::{Extent, Found, Pool};
use crate::relay_selection::Range;
use crate::relay_selection::field::Position;

/// Sum of a bucket without a set; above every limit.
const VACANT: u64 = u64::MAX;

/// What the sets of a table start from, and how fine it is.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The set that all contain, and its sum.
    pub base: Found,
    /// Largest sum that is kept, bit/s.
    pub limit_bps: u64,
    /// Width of a bucket, as a power of two, bit/s.
    pub shift: u32,
    /// Relays above the base. `None`: any number, in one layer, so that a bucket may hide a set with fewer relays.
    pub layers: Option<usize>,
}

impl Frame {
    /// Buckets of a layer.
    pub fn buckets(&self) -> usize {
        ((self.limit_bps - self.base.sum_bps) >> self.shift) as usize + 1
    }
}

/// Sums in buckets; relays are taken in descending order of their positions.
pub struct Table<'a> {
    pool: &'a mut Pool,
    range: Range,
    frame: Frame,
    buckets: usize,
    /// Sums and their sets, by layer and bucket.
    cells: Vec<Found>,
    /// Lowest and highest bucket that is not vacant, by layer.
    occupied: Vec<(usize, usize)>,
    /// The feasible set nearest to the target, by number of relays.
    nearest: Vec<Option<Found>>,
    distances_bps: Extent,
}

impl<'a> Table<'a> {
    pub fn new(pool: &'a mut Pool, range: Range, frame: Frame) -> Self {
        let (buckets, layers) = (frame.buckets(), frame.layers.map_or(1, |layers| layers + 1));
        let mut cells = vec![Found { sum_bps: VACANT, chain: Chain::EMPTY }; buckets * layers];
        cells[0] = frame.base;
        let mut occupied = vec![(usize::MAX, 0); layers];
        occupied[0] = (0, 0);
        Self { pool, range, frame, buckets, cells, occupied, nearest: Vec::new(), distances_bps: Extent::EMPTY }
    }

    /// One more relay.
    pub fn take(&mut self, position: Position, bps: u64) {
        let Some(limit) = self.frame.limit_bps.checked_sub(bps) else {
            return self.miss_above(self.frame.base, position, bps);
        };
        if limit < self.frame.base.sum_bps {
            return self.miss_above(self.frame.base, position, bps);
        }
        if self.frame.layers.is_none() {
            return self.grow(0, 0, position, bps, limit);
        }
        // Descending, so that the relay is used at most once in a set.
        for layer in (1..self.occupied.len()).rev() {
            self.grow(layer - 1, layer, position, bps, limit);
        }
    }

    /// Adds the relay to the sets of layer `from` that are not above `limit`, and puts the results into layer `to`.
    fn grow(&mut self, from: usize, to: usize, position: Position, bps: u64, limit: u64) {
        let (lowest, highest) = self.occupied[from];
        let last = highest.min(((limit - self.frame.base.sum_bps) >> self.frame.shift) as usize);
        if lowest > last {
            return self.first_above(from, lowest, highest, position, bps, limit);
        }
        self.first_above(from, last, highest, position, bps, limit);
        // Descending here too: with one layer, what is added must not be met again.
        for bucket in (lowest..=last).rev() {
            let parent = self.cells[from * self.buckets + bucket];
            if parent.sum_bps > limit {
                continue;
            }
            let sum_bps = parent.sum_bps + bps;
            if sum_bps >= self.range.low_bps {
                self.collect(parent.chain, position, sum_bps);
            }
            let bucket = ((sum_bps - self.frame.base.sum_bps) >> self.frame.shift) as usize;
            let cell = &mut self.cells[to * self.buckets + bucket];
            // Of equal sums the later one has the lower numbers.
            if sum_bps <= cell.sum_bps {
                *cell = Found { sum_bps, chain: self.pool.chains.push(parent.chain, position) };
                let occupied = &mut self.occupied[to];
                *occupied = (occupied.0.min(bucket), occupied.1.max(bucket));
            }
        }
    }

    /// Remembers a feasible set if it is the nearest to the target of those with as many relays.
    fn collect(&mut self, rest: Chain, position: Position, sum_bps: u64) {
        let chains = &mut self.pool.chains;
        let distance_bps = self.range.distance(sum_bps);
        self.distances_bps.add(distance_bps);
        let count = chains.len(rest) + 1;
        if self.nearest.len() <= count {
            self.nearest.resize(count + 1, None);
        }
        let nearest = &mut self.nearest[count];
        let is_preferred = match nearest {
            None => true,
            Some(known) => match distance_bps.cmp(&self.range.distance(known.sum_bps)) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => chains.precedes_descending(position, rest, known.chain),
            },
        };
        if is_preferred {
            *nearest = Some(Found { sum_bps, chain: chains.push(rest, position) });
        }
    }

    /// The smallest sum above `limit` in a layer, from bucket `start` on, makes the nearest miss with this relay.
    fn first_above(&mut self, layer: usize, start: usize, end: usize, position: Position, bps: u64, limit: u64) {
        let mut cells = (start..=end).map(|bucket| self.cells[layer * self.buckets + bucket]);
        if let Some(parent) = cells.find(|cell| cell.sum_bps > limit && cell.sum_bps != VACANT) {
            self.miss_above(parent, position, bps);
        }
    }

    fn miss_above(&mut self, parent: Found, position: Position, bps: u64) {
        let sum_bps = parent.sum_bps.saturating_add(bps);
        let is_nearer = self.pool.above.is_none_or(|above| sum_bps < above.sum_bps);
        if sum_bps > self.range.high_bps && is_nearer {
            self.pool.above = Some(Found { sum_bps, chain: self.pool.chains.push(parent.chain, position) });
        }
    }

    /// Hands what was found to the pool.
    pub fn finish(self) {
        let Self { pool, range, cells, nearest, distances_bps, .. } = self;
        let below = cells.iter().filter(|cell| cell.sum_bps < range.low_bps);
        if let Some(below) = below.max_by_key(|cell| cell.sum_bps) {
            pool.add(*below, range);
        }
        for found in nearest.into_iter().flatten() {
            pool.add(found, range);
        }
        if distances_bps != Extent::EMPTY {
            pool.distances_bps.add(distances_bps.least);
            pool.distances_bps.add(distances_bps.most);
        }
    }
}
