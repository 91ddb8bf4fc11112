//! What a relay is told.

use core::net::SocketAddr;

use units::Duration;

use super::{LoadSettings, OfferSettings, PassageSettings};
use crate::agent::control::ControlSettings;
use crate::channel::{Identity, PublicKey};

/// Settings of a relay's agent.
pub struct RelaySettings {
    /// Where destinations reach it.
    pub address: SocketAddr,
    /// Who it is.
    pub identity: Identity,
    /// Whom it serves.
    pub serves: Vec<PublicKey>,
    /// What its randomness grows from; on a real network it must be unpredictable.
    pub seed: [u8; 32],
    /// How control connections behave.
    pub control: ControlSettings,
    /// Whether and how it offers bandwidth.
    pub offers: Option<OfferSettings>,
    /// Whether and how it tells of its owner's flows.
    pub load: Option<LoadSettings>,
    /// What it does with packets that are not its own.
    pub passage: PassageSettings,
    /// How often it tells how long data take from here to the destination, if at all.
    pub reports_delay_every: Option<Duration>,
}
