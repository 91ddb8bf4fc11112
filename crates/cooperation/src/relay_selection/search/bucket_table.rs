//! Finds feasible sets among many relays: keeps subset sums in buckets of equal width instead of trimmed lists.
//!
//! A layer holds the sums of sets with equally many relays. Each bucket keeps one set: the one with the smallest sum.
//! For every set that a bucket drops, it keeps one whose sum is smaller by less than a width. Buckets do not move with
//! the sums in them, so a set of k relays is represented within k widths. Trimmed lists lose a little precision with
//! every relay offered, buckets only with every relay taken.

use core::cmp::Ordering;

use super::chain::Chain;
use super::pool::{Extent, Found, Pool};
use crate::relay_selection::Range;
use crate::relay_selection::field::Position;

/// Sum of a bucket without a set; above every limit.
const VACANT: u64 = u64::MAX;

/// Starting point and resolution of a table.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The set that all sets contain, and its sum.
    pub base: Found,
    /// Largest sum that is kept, bit/s.
    pub limit_bps: u64,
    /// Width of a bucket, as a power of two, bit/s.
    pub shift: u32,
    /// Maximum number of relays added to the base. `None`: any number, in one layer, so a bucket may hide a set with
    /// fewer relays.
    pub layers: Option<usize>,
}

impl Frame {
    /// Returns the number of buckets in a layer.
    pub fn buckets(&self) -> usize {
        ((self.limit_bps - self.base.sum_bps) >> self.shift) as usize + 1
    }
}

/// Sums in buckets; relays are taken in descending order of their positions.
pub struct Table<'a> {
    pool: &'a mut Pool,
    range: Range,
    frame: Frame,
    /// Number of relays in the base.
    base_count: usize,
    /// Number of buckets in a layer.
    buckets: usize,
    /// Sums and their sets, by layer and bucket; cells that are not `occupied` hold remains of earlier tables.
    cells: &'a mut Vec<Found>,
    /// Buckets that may hold sets, by layer.
    occupied: Vec<core::ops::Range<usize>>,
    /// The feasible set nearest to the target, by number of relays.
    nearest: Vec<Option<Found>>,
    /// Extent of all feasible sums.
    sums_bps: Extent,
}

/// A relay that is added to sets.
#[derive(Clone, Copy)]
pub struct Newcomer {
    pub position: Position,
    pub bps: u64,
    /// Smallest offer of the relays that follow.
    pub smallest_left_bps: Option<u64>,
}

impl<'a> Table<'a> {
    /// Creates a table in the memory of `cells`.
    pub fn new(pool: &'a mut Pool, cells: &'a mut Vec<Found>, range: Range, frame: Frame) -> Self {
        let layers = frame.layers.map_or(1, |layers| layers + 1);
        let buckets = frame.buckets();
        if cells.len() < buckets * layers {
            cells.resize(buckets * layers, frame.base);
        }
        cells[0] = frame.base;
        let mut occupied = vec![0..0; layers];
        occupied[0] = 0..1;
        let base_count = pool.chains.len(frame.base.chain);
        let (nearest, sums_bps) = (Vec::new(), Extent::EMPTY);
        Self { pool, range, frame, base_count, buckets, cells, occupied, nearest, sums_bps }
    }

    /// Adds one more relay.
    pub fn take(&mut self, newcomer: Newcomer) {
        let limit = self.frame.limit_bps.checked_sub(newcomer.bps);
        let Some(limit) = limit.filter(|limit| *limit >= self.frame.base.sum_bps) else {
            return self.miss_above(self.frame.base, newcomer);
        };
        if self.frame.layers.is_none() {
            return self.grow(0, 0, newcomer, limit);
        }
        // In descending order, so a set uses the relay at most once.
        for layer in (1..self.occupied.len()).rev() {
            self.grow(layer - 1, layer, newcomer, limit);
        }
    }

    /// Adds the relay to the sets of layer `from` that are not above `limit`, and puts the results into layer `to`.
    fn grow(&mut self, from: usize, to: usize, newcomer: Newcomer, limit: u64) {
        if self.occupied[from].is_empty() {
            return;
        }
        self.collect(from, to, newcomer, limit);
        if self.is_fruitless() {
            let nearest = self.sets(from, limit + 1, VACANT - 1).next();
            nearest.into_iter().for_each(|parent| self.miss_above(parent, newcomer));
        }
        self.keep(from, to, newcomer);
    }

    /// Puts the sets that the relay forms with layer `from` into layer `to`, unless they leave no room for a later
    /// relay and are not relevant misses. This changes no other result: whatever such a set would hide has no room
    /// either, and the last layer forms no new sets.
    fn keep(&mut self, from: usize, to: usize, newcomer: Newcomer) {
        let Newcomer { position, bps, smallest_left_bps } = newcomer;
        let is_last = from != to && to + 1 == self.occupied.len();
        let smallest_left_bps = smallest_left_bps.filter(|_| !is_last);
        let room_bps = smallest_left_bps.and_then(|left_bps| self.frame.limit_bps.checked_sub(left_bps));
        let last = if self.is_fruitless() { room_bps.max(self.range.low_bps.checked_sub(1)) } else { room_bps };
        let limit = last.and_then(|last| last.min(self.frame.limit_bps).checked_sub(bps));
        let Some(limit) = limit.filter(|limit| *limit >= self.frame.base.sum_bps) else { return };
        let parents = self.buckets_of(from, 0, limit);
        if parents.is_empty() {
            return;
        }
        let moved = (bps >> self.frame.shift) as usize;
        self.occupy(to, parents.start + moved..self.buckets.min(parents.end + moved + 1));
        let chains = &mut self.pool.chains;
        let (base_bps, shift) = (self.frame.base.sum_bps, self.frame.shift);
        // In a single layer, the number of relays differs from set to set.
        let len = (from != to).then_some(self.base_count + to);
        let mut put = |cells: &mut [Found], parent: Found| {
            let sum_bps = parent.sum_bps + bps;
            let cell = &mut cells[((sum_bps - base_bps) >> shift) as usize];
            // Of equal sums, the later one has the lower numbers.
            if sum_bps <= cell.sum_bps {
                let len = len.unwrap_or_else(|| chains.len(parent.chain) + 1);
                *cell = Found { sum_bps, chain: chains.push_of(len, parent.chain, position) };
            }
        };
        if from == to {
            let cells = &mut self.cells[to * self.buckets..][..self.buckets];
            // In descending order here too, so new sets are not visited again.
            for at in parents.rev() {
                let parent = cells[at];
                if parent.sum_bps <= limit {
                    put(cells, parent);
                }
            }
        } else {
            let (lower, upper) = self.cells.split_at_mut(to * self.buckets);
            let lower = &lower[from * self.buckets..][parents];
            lower.iter().rev().filter(|parent| parent.sum_bps <= limit).for_each(|parent| put(upper, *parent));
        }
    }

    /// Makes room for sets in these buckets of a layer.
    fn occupy(&mut self, layer: usize, wanted: core::ops::Range<usize>) {
        let known = self.occupied[layer].clone();
        if known.start <= wanted.start && wanted.end <= known.end {
            return;
        }
        let all = if known.is_empty() { wanted } else { known.start.min(wanted.start)..known.end.max(wanted.end) };
        let cells = &mut self.cells[layer * self.buckets..][..all.end];
        let vacant = Found { sum_bps: VACANT, chain: Chain::EMPTY };
        let before = all.start..known.start.clamp(all.start, all.end);
        let after = known.end.clamp(before.end, all.end)..all.end;
        cells[before].fill(vacant);
        cells[after].fill(vacant);
        self.occupied[layer] = all;
    }

    /// Records the feasible sets that the relay forms with layer `from`, if they are the nearest to the target, or the
    /// farthest.
    fn collect(&mut self, from: usize, to: usize, newcomer: Newcomer, limit: u64) {
        let bps = newcomer.bps;
        let low = self.range.low_bps.saturating_sub(bps);
        if self.buckets_of(from, low, limit).is_empty() {
            return;
        }
        // Sets of a layer are in ascending order of their sums, so the first and the last in question have the extreme
        // sums.
        let least = self.sets(from, low, limit.min(self.sums_bps.least.saturating_sub(bps))).next();
        let most = self.sets(from, low.max(self.sums_bps.most.saturating_sub(bps)), limit).next_back();
        for parent in [least, most].into_iter().flatten() {
            self.sums_bps.add(parent.sum_bps + bps);
        }
        // With a single layer, the number of relays differs from set to set.
        let known = self.frame.layers.and_then(|_| *self.nearest.get(self.base_count + to)?);
        let distance = known.map_or(u64::MAX, |known| self.range.distance(known.sum_bps));
        let first = self.range.target_bps.saturating_sub(distance).saturating_sub(bps).max(low);
        let last = self.range.target_bps.saturating_add(distance).saturating_sub(bps).min(limit);
        let buckets = self.buckets_of(from, first, last);
        for at in buckets.start + from * self.buckets..buckets.end + from * self.buckets {
            let parent = self.cells[at];
            if first <= parent.sum_bps && parent.sum_bps <= last {
                self.consider(parent, newcomer);
            }
        }
    }

    /// Records a feasible set if it is the nearest to the target among those with equally many relays.
    fn consider(&mut self, parent: Found, Newcomer { position, bps, .. }: Newcomer) {
        let chains = &mut self.pool.chains;
        let sum_bps = parent.sum_bps + bps;
        let count = chains.len(parent.chain) + 1;
        if self.nearest.len() <= count {
            self.nearest.resize(count + 1, None);
        }
        let nearest = &mut self.nearest[count];
        let is_preferred = match nearest {
            None => true,
            Some(known) => match self.range.distance(sum_bps).cmp(&self.range.distance(known.sum_bps)) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => chains.precedes_descending(position, parent.chain, known.chain),
            },
        };
        if is_preferred {
            *nearest = Some(Found { sum_bps, chain: chains.push(parent.chain, position) });
        }
    }

    /// Returns whether no feasible set has been found, here or before. Misses count only then.
    fn is_fruitless(&self) -> bool {
        self.pool.sets.is_empty() && self.sums_bps == Extent::EMPTY
    }

    fn miss_above(&mut self, parent: Found, Newcomer { position, bps, .. }: Newcomer) {
        let sum_bps = parent.sum_bps.saturating_add(bps);
        let is_nearer = self.pool.above.is_none_or(|above| sum_bps < above.sum_bps);
        if sum_bps > self.range.high_bps && is_nearer {
            self.pool.above = Some(Found { sum_bps, chain: self.pool.chains.push(parent.chain, position) });
        }
    }

    /// Returns the bucket of a sum; sums below the base share the first one.
    fn bucket(&self, sum_bps: u64) -> usize {
        (sum_bps.saturating_sub(self.frame.base.sum_bps) >> self.frame.shift) as usize
    }

    /// Returns the buckets of a layer that may hold sums from `first` to `last`.
    fn buckets_of(&self, layer: usize, first: u64, last: u64) -> core::ops::Range<usize> {
        let occupied = &self.occupied[layer];
        self.bucket(first).max(occupied.start)..occupied.end.min(self.bucket(last) + 1)
    }

    /// Returns the sets of a layer with sums from `first` to `last`, ascending.
    #[inline]
    fn sets(&self, layer: usize, first: u64, last: u64) -> impl DoubleEndedIterator<Item = Found> {
        let buckets = self.buckets_of(layer, first, last);
        let start = layer * self.buckets;
        let cells = self.cells.get(start + buckets.start..start + buckets.end).unwrap_or_default();
        cells.iter().copied().filter(move |cell| first <= cell.sum_bps && cell.sum_bps <= last)
    }

    /// Passes the results to the pool.
    pub fn finish(self) {
        if self.is_fruitless() {
            let layers = 0..self.occupied.len();
            let below = layers.filter_map(|layer| self.sets(layer, 0, self.range.low_bps.checked_sub(1)?).next_back());
            if let Some(below) = below.max_by_key(|cell| cell.sum_bps) {
                self.pool.add(below, self.range);
            }
        }
        for found in self.nearest.into_iter().flatten() {
            self.pool.add(found, self.range);
        }
        if self.sums_bps != Extent::EMPTY {
            self.pool.distances_bps.add(self.range.distance(self.sums_bps.least));
            self.pool.distances_bps.add(self.range.distance(self.sums_bps.most));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::range;
    use super::*;

    /// A set: its sum and its relays, the lowest number first.
    type Set = (u64, Vec<Position>);

    const LAYERS: usize = 6;
    const SHIFT: u32 = 6;

    /// The same table without shortcuts: keeps every set and checks every feasible one. Returns the nearest by number
    /// of relays, and the feasible sums.
    fn plainly(rates: &[u64], range: Range) -> (Vec<Option<Set>>, Vec<u64>) {
        let buckets = (range.high_bps >> SHIFT) as usize + 1;
        let mut layers: Vec<Vec<Option<Set>>> = vec![vec![None; buckets]; LAYERS + 1];
        layers[0][0] = Some((0, Vec::new()));
        let (mut nearest, mut sums) = (vec![None; LAYERS + 1], Vec::new());
        for (at, bps) in rates.iter().enumerate().rev() {
            for layer in (1..=LAYERS).rev() {
                for (sum, rest) in layers[layer - 1].clone().into_iter().flatten() {
                    let set = (sum + bps, [vec![at as Position], rest].concat());
                    if set.0 > range.high_bps {
                        continue;
                    }
                    if range.contains(set.0) {
                        sums.push(set.0);
                        let key = |(sum, relays): &Set| (range.distance(*sum), relays.clone());
                        let known: &mut Option<Set> = &mut nearest[layer];
                        if known.as_ref().is_none_or(|known| key(&set) < key(known)) {
                            *known = Some(set.clone());
                        }
                    }
                    let cell = &mut layers[layer][(set.0 >> SHIFT) as usize];
                    if cell.as_ref().is_none_or(|cell| set.0 <= cell.0) {
                        *cell = Some(set);
                    }
                }
            }
        }
        (nearest, sums)
    }

    proptest! {
        /// Sets that the table does not keep or check would change nothing.
        #[test]
        fn shortcuts_change_no_answer(
            rates in proptest::collection::vec(prop_oneof![1_u64..1500, (1_u64..6).prop_map(|steps| steps * 250)], 1..30),
            target in 1_u64..4000,
            tolerance in 0.0..1.0,
        ) {
            let range = range(target, tolerance);
            let base = Found { sum_bps: 0, chain: Chain::EMPTY };
            let frame = Frame { base, limit_bps: range.high_bps, shift: SHIFT, layers: Some(LAYERS) };
            // Remains of another search.
            let mut cells = vec![Found { sum_bps: 1, chain: Chain::EMPTY }; 50];
            let mut pool = Pool::default();
            let mut table = Table::new(&mut pool, &mut cells, range, frame);
            for (at, bps) in rates.iter().enumerate().rev() {
                let smallest_left_bps = rates[..at].iter().min().copied();
                table.take(Newcomer { position: at as Position, bps: *bps, smallest_left_bps });
            }
            table.finish();
            let (nearest, sums) = plainly(&rates, range);
            let found: Vec<Set> = pool.sets.iter().map(|set| (set.sum_bps, pool.chains.sorted(set.chain))).collect();
            prop_assert_eq!(found, nearest.into_iter().flatten().collect::<Vec<_>>());
            let mut distances_bps = Extent::EMPTY;
            sums.iter().for_each(|sum| distances_bps.add(range.distance(*sum)));
            prop_assert_eq!(pool.distances_bps, distances_bps);
        }
    }
}
