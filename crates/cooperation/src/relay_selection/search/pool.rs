//! The result of a search: feasible sets, their extents, and the nearest misses.

use super::chain::{Chain, Chains};
use crate::relay_selection::field::Field;
use crate::relay_selection::{Range, RelaySet};

/// A relay set and its sum.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub sum_bps: u64,
    pub chain: Chain,
}

/// Smallest and largest of a number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub least: u64,
    pub most: u64,
}

impl Default for Extent {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Extent {
    /// The extent of no values.
    pub const EMPTY: Self = Self { least: u64::MAX, most: 0 };

    pub fn add(&mut self, value: u64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    /// Returns how far `value` is above the least.
    pub fn above(self, value: u64) -> u128 {
        u128::from(value.saturating_sub(self.least))
    }

    /// Returns the distance between least and most; 1 if it would be 0, because then no value is above the least.
    pub fn width(self) -> u128 {
        u128::from(self.most.saturating_sub(self.least).max(1))
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Pool {
    pub chains: Chains,
    /// The candidate sets: feasible, and no other set found would be preferred to all of them.
    pub sets: Vec<Found>,
    /// Extent of Delta B over all feasible sets found, bit/s.
    pub distances_bps: Extent,
    /// Extent of the number of relays over all feasible sets found.
    pub counts: Extent,
    /// The largest sum below the range.
    pub below: Option<Found>,
    /// The smallest sum above the range.
    pub above: Option<Found>,
}

impl Pool {
    /// Removes the contents but keeps the memory.
    pub fn clear(&mut self) {
        self.chains.clear();
        self.sets.clear();
        (self.distances_bps, self.counts) = (Extent::EMPTY, Extent::EMPTY);
        (self.below, self.above) = (None, None);
    }

    /// Records a set, whatever its sum.
    pub fn add(&mut self, found: Found, range: Range) {
        if range.contains(found.sum_bps) {
            self.distances_bps.add(range.distance(found.sum_bps));
            self.counts.add(self.chains.len(found.chain) as u64);
            self.sets.push(found);
        } else if found.sum_bps < range.low_bps {
            if self.below.is_none_or(|below| below.sum_bps < found.sum_bps) {
                self.below = Some(found);
            }
        } else if self.above.is_none_or(|above| found.sum_bps < above.sum_bps) {
            self.above = Some(found);
        }
    }

    /// Converts a set to the caller's type.
    pub fn relay_set(&self, found: Found, field: &Field) -> RelaySet {
        let positions = self.chains.sorted(found.chain);
        let relays = positions.iter().map(|position| field.0[usize::from(*position)].id).collect();
        RelaySet { relays, sum_bps: found.sum_bps }
    }
}
