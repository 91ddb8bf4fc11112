//! Greedy, the baseline of the SSRS paper (section III): adds relays one by one in the order of their numbers.

use units::Prng;

use super::choice::SAME_RULE;
use super::field::{Candidate, Field};
use super::{Choice, Goal, Mode, Offer, Range, Reasons, RelayId, RelaySelector, RelaySet};

/// Adds relays in the order of their numbers until the sum reaches the range; above the range, deletes those added
/// last. If that skips the range, deletes the smallest offers instead until the sum is not above the lower bound, and
/// adds again until it is not below. The paper modes are literal and do not add again.
#[derive(Clone, Copy, Debug)]
pub struct GreedyPaper {
    adds_again: bool,
}

impl GreedyPaper {
    pub(super) fn new(mode: Mode) -> Self {
        Self { adds_again: mode == Mode::Build }
    }
}

impl RelaySelector for GreedyPaper {
    fn name(&self) -> &'static str {
        "greedy-paper"
    }

    /// The backup is the result of the same rule when it starts from the set in use, if that is another set. Its relays
    /// count as added in the order of `in_use`.
    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId], _: &mut Prng) -> Choice {
        let (field, range) = (Field::new(offers), goal.range());
        let adjusted = |used: &[RelayId]| Selection::new(&field, range, used).adjusted(self.adds_again);
        Choice::greedy(adjusted(&[]), in_use, || adjusted(in_use), range)
    }

    fn reasons(&self, _: bool) -> Reasons {
        Reasons { active: "relays added in the order of their numbers until the range is reached", backup: SAME_RULE }
    }
}

/// A set that grows and shrinks relay by relay.
#[derive(Clone)]
struct Selection<'a> {
    field: &'a Field,
    range: Range,
    /// In the order of their addition.
    used: Vec<&'a Candidate>,
    sum_bps: u128,
}

impl<'a> Selection<'a> {
    /// Starts with those of `relays` that offer anything.
    fn new(field: &'a Field, range: Range, relays: &[RelayId]) -> Self {
        let mut selection = Self { field, range, used: Vec::new(), sum_bps: 0 };
        for relay in relays {
            let offer = field.0.iter().find(|candidate| candidate.id == *relay);
            if let Some(candidate) = offer.filter(|candidate| !selection.uses(candidate)) {
                selection.add(candidate);
            }
        }
        selection
    }

    fn adjusted(mut self, adds_again: bool) -> RelaySet {
        self.add_until_reached();
        let reached = self.clone();
        while self.sum_bps > u128::from(self.range.high_bps) {
            self.delete(self.used.len() - 1);
        }
        if self.used.len() < reached.used.len() && self.is_below() {
            self = reached;
            self.delete_smallest_until_low();
            if adds_again {
                self.add_until_reached();
            }
        }
        RelaySet::of(&self.used)
    }

    fn add_until_reached(&mut self) {
        for candidate in &self.field.0 {
            if !self.is_below() {
                return;
            }
            if !self.uses(candidate) {
                self.add(candidate);
            }
        }
    }

    fn delete_smallest_until_low(&mut self) {
        while self.sum_bps > u128::from(self.range.low_bps) {
            let places = 0..self.used.len();
            let Some(smallest) = places.min_by_key(|place| (self.used[*place].bps, self.used[*place].id)) else {
                return;
            };
            self.delete(smallest);
        }
    }

    fn is_below(&self) -> bool {
        self.sum_bps < u128::from(self.range.low_bps)
    }

    fn uses(&self, candidate: &Candidate) -> bool {
        self.used.iter().any(|used| used.id == candidate.id)
    }

    fn add(&mut self, candidate: &'a Candidate) {
        self.sum_bps += u128::from(candidate.bps);
        self.used.push(candidate);
    }

    fn delete(&mut self, place: usize) {
        self.sum_bps -= u128::from(self.used.remove(place).bps);
    }
}
