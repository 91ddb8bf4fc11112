//! Connection settings as scenario files describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use transport::scheduler::{self, Remedy};
use units::text::Text;
use units::{ByteCount, Duration};

use super::era::{Era, is_default};
use super::policy_names;
use super::receiver_centric::ReceiverCentric;
use super::schema::Written;

/// Settings of the connection; the defaults are those of [`ConnectionConfig`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Connection {
    /// Multipath TCP; otherwise plain TCP over the first path.
    pub mptcp: bool,
    /// Congestion controller with its parameters: `"lia"`, `"aimd(0.7,0.625)"`.
    #[schemars(with = "Written<ControllerSpec>", transform = policy_names::controllers)]
    pub congestion: Text<ControllerSpec>,
    /// Scheduler: which subflow carries the next data.
    #[schemars(transform = policy_names::schedulers)]
    pub scheduler: String,
    /// MPTCP-rec: the receiver states its desired sending rate for each path; `{}` turns it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_centric: Option<ReceiverCentric>,
    /// Path manager: which subflows to open.
    #[schemars(transform = policy_names::path_managers)]
    pub path_manager: String,
    /// DSS checksums.
    pub checksum: bool,
    /// Size of the send buffer: octets kept for the peer until acknowledged. An application that fills the buffer is
    /// told about free space once a quarter is free, so less than the whole buffer is under way: if paths or the
    /// receive window are to be the limit, use one and a half times what the paths hold.
    #[serde(with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub send_buffer: ByteCount,
    /// Size of the receive buffer, and thereby of the receive window.
    #[serde(with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub receive_buffer: ByteCount,
    /// Largest IP packet.
    #[serde(with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub mtu: ByteCount,
    /// Initial window in segments (RFC 6928).
    #[schemars(range(min = 1))]
    pub initial_window_segments: u32,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Leave the first slow start when the round-trip time rises (HyStart++, RFC 9406), instead of at the first loss
    /// like the papers' senders.
    pub hystart: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Nagle's algorithm.
    pub nagle: bool,
    /// Do not use subflows that deliver data which never arrive, while others can carry the data.
    pub suspension: bool,
    /// Longest delay of an ACK.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub delayed_ack: Duration,
    /// Lower bound of the retransmission time-out.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub rto_min: Duration,
    /// Time without acknowledgements after which a subflow or connection is closed.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub user_timeout: Duration,
    /// Maximum number of subflows; by default one for each relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflows_max: Option<usize>,
    /// Idle time before keep-alive probes; by default none are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<Duration>>")]
    pub keep_alive: Option<Text<Duration>>,
    /// Behaviour of endpoints of earlier years; by default none of it.
    #[serde(skip_serializing_if = "is_default")]
    pub era: Era,
}

impl Default for Connection {
    fn default() -> Self {
        let config = ConnectionConfig::default();
        Self {
            mptcp: config.mptcp,
            congestion: Text(config.congestion),
            scheduler: config.scheduler,
            receiver_centric: None,
            path_manager: config.path_manager,
            checksum: config.checksum,
            send_buffer: ByteCount(config.send_buffer_bytes),
            receive_buffer: ByteCount(config.receive_buffer_bytes),
            mtu: ByteCount(config.mtu.into()),
            initial_window_segments: config.initial_window_segments,
            timestamps: config.timestamps,
            sack: config.sack,
            ecn: config.ecn,
            hystart: config.hystart,
            nagle: config.nagle,
            suspension: config.suspension,
            delayed_ack: config.delayed_ack,
            rto_min: config.rto_min,
            user_timeout: config.user_timeout,
            subflows_max: None,
            keep_alive: config.keep_alive.map(Text),
            era: Era::default(),
        }
    }
}

impl Connection {
    /// Returns whether the scheduler itself sends a subflow's data in flight again on another subflow.
    pub fn scheduler_reinjects(&self) -> bool {
        scheduler::build(&self.scheduler).is_ok_and(|scheduler| scheduler.when_window_blocks() != Remedy::Wait)
    }

    /// The engine's settings for a scenario with `paths` paths.
    pub fn to_config(&self, paths: usize) -> ConnectionConfig {
        ConnectionConfig {
            mptcp: self.mptcp,
            checksum: self.checksum,
            congestion: self.congestion.0.clone(),
            scheduler: self.scheduler.clone(),
            receiver_centric: self.receiver_centric.map(ReceiverCentric::to_config),
            path_manager: self.path_manager.clone(),
            send_buffer_bytes: self.send_buffer.0,
            receive_buffer_bytes: self.receive_buffer.0,
            mtu: self.mtu.0.try_into().unwrap_or(u16::MAX),
            initial_window_segments: self.initial_window_segments,
            timestamps: self.timestamps,
            sack: self.sack,
            ecn: self.ecn,
            hystart: self.hystart,
            nagle: self.nagle,
            suspension: self.suspension,
            delayed_ack: self.delayed_ack,
            rto_min: self.rto_min,
            keep_alive: self.keep_alive.map(|Text(idle)| idle),
            user_timeout: self.user_timeout,
            subflows_max: self.subflows_max.unwrap_or(paths.max(1)),
            era: self.era.to_config(),
            ..ConnectionConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_say_themselves_whether_they_reinject() {
        let reinjects =
            |name: &str| Connection { scheduler: name.into(), ..Connection::default() }.scheduler_reinjects();
        assert_eq!(["opportunistic", "penalizing", "lowest-rtt", "unknown"].map(reinjects), [true, true, false, false]);
    }

    #[test]
    fn the_readme_states_the_defaults() {
        let readme = include_str!("../../../../scenarios/README.md");
        let row = |field: &str, default: &str| {
            let row = format!("\n| `connection.{field}` | {default} | ");
            assert!(readme.contains(&row), "scenarios/README.md lacks {row}");
        };
        let serde_json::Value::Object(fields) = serde_json::to_value(Connection::default()).unwrap() else { panic!() };
        fields.iter().for_each(|(field, default)| row(field, &format!("`{default}`")));
        assert_eq!(fields.len(), 18, "fields without a default of their own have to be listed below");
        row("keep_alive", "none");
        row("subflows_max", "one for each relay");
    }

    #[test]
    fn the_defaults_are_the_engine_s() {
        let config = Connection::default().to_config(4);
        let engine = ConnectionConfig::default();
        assert_eq!((config.mtu, config.receive_buffer_bytes), (engine.mtu, engine.receive_buffer_bytes));
        assert_eq!((config.scheduler, config.subflows_max), (engine.scheduler, 4));
        assert_eq!(config.era, engine.era);
    }
}
