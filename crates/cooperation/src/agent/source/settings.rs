//! What a source is told.

use units::Duration;

use crate::adaptive_congestion::Settings;
use crate::agent::control::AnswererSettings;

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
    /// Where destinations reach it, and whom it serves.
    pub control: AnswererSettings,
    /// Adaptive congestion control.
    pub adapting: Option<AdaptingSettings>,
    /// How often relays tell of their owners' flows, where bandwidth is shared (F).
    pub sharing_period: Option<Duration>,
}
