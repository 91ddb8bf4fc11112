//! A selector chooses among the relays that offer something: nothing else can become a subflow.
//!
//! Whoever asks a selector calls `choose`, so that this is checked in one place.

use units::Prng;

use super::{Choice, Goal, Offer, RelayId, RelaySelector, RelaySet};

/// A selector chose a relay that makes no offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the relay selector {selector} chose relay {}, which makes no offer: a selector returns only relays of its \
     `offers`",
    relay.0
)]
pub struct UnknownRelay {
    /// Name of the selector.
    pub selector: &'static str,
    /// The first such relay.
    pub relay: RelayId,
    /// The choice without such relays.
    pub rest: Choice,
}

impl dyn RelaySelector + '_ {
    /// As [`RelaySelector::select`], for a selector that nobody has reason to trust.
    ///
    /// # Errors
    /// If a set has a relay that makes no offer. The error has the choice without such relays.
    pub fn choose(
        &mut self,
        offers: &[Offer],
        goal: &Goal,
        in_use: &[RelayId],
        prng: &mut Prng,
    ) -> Result<Choice, UnknownRelay> {
        let choice = self.select(offers, goal, in_use, prng);
        let is_known = |relay: &RelayId| offers.iter().any(|offer| offer.relay == *relay);
        let sets = [Some(&choice.active), choice.backup.as_ref()].into_iter().flatten();
        let Some(relay) = sets.flat_map(|set| &set.relays).copied().find(|relay| !is_known(relay)) else {
            return Ok(choice);
        };
        let active = offering(&choice.active, offers);
        let backup = choice.backup.map(|set| offering(&set, offers)).filter(|set| !set.relays.is_empty());
        let feasible = goal.range().contains(active.sum_bps);
        Err(UnknownRelay { selector: self.name(), relay, rest: Choice { active, backup, feasible } })
    }
}

/// Returns the relays of `set` that make an offer. If a relay makes several, the first counts.
fn offering(set: &RelaySet, offers: &[Offer]) -> RelaySet {
    let offer_of = |relay: &RelayId| offers.iter().find(|offer| offer.relay == *relay);
    let known: Vec<&Offer> = set.relays.iter().filter_map(offer_of).collect();
    let sum_bps = known.iter().map(|offer| offer.available.as_bps()).fold(0, u64::saturating_add);
    RelaySet { relays: known.into_iter().map(|offer| offer.relay).collect(), sum_bps }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::super::Reasons;
    use super::*;

    /// Chooses these relays, whoever offers something.
    struct Stubborn {
        active: &'static [u16],
        backup: &'static [u16],
    }

    fn set(relays: &[u16]) -> RelaySet {
        RelaySet { relays: relays.iter().copied().map(RelayId).collect(), sum_bps: 9_000 }
    }

    impl RelaySelector for Stubborn {
        fn name(&self) -> &'static str {
            "stubborn"
        }

        fn select(&mut self, _: &[Offer], _: &Goal, _: &[RelayId], _: &mut Prng) -> Choice {
            Choice { active: set(self.active), backup: Some(set(self.backup)), feasible: true }
        }

        fn reasons(&self, _: bool) -> Reasons {
            Reasons { active: "these", backup: "those" }
        }
    }

    fn choose(active: &'static [u16], backup: &'static [u16]) -> Result<Choice, UnknownRelay> {
        let offers = [0, 1, 2].map(|relay| Offer { relay: RelayId(relay), available: Rate::from_bps(1_000) });
        let selector: &mut dyn RelaySelector = &mut Stubborn { active, backup };
        selector.choose(&offers, &Goal { target: Rate::from_bps(3_000), tolerance: 0.1 }, &[], &mut Prng::new(1))
    }

    #[test]
    fn a_choice_among_the_offers_stays_as_it_is() {
        assert_eq!(
            choose(&[0, 1, 2], &[1]),
            Ok(Choice { active: set(&[0, 1, 2]), backup: Some(set(&[1])), feasible: true })
        );
    }

    #[test]
    fn a_relay_that_makes_no_offer_is_an_error_and_the_others_remain() {
        let error = choose(&[0, 7, 1], &[2, 9]).unwrap_err();
        assert_eq!((error.selector, error.relay), ("stubborn", RelayId(7)));
        let of = |relays: &[u16], sum_bps| RelaySet { sum_bps, ..set(relays) };
        let rest = Choice { active: of(&[0, 1], 2_000), backup: Some(of(&[2], 1_000)), feasible: false };
        assert_eq!(error.rest, rest);
        assert!(error.to_string().starts_with("the relay selector stubborn chose relay 7, which makes no offer"));
        assert_eq!(choose(&[0], &[9]).unwrap_err().rest.backup, None);
    }
}
