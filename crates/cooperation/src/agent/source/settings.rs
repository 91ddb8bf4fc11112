//! What a source is told.

use core::net::SocketAddr;

use units::Duration;

use crate::adaptive_congestion::Settings;
use crate::agent::control::ControlSettings;
use crate::channel::{Identity, PublicKey};

/// Adaptive congestion control.
#[derive(Clone, Copy, Debug)]
pub struct AdaptingSettings {
    /// The module's own.
    pub acc: Settings,
    /// How often (F).
    pub period: Duration,
}

/// Settings of a source's agent.
pub struct SourceSettings {
    /// Where destinations reach it.
    pub address: SocketAddr,
    /// Who it is.
    pub identity: Identity,
    /// Whom it listens to.
    pub serves: Vec<PublicKey>,
    /// What its randomness grows from; on a real network it must be unpredictable.
    pub seed: [u8; 32],
    /// How control connections behave.
    pub control: ControlSettings,
    /// Adaptive congestion control.
    pub adapting: Option<AdaptingSettings>,
    /// How often relays tell of their owners' flows, where bandwidth is shared (F).
    pub sharing_period: Option<Duration>,
}
