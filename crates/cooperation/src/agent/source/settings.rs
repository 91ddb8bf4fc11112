//! Settings of a source's agent.

use units::Duration;

use crate::adaptive_congestion::Settings;
use crate::agent::control::AnswererSettings;

/// Adaptive congestion control.
#[derive(Clone, Copy, Debug)]
pub struct AdaptingSettings {
    /// Settings of the module.
    pub acc: Settings,
    /// Length of its period (F).
    pub period: Duration,
}

/// Settings of a source's agent.
pub struct SourceSettings {
    /// Its control address, and the destinations that it serves.
    pub control: AnswererSettings,
    /// Adaptive congestion control.
    pub adapting: Option<AdaptingSettings>,
    /// Interval at which relays report on their owners' flows, if bandwidth is shared (F).
    pub sharing_period: Option<Duration>,
}
