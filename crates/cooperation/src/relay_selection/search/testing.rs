//! Helpers for the tests of searches: fields, and all subset sums by plain counting.

use std::collections::BTreeSet;

use units::Rate;

use super::Pool;
use crate::relay_selection::field::Field;
use crate::relay_selection::{Goal, Offer, Range, RelayId};

/// Returns relays 0, 1, ... with these rates.
pub fn field(rates_bps: &[u64]) -> Field {
    let numbered = rates_bps.iter().enumerate();
    let offers = numbered.map(|(relay, bps)| Offer { relay: RelayId(relay as u16), available: Rate::from_bps(*bps) });
    Field::new(&offers.collect::<Vec<_>>())
}

pub fn range(target_bps: u64, tolerance: f64) -> Range {
    Goal { target: Rate::from_bps(target_bps), tolerance }.range()
}

/// Returns for every number of relays the sums up to `high_bps` that this many relays can have.
pub fn sums_by_count(rates_bps: &[u64], high_bps: u64) -> Vec<BTreeSet<u64>> {
    let mut sums = vec![BTreeSet::new(); rates_bps.len() + 1];
    sums[0].insert(0);
    for bps in rates_bps {
        for count in (1..sums.len()).rev() {
            let grown: Vec<u64> = sums[count - 1].iter().map(|sum| sum + bps).filter(|sum| *sum <= high_bps).collect();
            sums[count].extend(grown);
        }
    }
    sums
}

/// Asserts that every set of a pool is feasible, has the stated sum, and has no duplicate relay.
pub fn check(pool: &Pool, rates_bps: &[u64], range: Range) {
    for found in &pool.sets {
        let relays = pool.chains.sorted(found.chain);
        assert!(relays.windows(2).all(|pair| pair[0] < pair[1]), "{relays:?}");
        let sum_bps: u64 = relays.iter().map(|relay| rates_bps[usize::from(*relay)]).sum();
        assert_eq!(sum_bps, found.sum_bps);
        assert!(range.contains(sum_bps));
    }
}
