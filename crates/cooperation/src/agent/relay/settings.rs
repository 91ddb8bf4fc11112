//! What a relay is told.

use units::Duration;

use super::{LendingLimits, LoadSettings, OfferSettings, PassageSettings};
use crate::agent::control::AnswererSettings;

/// Settings of a relay's agent.
pub struct RelaySettings {
    /// Where destinations reach it, and whom it serves.
    pub control: AnswererSettings,
    /// Whether and how it offers bandwidth.
    pub offers: Option<OfferSettings>,
    /// Whether and how it tells of its owner's flows.
    pub load: Option<LoadSettings>,
    /// What it does with packets that are not its own.
    pub passage: PassageSettings,
    /// What it lends at most; of data that pass it, so not of those that a router beside it forwards.
    pub lends: LendingLimits,
    /// How often it tells how long data take from here to the destination, if at all.
    pub reports_delay_every: Option<Duration>,
}
