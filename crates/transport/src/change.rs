//! Settings that can change on an existing connection.

use units::Duration;

use crate::ConnectionConfig;
use crate::congestion::ControllerSpec;

/// New settings for an existing connection, for [`crate::Endpoint::change`]; `None` keeps the current value. Settings
/// that are not listed here were agreed with the peer, or used up, when the connection was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsChange {
    /// Congestion controller. It starts without history: windows keep their sizes, and the controller changes them from
    /// there.
    pub congestion: Option<ControllerSpec>,
    /// Name of the scheduler, one of [`crate::scheduler::SCHEDULERS`]. Data already given to a subflow stay there.
    pub scheduler: Option<String>,
    /// Send buffer: octets of unacknowledged and unsent data. If it holds more now, `send` takes nothing until it holds
    /// less.
    pub send_buffer_bytes: Option<u64>,
    /// Limit on octets that no subflow has taken yet.
    pub unsent_max_bytes: Option<u64>,
    /// Receive buffer: octets of received data kept for the application. An announced window is never withdrawn (RFC
    /// 9293 section 3.8.6.2.2), and existing subflows announce no more than their window scale allows (RFC 7323 section
    /// 2.2). That of later subflows fits the largest buffer so far.
    pub receive_buffer_bytes: Option<u64>,
    /// See [`ConnectionConfig::nagle`].
    pub nagle: Option<bool>,
    /// Longest time an ACK is delayed, from the next one on.
    pub delayed_ack: Option<Duration>,
    /// Idle time before keep-alive probes, counted from the last segment received; `Some(None)` sends none.
    pub keep_alive: Option<Option<Duration>>,
    /// Give up when data stay unacknowledged this long; also applies to data already outstanding.
    pub user_timeout: Option<Duration>,
    /// Maximum number of subflows; existing subflows stay.
    pub subflows_max: Option<usize>,
    /// Maximum number of the peer's addresses to remember; applies from the next address on.
    pub remote_addresses_max: Option<usize>,
    /// Time that subflows spend in TIME-WAIT from now on.
    pub time_wait: Option<Duration>,
}

impl SettingsChange {
    /// Returns `config` with these changes.
    pub(crate) fn applied_to(&self, config: &ConnectionConfig) -> ConnectionConfig {
        let Self { congestion, scheduler, .. } = self;
        ConnectionConfig {
            congestion: congestion.as_ref().unwrap_or(&config.congestion).clone(),
            scheduler: scheduler.as_ref().unwrap_or(&config.scheduler).clone(),
            send_buffer_bytes: self.send_buffer_bytes.unwrap_or(config.send_buffer_bytes),
            unsent_max_bytes: self.unsent_max_bytes.unwrap_or(config.unsent_max_bytes),
            receive_buffer_bytes: self.receive_buffer_bytes.unwrap_or(config.receive_buffer_bytes),
            nagle: self.nagle.unwrap_or(config.nagle),
            delayed_ack: self.delayed_ack.unwrap_or(config.delayed_ack),
            keep_alive: self.keep_alive.unwrap_or(config.keep_alive),
            user_timeout: self.user_timeout.unwrap_or(config.user_timeout),
            subflows_max: self.subflows_max.unwrap_or(config.subflows_max),
            remote_addresses_max: self.remote_addresses_max.unwrap_or(config.remote_addresses_max),
            time_wait: self.time_wait.unwrap_or(config.time_wait),
            ..config.clone()
        }
    }
}
