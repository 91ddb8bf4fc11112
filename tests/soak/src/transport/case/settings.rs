//! Settings of a host.

use serde::{Deserialize, Serialize};
use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use transport::receiver_centric::ReceiverCentric;
use units::Duration;

use super::era::EraCase;

/// Settings of all connections of a host; see [`ConnectionConfig`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Speak MPTCP.
    pub mptcp: bool,
    /// Require checksums.
    pub checksum: bool,
    /// Congestion controller.
    pub congestion: String,
    /// Scheduler.
    pub scheduler: String,
    /// Path manager.
    pub path_manager: String,
    /// Offer MPTCP-rec.
    pub receiver_centric: bool,
    /// Octets.
    pub send_buffer_bytes: u64,
    /// Octets; none: as many as the send buffer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent_max_bytes: Option<u64>,
    /// Octets.
    pub receive_buffer_bytes: u64,
    /// Octets.
    pub mtu: u16,
    /// Octets.
    pub offload_max_bytes: u32,
    /// Segments.
    pub initial_window_segments: u32,
    /// HyStart++.
    pub hystart: bool,
    /// Use timestamps.
    pub timestamps: bool,
    /// Use SACK.
    pub sack: bool,
    /// Use ECN.
    pub ecn: bool,
    /// Nagle's algorithm.
    pub nagle: bool,
    /// Milliseconds.
    pub delayed_ack_ms: u64,
    /// Milliseconds.
    pub rto_min_ms: u64,
    /// Seconds; none: no probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive_s: Option<u64>,
    /// Seconds.
    pub user_timeout_s: u64,
    /// Maximum number of subflows.
    pub subflows_max: usize,
    /// Maximum number of remembered addresses of the peer.
    pub remote_addresses_max: usize,
    /// Seconds.
    pub time_wait_s: u64,
    /// Behaviour of endpoints of earlier years.
    #[serde(default, skip_serializing_if = "EraCase::is_of_today")]
    pub era: EraCase,
}

impl Settings {
    /// Returns the settings as the engine's type.
    pub fn config(&self) -> ConnectionConfig {
        ConnectionConfig {
            mptcp: self.mptcp,
            checksum: self.checksum,
            congestion: ControllerSpec::named(&self.congestion),
            scheduler: self.scheduler.clone(),
            receiver_centric: self.receiver_centric.then(ReceiverCentric::default),
            path_manager: self.path_manager.clone(),
            send_buffer_bytes: self.send_buffer_bytes,
            unsent_max_bytes: self.unsent_max_bytes.unwrap_or(ConnectionConfig::default().unsent_max_bytes),
            receive_buffer_bytes: self.receive_buffer_bytes,
            mtu: self.mtu,
            offload_max_bytes: self.offload_max_bytes,
            initial_window_segments: self.initial_window_segments,
            hystart: self.hystart,
            timestamps: self.timestamps,
            sack: self.sack,
            ecn: self.ecn,
            nagle: self.nagle,
            // Without it nothing can be expected beside a relay that swallows.
            suspension: true,
            delayed_ack: Duration::from_millis(self.delayed_ack_ms),
            rto_min: Duration::from_millis(self.rto_min_ms),
            keep_alive: self.keep_alive_s.map(Duration::from_secs),
            user_timeout: Duration::from_secs(self.user_timeout_s),
            subflows_max: self.subflows_max,
            remote_addresses_max: self.remote_addresses_max,
            time_wait: Duration::from_secs(self.time_wait_s),
            era: self.era.config(),
        }
    }
}
