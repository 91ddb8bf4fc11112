//! The candidate relays of a selection, and sets of them.

use super::{Offer, Range, RelayId, RelaySet};

/// Build mode leaves out relays that offer less than TBR divided by this. The papers leave out relays with much traffic
/// of their own, without giving a number.
const SMALLEST_SHARE: u64 = 50;

/// A candidate relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub id: RelayId,
    /// Offered rate, never 0.
    pub bps: u64,
}

/// Position of a relay in a [`Field`].
pub(super) type Position = u16;

/// The candidate relays, in ascending order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Field(pub Vec<Candidate>);

impl Field {
    /// Takes every relay that offers anything. If a relay has several offers, the first counts.
    pub fn new(offers: &[Offer]) -> Self {
        let usable = offers.iter().filter(|offer| offer.available.as_bps() > 0);
        let mut field = Vec::with_capacity(offers.len());
        field.extend(usable.map(|offer| Candidate { id: offer.relay, bps: offer.available.as_bps() }));
        field.sort_by_key(|candidate| candidate.id);
        field.dedup_by_key(|candidate| candidate.id);
        Self(field)
    }

    /// Returns whether any relay offers less than 2 % of TBR.
    pub fn has_small(&self, range: Range) -> bool {
        let small_bps = range.target_bps / SMALLEST_SHARE;
        self.0.iter().any(|candidate| candidate.bps < small_bps)
    }

    /// Returns the relays that offer at least 2 % of TBR. The others cost a subflow each and give next to nothing.
    pub fn without_small(&self, range: Range) -> Self {
        self.offering(range.target_bps / SMALLEST_SHARE)
    }

    /// Returns the relays that offer at least `least_bps`.
    pub fn offering(&self, least_bps: u64) -> Self {
        Self(self.0.iter().filter(|candidate| candidate.bps >= least_bps).copied().collect())
    }

    /// Returns the sum of all offers, bit/s.
    pub fn sum_bps(&self) -> u128 {
        self.0.iter().map(|candidate| u128::from(candidate.bps)).sum()
    }

    /// Returns the set of all relays.
    pub fn all(&self) -> RelaySet {
        let sum_bps = u64::try_from(self.sum_bps()).unwrap_or(u64::MAX);
        RelaySet { relays: self.0.iter().map(|candidate| candidate.id).collect(), sum_bps }
    }

    /// Returns for every position whether its relay is one of `relays`.
    pub fn marks(&self, relays: &[RelayId]) -> Vec<bool> {
        let mut marks = vec![false; self.0.len()];
        for position in relays.iter().filter_map(|relay| self.position(*relay)) {
            marks[position] = true;
        }
        marks
    }

    fn position(&self, relay: RelayId) -> Option<usize> {
        self.0.binary_search_by_key(&relay, |candidate| candidate.id).ok()
    }

    /// Returns the positions in ascending order of the offers. Ties: relays of `preferred` first, then the lowest
    /// numbers.
    pub fn ascending(&self, preferred: &[bool]) -> Vec<Position> {
        // One number that combines all three is compared without a branch.
        let candidates = self.0.iter().zip(preferred).enumerate();
        let keyed = candidates.map(|(at, (candidate, preferred))| {
            u128::from(candidate.bps) << 17 | u128::from(!preferred) << 16 | u128::from(at as Position)
        });
        let mut order: Vec<u128> = keyed.collect();
        order.sort_unstable();
        order.into_iter().map(|key| key as Position).collect()
    }

    /// Returns the offer of the relay at `position`, bit/s.
    pub fn bps(&self, position: Position) -> u64 {
        self.0[usize::from(position)].bps
    }
}

impl RelaySet {
    /// Returns the relays of `candidates`, in any order, and their sum.
    pub(super) fn of(candidates: &[&Candidate]) -> Self {
        let mut relays: Vec<RelayId> = candidates.iter().map(|candidate| candidate.id).collect();
        relays.sort_unstable();
        let sum = candidates.iter().map(|candidate| u128::from(candidate.bps)).sum::<u128>();
        Self { relays, sum_bps: u64::try_from(sum).unwrap_or(u64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::super::Goal;
    use super::*;

    fn offers(rates_bps: &[u64]) -> Vec<Offer> {
        let offer =
            |(relay, bps): (usize, &u64)| Offer { relay: RelayId(relay as u16), available: Rate::from_bps(*bps) };
        rates_bps.iter().enumerate().map(offer).collect()
    }

    fn left(rates_bps: &[u64], target_bps: u64) -> Vec<u16> {
        let range = Goal { target: Rate::from_bps(target_bps), tolerance: 0.1 }.range();
        let field = Field::new(&offers(rates_bps)).without_small(range);
        field.0.iter().map(|candidate| candidate.id.0).collect()
    }

    #[test]
    fn relays_without_an_offer_are_out() {
        assert_eq!(left(&[0, 500, 0, 600], 1000), [1, 3]);
    }

    #[test]
    fn small_relays_can_be_left_out() {
        // 2 % of 1000 is 20.
        assert_eq!(left(&[19, 20, 950], 1000), [1, 2]);
    }

    #[test]
    fn one_offer_a_relay_counts() {
        let mut twice = offers(&[500, 600]);
        twice.push(Offer { relay: RelayId(0), available: Rate::from_bps(700) });
        let field = Field::new(&twice);
        assert_eq!(field.0.iter().map(|candidate| candidate.bps).collect::<Vec<_>>(), [500, 600]);
    }

    #[test]
    fn order_prefers_the_set_in_use_among_equals() {
        let field = Field::new(&offers(&[700, 500, 500, 500]));
        assert_eq!(field.ascending(&field.marks(&[RelayId(2), RelayId(9)])), [2, 1, 3, 0]);
    }
}
