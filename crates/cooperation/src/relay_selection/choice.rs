//! Chooses the active and the backup set among feasible sets: SSRS (4)(5), thesis (4.4)-(4.7), corrected.
//!
//! ```text
//! norm(v, V)     = (v - min V) / (max V - min V), 0 if max V = min V
//! cost_active(k) = norm(Delta B_k) + norm(N_k)
//! cost_backup(k) = norm(Delta B_k) + norm(N_k) + norm(M_ops(A, k))      A: the set in use
//! ```
//!
//! The papers maximise 1 / cost, which is infinite for a set that is best in all factors. The code compares costs as
//! fractions of integers, so ties are exact.

use core::cmp::Ordering;

use super::field::Field;
use super::search::{Chain, Extent, Found, Pool};
use super::{Choice, Range, Reasons, RelayId, RelaySet};

/// The reason for a backup where the selector applies the rule of the active set to the set in use.
pub(super) const SAME_RULE: &str = "what the same rule makes of the set in use";

impl Choice {
    /// Returns the choice of a rule that makes one set from another: `active` starts from nothing, `adjusted` from the
    /// set in use.
    pub(super) fn greedy(
        active: RelaySet,
        in_use: &[RelayId],
        adjusted: impl FnOnce() -> RelaySet,
        range: Range,
    ) -> Self {
        let mut sorted = in_use.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let backup = if in_use.is_empty() { None } else { Some(adjusted()).filter(|set| set.relays != sorted) };
        Self { feasible: range.contains(active.sum_bps), active, backup }
    }
}

/// A source of relay sets.
pub(super) trait Search {
    /// Finds feasible sets and the nearest misses; `in_use` marks the relays that carry data.
    fn find(&mut self, in_use: &[bool]) -> &Pool;

    /// Returns the sets found, plus sets worth changing to from the set that `in_use` marks.
    fn find_around(&mut self, in_use: &[bool]) -> &Pool;
}

/// Chooses an active set as if none were in use, and a backup for `in_use`, or for the active set if `in_use` is empty.
///
/// If no set is feasible, the active set is all relays that offer anything if together they do not reach the range,
/// else the nearest miss. It is also the backup if another set is in use.
pub(super) fn choose(
    field: &Field,
    range: Range,
    in_use: &[RelayId],
    counts_operations: bool,
    search: &mut impl Search,
) -> Choice {
    let pool = search.find(&field.marks(in_use));
    let Some(found) = active(pool, range) else { return nothing_feasible(pool, field, range, in_use) };
    let active = pool.relay_set(found, field);
    let in_use = if in_use.is_empty() { &active.relays } else { in_use };
    let pool = search.find_around(&field.marks(in_use));
    let backup = backup(pool, range, &InUse::new(field, in_use), counts_operations);
    let backup = backup.map(|found| pool.relay_set(found, field));
    Choice { active, backup, feasible: true }
}

/// The reasons for choosing sets by these costs.
pub(super) const fn reasons(feasible: bool) -> Reasons {
    if feasible {
        Reasons {
            active: "least cost of the sets in range; cost adds distance from the target and number of relays,\n\
                     each scaled from 0 (best) to 1 (worst); it is the set to start with",
            backup: "least cost of the others, with the number of changes counted as well",
        }
    } else {
        Reasons {
            active: "no set is in range; this is the nearest miss, or all relays that offer anything if they are too few",
            backup: SAME_RULE,
        }
    }
}

fn nothing_feasible(pool: &Pool, field: &Field, range: Range, in_use: &[RelayId]) -> Choice {
    let active = if range.contains(0) {
        RelaySet::default()
    } else if field.sum_bps() < u128::from(range.low_bps) {
        field.all()
    } else {
        let misses = pool.below.iter().chain(&pool.above);
        let key = |found: &&Found| (range.distance(found.sum_bps), pool.chains.len(found.chain));
        misses.min_by_key(key).map(|found| pool.relay_set(*found, field)).unwrap_or_default()
    };
    let mut sorted = in_use.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let backup = (!in_use.is_empty() && sorted != active.relays).then(|| active.clone());
    Choice { feasible: range.contains(active.sum_bps), active, backup }
}

/// The set in use, in terms of a field.
struct InUse {
    /// Whether the relay at each position belongs to the set.
    marks: Vec<bool>,
    /// Number of relays in the set, including those that offer nothing any more.
    len: usize,
    /// Number of them that are in the field.
    present: usize,
}

impl InUse {
    /// Creates the set of `relays`, without duplicates.
    fn new(field: &Field, relays: &[RelayId]) -> Self {
        let marks = field.marks(relays);
        let present = marks.iter().filter(|mark| **mark).count();
        let mut distinct = relays.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        Self { marks, len: distinct.len(), present }
    }

    /// Counts the additions and deletions of paths that lead to another set (M_ops).
    fn operations(&self, pool: &Pool, chain: Chain) -> u64 {
        let kept = pool.chains.marked(chain, &self.marks);
        (self.len + pool.chains.len(chain) - 2 * kept) as u64
    }

    /// Returns whether a set at this number of operations is the set in use.
    fn is(&self, operations: u64) -> bool {
        self.len == self.present && operations == 0
    }
}

/// Returns the best feasible set if none is in use.
fn active(pool: &Pool, range: Range) -> Option<Found> {
    let scored = pool.sets.iter().map(|found| Scored { found: *found, operations: 0 });
    best(pool, range, scored, Extent { least: 0, most: 0 })
}

/// Returns the best feasible set to replace `in_use`; ignores the number of changes unless `counts_operations`.
fn backup(pool: &Pool, range: Range, in_use: &InUse, counts_operations: bool) -> Option<Found> {
    let mut scored = Vec::with_capacity(pool.sets.len());
    let mut extent = Extent::EMPTY;
    for found in &pool.sets {
        let operations = in_use.operations(pool, found.chain);
        if !in_use.is(operations) {
            let operations = if counts_operations { operations } else { 0 };
            extent.add(operations);
            scored.push(Scored { found: *found, operations });
        }
    }
    best(pool, range, scored.into_iter(), extent)
}

#[derive(Clone, Copy)]
struct Scored {
    found: Found,
    operations: u64,
}

/// Returns the set of least cost. Ties: fewer relays, then nearer to the target, then fewer operations, then the lowest
/// numbers.
fn best(pool: &Pool, range: Range, sets: impl Iterator<Item = Scored>, operations: Extent) -> Option<Found> {
    // Over the common denominator of the three factors. Widths of counts are below 2^18, so this fits.
    let (wide, counts, changes) = (pool.distances_bps.width(), pool.counts.width(), operations.width());
    let (a_bps, a_relay, a_change) = (counts * changes, wide * changes, wide * counts);
    let count = |scored: &Scored| pool.chains.len(scored.found.chain) as u64;
    let distance_bps = |scored: &Scored| range.distance(scored.found.sum_bps);
    let cost = |scored: &Scored| {
        pool.distances_bps.above(distance_bps(scored)) * a_bps
            + pool.counts.above(count(scored)) * a_relay
            + operations.above(scored.operations) * a_change
    };
    let precedes = |scored: &Scored, known: &Scored| {
        let key = |scored: &Scored| (count(scored), distance_bps(scored), scored.operations);
        let by_numbers = || pool.chains.compare(scored.found.chain, known.found.chain);
        key(scored).cmp(&key(known)).then_with(by_numbers) == Ordering::Less
    };
    let mut least: Option<(u128, Scored)> = None;
    for scored in sets {
        let cost = cost(&scored);
        if least.is_none_or(|(known_cost, known)| cost < known_cost || cost == known_cost && precedes(&scored, &known))
        {
            least = Some((cost, scored));
        }
    }
    least.map(|(_, scored)| scored.found)
}
