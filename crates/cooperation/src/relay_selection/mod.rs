//! Relay selection: from the relays' offers and the target bit rate to the relays that carry data.
//!
//! A new selector is one file here and one line in the registry: scenarios and `anabranch select` know it from there.

mod choice;
pub mod credit;
pub mod energy;
mod exact;
mod field;
mod greedy_paper;
mod greedy_thesis;
pub mod manager;
pub mod migration;
pub mod monitor;
pub mod play_out;
mod range;
mod registry;
mod search;
mod settings;
mod ssrs;
pub mod steady_mean;
pub mod trigger;

pub use policy::UnknownName;
use units::Rate;

pub use exact::{EXACT_RELAYS_MAX, Exact};
pub use greedy_paper::GreedyPaper;
pub use greedy_thesis::GreedyThesis;
pub use range::Range;
pub use registry::{EPSILON_MIN, Registration, SELECTORS, SHORT_NAMES, SelectorError, build, find};
pub use settings::{Mode, SelectorSettings, UnknownMode};
pub use ssrs::Ssrs;

/// A relay, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayId(pub u16);

/// What a relay offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Who offers.
    pub relay: RelayId,
    /// Available bandwidth of its cellular link (b): its capacity less its own traffic.
    pub available: Rate,
}

/// What the application asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Target bit rate (TBR).
    pub target: Rate,
    /// Half the width of the accepted range over the target (theta).
    pub tolerance: f64,
}

/// Relays and what they offer together. The relays are in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelaySet {
    /// The relays.
    pub relays: Vec<RelayId>,
    /// The sum of what they offer, bit/s.
    pub sum_bps: u64,
}

/// What a selector found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The set to use if none is in use yet. Where no set is feasible, the nearest miss or all relays.
    pub active: RelaySet,
    /// The set to change to when the one in use (if none is, the active set) no longer serves, if there is another.
    pub backup: Option<RelaySet>,
    /// Whether the sum of the active set is in the accepted range.
    pub feasible: bool,
}

/// Why a selector's sets are what they are, for people: what follows a colon, without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reasons {
    /// Of the active set.
    pub active: &'static str,
    /// Of the backup, if there is one.
    pub backup: &'static str,
}

/// A way to select relays.
pub trait RelaySelector: Send {
    /// The name under which it is registered.
    fn name(&self) -> &'static str;

    /// A relay told what it pays for a bit.
    fn hear_price(&mut self, _relay: RelayId, _price: energy::EnergyPrice) {}

    /// Chooses among `offers` for `goal`, when `in_use` are the relays that carry data now (none at the start).
    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId]) -> Choice;

    /// Why what it chooses is as it is, where the active set is in range or, if not `feasible`, is not.
    fn reasons(&self, feasible: bool) -> Reasons;
}
