//! Relay selection: from the relays' offers and the target bit rate to the relays that carry data.
//!
//! A new selector is one file here and one line in the registry.

use units::Rate;

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
    /// The set to use if none is in use yet.
    pub active: RelaySet,
    /// The set to change to when the one in use no longer serves.
    pub backup: Option<RelaySet>,
    /// Whether the sum of the active set is in the accepted range.
    pub feasible: bool,
}

/// A way to select relays.
pub trait RelaySelector: Send {
    /// The name under which it is registered.
    fn name(&self) -> &'static str;

    /// Chooses among `offers` for `goal`, when `in_use` are the relays that carry data now (none at the start).
    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId]) -> Choice;
}
