//! Settings of a relay's agent.

use units::Duration;

use super::{LendingLimits, LoadSettings, OfferSettings, PassageSettings};
use crate::agent::control::AnswererSettings;

/// Settings of a relay's agent.
pub struct RelaySettings {
    /// Its control address, and the destinations that it serves.
    pub control: AnswererSettings,
    /// Settings of its offers, if it makes any.
    pub offers: Option<OfferSettings>,
    /// Settings of its reports on the owner's flows, if it makes any.
    pub load: Option<LoadSettings>,
    /// How it handles packets that are not its own.
    pub passage: PassageSettings,
    /// Limits of what it lends. They apply to data that pass the agent, not to data that a router beside it forwards.
    pub lends: LendingLimits,
    /// Interval at which it reports the delay to the destination, if it does.
    pub reports_delay_every: Option<Duration>,
}
