//! Relay selection: chooses the relays that carry data, from their offers and the target bit rate.
//!
//! A new selector is one file, declared here, and one line in the registry; scenarios and `anabranch select` find it
//! there.

mod choice;
pub mod credit;
pub mod energy;
mod exact;
mod field;
mod greedy_paper;
mod greedy_thesis;
mod known_relays;
pub mod manager;
pub mod migration;
pub mod monitor;
pub mod play_out;
mod random;
mod range;
mod registry;
mod search;
mod settings;
mod ssrs;
pub mod steady_mean;
pub mod trigger;

/// A relay selector by name, with its parameters: `"ssrs"`, `"random(100,0.02)"`.
pub use policy::Spec as SelectorSpec;
pub use policy::{Parameter, SpecError, UnknownName, Values};
use units::{Prng, Rate};

pub use exact::{EXACT_RELAYS_MAX, Exact};
pub use greedy_paper::GreedyPaper;
pub use greedy_thesis::GreedyThesis;
pub use known_relays::UnknownRelay;
pub use random::Random;
pub use range::Range;
pub use registry::{Build, Built, EPSILON_MIN, Registration, SELECTORS, SHORT_NAMES, SelectorError, build, find};
pub use search::trimmed_lists::survives_trimming;
pub use settings::{Mode, SelectorSettings, UnknownMode};
pub use ssrs::Ssrs;

/// A relay, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayId(pub u16);

/// The offer of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The relay.
    pub relay: RelayId,
    /// Available bandwidth of its cellular link (b): its capacity less its own traffic.
    pub available: Rate,
}

/// The rate that the application asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Target bit rate (TBR).
    pub target: Rate,
    /// Half the width of the accepted range, as a part of the target (theta).
    pub tolerance: f64,
}

/// A set of relays and the sum of their offers. The relays are in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelaySet {
    /// The relays.
    pub relays: Vec<RelayId>,
    /// Sum of their offers, bit/s.
    pub sum_bps: u64,
}

/// The result of a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The set to use if none is in use yet. If no set is feasible, the nearest miss or all relays.
    pub active: RelaySet,
    /// The set to change to when the set in use (or the active set, if none is in use) no longer serves, if there is
    /// another.
    pub backup: Option<RelaySet>,
    /// Whether the sum of the active set is in the accepted range.
    pub feasible: bool,
}

/// The reasons for a selector's sets, for people: text that follows a colon, without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reasons {
    /// Reason for the active set.
    pub active: &'static str,
    /// Reason for the backup, if there is one.
    pub backup: &'static str,
}

/// A policy that selects relays. Ask it by its method `choose`, which checks its answer.
pub trait RelaySelector: Send {
    /// Returns the name under which the selector is registered.
    fn name(&self) -> &'static str;

    /// Takes note of a relay's energy price per bit.
    fn hear_price(&mut self, _relay: RelayId, _price: energy::EnergyPrice) {}

    /// Chooses among `offers` for `goal`; `in_use` are the relays that carry data now (none at the start). Some of these
    /// may offer nothing any more. A set has only relays of `offers`: others are left out of it.
    ///
    /// All randomness comes from `prng`, which the caller has seeded; a selector may also draw nothing.
    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId], prng: &mut Prng) -> Choice;

    /// Returns the reasons for its choices, if the active set is in range or, if not `feasible`, is not.
    fn reasons(&self, feasible: bool) -> Reasons;
}
