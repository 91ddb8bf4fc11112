//! Greedy, the baseline of the thesis (4.2): adds the relays with the smallest offers first.
//!
//! This follows the text of the thesis. Algorithm 2 as printed adds a relay only while the sum stays below the range,
//! so its result never reaches the range.

use core::cmp::Reverse;

use units::Prng;

use super::choice::SAME_RULE;
use super::field::{Candidate, Field};
use super::{Choice, Goal, Offer, Range, Reasons, RelayId, RelaySelector, RelaySet};

/// Adds the smallest offer until the sum reaches the range; above the range, deletes the smallest offer.
#[derive(Clone, Copy, Debug, Default)]
pub struct GreedyThesis;

impl RelaySelector for GreedyThesis {
    fn name(&self) -> &'static str {
        "greedy-thesis"
    }

    /// The backup is the result of the same rule when it starts from the set in use, if that is another set.
    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId], _: &mut Prng) -> Choice {
        let (field, range) = (Field::new(offers), goal.range());
        let adjusted = |used: &[RelayId]| Selection::new(&field, range, used).adjusted();
        Choice::greedy(adjusted(&[]), in_use, || adjusted(in_use), range)
    }

    fn reasons(&self, _: bool) -> Reasons {
        Reasons { active: "relays added from the smallest offer upwards until the range is reached", backup: SAME_RULE }
    }
}

/// A set that grows and shrinks relay by relay.
struct Selection<'a> {
    range: Range,
    used: Vec<&'a Candidate>,
    unused: Vec<&'a Candidate>,
    sum_bps: u128,
}

impl<'a> Selection<'a> {
    /// Starts with the relays of `used` that offer anything.
    fn new(field: &'a Field, range: Range, used: &[RelayId]) -> Self {
        let mut descending: Vec<&Candidate> = field.0.iter().collect();
        descending.sort_by_key(|candidate| Reverse((candidate.bps, candidate.id)));
        let (used, unused): (Vec<&Candidate>, Vec<&Candidate>) =
            descending.into_iter().partition(|candidate| used.contains(&candidate.id));
        let sum_bps = used.iter().map(|candidate| u128::from(candidate.bps)).sum();
        Self { range, used, unused, sum_bps }
    }

    fn adjusted(mut self) -> RelaySet {
        while self.sum_bps < u128::from(self.range.low_bps) {
            let Some(smallest) = self.unused.pop() else { break };
            self.sum_bps += u128::from(smallest.bps);
            self.used.push(smallest);
        }
        self.used.sort_by_key(|candidate| Reverse((candidate.bps, candidate.id)));
        while self.sum_bps > u128::from(self.range.high_bps) {
            let Some(smallest) = self.used.pop() else { break };
            self.sum_bps -= u128::from(smallest.bps);
        }
        RelaySet::of(&self.used)
    }
}
