//! Searches among many relays within a bounded amount of work.
//!
//! If the number of relays that fit into the range is small enough, a table has a layer for every number of relays.
//! Otherwise the largest relays form a fixed base, and a small table exchanges the last of them. Only if that finds
//! nothing, a table of one layer answers whether there is any feasible set.

use super::bucket_table::{Frame, Newcomer, Table};
use super::chain::Chain;
use super::pool::{Found, Pool};
use crate::relay_selection::Range;
use crate::relay_selection::field::{Candidate, Field, Position};

/// Cells of a table, over all layers. This many fit into a processor's cache, and each relay visits each cell once. If
/// epsilon needs more cells, there is no layer for every number of relays; if it needs fewer, the table is finer than
/// necessary.
const CELLS_MAX: u64 = 8192;
/// Relays of the greedy set that are exchanged while the others are fixed.
const EXCHANGED: usize = 6;
/// Number of relays by which the exchange may enlarge the set.
const SURPLUS: usize = 4;

/// Adds feasible sets of `field` to `pool`. `ascending` holds all positions in ascending order of their offers, the
/// preferred ones first among equals.
///
/// If there is a set with a sum from (1 + `epsilon`) L to U, the result contains one. With a layer for every number k
/// of relays, this holds for each k. With at most k relays in a set, the search takes O(N k^2 / `epsilon`) steps, at
/// most [`CELLS_MAX`] per relay; with a single layer, O(N k / `epsilon`).
///
/// `pool` is empty; `cells` is memory for tables.
pub fn search(
    pool: &mut Pool,
    cells: &mut Vec<Found>,
    field: &Field,
    ascending: &[Position],
    range: Range,
    epsilon: f64,
) {
    let many = Many { field, range, epsilon, ascending };
    let smallest = many.fill(pool, many.ascending.iter(), range.high_bps);
    let count_max = pool.chains.len(smallest.chain);
    many.fill(pool, many.ascending.iter().rev(), range.high_bps);
    let largest = many.fill(pool, many.ascending.iter().rev(), range.target_bps);
    if let Some(whole) = many.layered(count_max) {
        return many.tabulate(pool, cells, whole);
    }
    let exchange = many.exchange(pool, largest);
    many.tabulate(pool, cells, exchange);
    if pool.sets.is_empty() {
        many.tabulate(pool, cells, many.one_layer(count_max));
    }
}

struct Many<'a> {
    field: &'a Field,
    range: Range,
    epsilon: f64,
    /// All positions in ascending order of their offers.
    ascending: &'a [Position],
}

impl Many<'_> {
    /// Takes relays in `order`, skipping each one that would raise the sum above `limit_bps`.
    fn fill<'o>(&self, pool: &mut Pool, order: impl Iterator<Item = &'o Position>, limit_bps: u64) -> Found {
        let mut filled = Found { sum_bps: 0, chain: Chain::EMPTY };
        for position in order {
            let sum = filled.sum_bps.checked_add(self.field.bps(*position));
            if let Some(sum_bps) = sum.filter(|sum| *sum <= limit_bps) {
                filled = Found { sum_bps, chain: pool.chains.push(filled.chain, *position) };
            }
        }
        pool.add(filled, self.range);
        filled
    }

    /// Returns a table of all sets of up to `count_max` relays, with a layer for each number of them and one for the
    /// misses above the range; `None` if epsilon needs too many cells.
    fn layered(&self, count_max: usize) -> Option<Frame> {
        let layers = count_max + 1;
        let asked = Frame { layers: Some(layers), ..self.one_layer(count_max) };
        let is_affordable = (layers as u64).saturating_mul(asked.buckets() as u64) <= CELLS_MAX;
        is_affordable.then(|| Frame { shift: asked.shift.min(finest(asked.limit_bps, layers)), ..asked })
    }

    /// Returns a table of all sets of up to `count_max` relays in one layer.
    ///
    /// `count_max` widths add up to epsilon L. L counts as at least half of TBR: with a smaller L, taking relays one
    /// after another cannot skip the range.
    fn one_layer(&self, count_max: usize) -> Frame {
        let low_bps = self.range.low_bps.max(self.range.target_bps / 2);
        let width_bps = (self.epsilon * low_bps as f64 / count_max.max(1) as f64) as u64;
        Frame {
            base: Found { sum_bps: 0, chain: Chain::EMPTY },
            limit_bps: self.range.high_bps,
            shift: width_bps.max(1).ilog2(),
            layers: None,
        }
    }

    /// Returns a table that exchanges the last relays of `largest` for others.
    fn exchange(&self, pool: &mut Pool, largest: Found) -> Frame {
        let mut taken: Vec<Position> = pool.chains.iter(largest.chain).collect();
        let exchanged = EXCHANGED.min(taken.len());
        let kept = taken.split_off(exchanged);
        let base_bps = kept.iter().map(|position| self.field.bps(*position)).sum();
        let base = Found { sum_bps: base_bps, chain: pool.chains.extend(Chain::EMPTY, kept) };
        // Sums farther above the target than the base is below it are useless.
        let open_bps = (self.range.target_bps - base_bps).saturating_mul(2);
        let limit_bps = base_bps.saturating_add(open_bps).min(self.range.high_bps);
        let layers = exchanged + SURPLUS;
        Frame { base, limit_bps, shift: finest(limit_bps - base_bps, layers), layers: Some(layers) }
    }

    fn tabulate(&self, pool: &mut Pool, cells: &mut Vec<Found>, frame: Frame) {
        let mut is_open = vec![true; self.field.0.len()];
        pool.chains.iter(frame.base.chain).for_each(|position| is_open[usize::from(position)] = false);
        self.close_indistinguishable(&mut is_open, frame);
        let offered = self.field.0.iter().enumerate().filter(|(at, _)| is_open[*at]);
        let mut newcomers: Vec<Newcomer> = Vec::with_capacity(self.field.0.len());
        for (at, Candidate { bps, .. }) in offered {
            let before =
                newcomers.last().map(|last| last.smallest_left_bps.map_or(last.bps, |left| left.min(last.bps)));
            newcomers.push(Newcomer { position: at as Position, bps: *bps, smallest_left_bps: before });
        }
        let mut table = Table::new(pool, cells, self.range, frame);
        newcomers.into_iter().rev().for_each(|newcomer| table.take(newcomer));
        table.finish();
    }

    /// Of relays with equal offers, keeps as many as fit into a set, plus one for the nearest miss: exchanging one for
    /// another changes no sum.
    fn close_indistinguishable(&self, is_open: &mut [bool], frame: Frame) {
        let open_bps = frame.limit_bps - frame.base.sum_bps;
        let mut repeated = (0, 0);
        for position in self.ascending {
            let bps = self.field.bps(*position);
            let before: u64 = if repeated.0 == bps { repeated.1 } else { 0 };
            let is_open = &mut is_open[usize::from(*position)];
            *is_open &= before.checked_mul(bps).is_some_and(|before_bps| before_bps <= open_bps);
            repeated = (bps, before + u64::from(*is_open));
        }
    }
}

/// Returns the width, as a power of two, at which [`CELLS_MAX`] cells in `layers` layers reach up to `open_bps`.
fn finest(open_bps: u64, layers: usize) -> u32 {
    let width_bps = open_bps / (CELLS_MAX / layers as u64).max(1);
    u64::BITS - width_bps.leading_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{check, field, range, sums_by_count};
    use super::*;

    fn pool(rates: &[u64], range: Range, epsilon: f64) -> Pool {
        let mut pool = Pool::default();
        let field = field(rates);
        let ascending = field.ascending(&vec![false; rates.len()]);
        search(&mut pool, &mut Vec::new(), &field, &ascending, range, epsilon);
        check(&pool, rates, range);
        pool
    }

    #[test]
    fn one_layer_finds_what_an_exchange_cannot() {
        // 501 a + 1000 b is from 30018 to 30042 only if a is even and at least 18. The largest relays make 30 times
        // 1000, and an exchange of a few brings in at most ten of the others.
        let rates = [[1000; 30], [501; 30]].concat();
        let pool = pool(&rates, range(30_030, 0.0004), 0.0004);
        let sums: Vec<u64> = pool.sets.iter().map(|found| found.sum_bps).collect();
        assert!(!sums.is_empty());
    }

    #[test]
    fn half_of_a_thousand_relays_are_chosen_to_the_bit() {
        let rates: Vec<u64> = (0..1000).map(|relay| 300_000 + relay * 7919 % 900_001).collect();
        let target: u64 = rates.iter().sum::<u64>() / 2;
        let range = range(target, 0.1);
        let pool = pool(&rates, range, 0.1);
        let nearest = pool.sets.iter().map(|found| range.distance(found.sum_bps)).min();
        assert!(nearest.is_some_and(|distance| distance < 1000), "{nearest:?}");
    }

    proptest! {
        /// C65 with every number of relays, whichever tables the search uses.
        #[test]
        fn what_is_feasible_by_a_margin_is_found(
            rates in proptest::collection::vec(1_u64..100, 1..60),
            share in 0.01..1.0,
            tolerance in 0.0..0.7,
            epsilon in 0.001..1.0,
        ) {
            let target = (rates.iter().sum::<u64>() as f64 * share) as u64;
            let range = range(target, tolerance);
            let pool = pool(&rates, range, epsilon);
            let sums = sums_by_count(&rates, range.high_bps);
            let is_assured = |sum: &u64| *sum > 0 && *sum as f64 >= (1.0 + epsilon) * range.low_bps as f64;
            prop_assert!(!sums.iter().flatten().any(is_assured) || !pool.sets.is_empty());
        }

        /// With few relays in a set, each number of relays is represented.
        #[test]
        fn each_number_of_relays_is_found(
            rates in proptest::collection::vec(30_u64..200, 17..60),
            target in 100_u64..300,
            tolerance in 0.0..0.3,
        ) {
            let range = range(target, tolerance);
            let pool = pool(&rates, range, 0.1);
            let found: Vec<usize> = pool.sets.iter().map(|found| pool.chains.len(found.chain)).collect();
            for (count, sums) in sums_by_count(&rates, range.high_bps).iter().enumerate().skip(1) {
                let is_assured = |sum: &u64| *sum as f64 >= 1.1 * range.low_bps as f64;
                prop_assert!(!sums.iter().any(is_assured) || found.contains(&count), "{count} relays");
            }
        }
    }
}
