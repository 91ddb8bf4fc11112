//! What can be set on a connection that exists.

use units::Duration;

use crate::ConnectionConfig;
use crate::congestion::ControllerSpec;

/// New settings for a connection that exists, for [`crate::Endpoint::change`]; `None` leaves one as it is. What is not here was
/// agreed upon with the peer, or used up, when the connection was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsChange {
    /// Congestion controller. It starts without a past: windows stay where they are, and it grows and lowers them from there.
    pub congestion: Option<ControllerSpec>,
    /// Name of the scheduler, one of [`crate::scheduler::SCHEDULERS`]. What subflows were given already, they keep.
    pub scheduler: Option<String>,
    /// Octets of unacknowledged and unsent data kept for the peer. If there are more now, `send` takes nothing until there
    /// are fewer.
    pub send_buffer_bytes: Option<u64>,
    /// Octets that are kept although no subflow has taken them yet.
    pub unsent_max_bytes: Option<u64>,
    /// Octets of received data kept for the application. A window that was announced is never taken back (RFC 9293 section
    /// 3.8.6.2.2), and subflows that exist announce no more than their window scale allows (RFC 7323 section 2.2).
    pub receive_buffer_bytes: Option<u64>,
    /// As [`ConnectionConfig::nagle`].
    pub nagle: Option<bool>,
    /// Longest time an ACK is delayed, from the next one on.
    pub delayed_ack: Option<Duration>,
    /// Idle time before keep-alive probes, counted from what was last heard; `Some(None)` sends none.
    pub keep_alive: Option<Option<Duration>>,
    /// Give up when data stay unacknowledged this long, those that are outstanding included.
    pub user_timeout: Option<Duration>,
    /// Subflows at most; those that exist stay.
    pub subflows_max: Option<usize>,
    /// Addresses of the peer remembered at most, from the next one on.
    pub remote_addresses_max: Option<usize>,
    /// Time that subflows will spend in TIME-WAIT.
    pub time_wait: Option<Duration>,
}

impl SettingsChange {
    /// `config` with these changes.
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
