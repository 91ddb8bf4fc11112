//! Settings of endpoints and connections.

use core::ops::RangeInclusive;

use units::Duration;

use crate::congestion::ControllerSpec;
use crate::era::{Binding, Era, autotuned_bytes};
use crate::error::{SettingValue, UnusableSetting};
use crate::path_manager::LocalAddress;
use crate::receiver_centric::ReceiverCentric;

/// Settings of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Addresses of this host that path managers may use.
    pub local_addresses: Vec<LocalAddress>,
    /// First port of the range from which `connect` and joins pick theirs; the seed decides where in the range (RFC
    /// 6056).
    pub ephemeral_port_first: u16,
    /// Maximum number of connections, including those in TIME-WAIT: the oldest of these make room for new ones. If all
    /// connections are in use, further SYNs are ignored.
    pub connections_max: usize,
    /// Maximum number of connections that peers are setting up, per listener.
    pub backlog: usize,
    /// Answer segments for no connection with RST (RFC 9293 section 3.10.7.1). Off if the endpoint shares its addresses
    /// with another stack.
    pub reset_unknown: bool,
}

/// Settings of a connection. [`Default`] suits real networks.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionConfig {
    /// Speak MPTCP; otherwise plain TCP.
    pub mptcp: bool,
    /// Require DSS checksums (flag A of MP_CAPABLE).
    pub checksum: bool,
    /// Congestion controller.
    pub congestion: ControllerSpec,
    /// Name of the scheduler, one of [`crate::scheduler::SCHEDULERS`].
    pub scheduler: String,
    /// Offer MPTCP-rec: if both sides do, the receiver of data states how fast it wants them on each path.
    pub receiver_centric: Option<ReceiverCentric>,
    /// Name of the path manager, one of [`crate::path_manager::PATH_MANAGERS`].
    pub path_manager: String,
    /// Send buffer: octets of unacknowledged and unsent data. [`crate::Event::Writable`] comes once a quarter of it is
    /// free, so an owner that waits for the event has less than the whole buffer under way.
    pub send_buffer_bytes: u64,
    /// Limit on octets that no subflow has taken yet; `send` takes no more (Linux: TCP_NOTSENT_LOWAT). It has no effect
    /// if the send buffer is no larger, as by default.
    pub unsent_max_bytes: u64,
    /// Receive buffer: octets of received data kept for the application, the connection-level receive window.
    pub receive_buffer_bytes: u64,
    /// Largest IP packet that the interface takes, octets; the announced MSS follows from it. Paths may carry less,
    /// which subflows discover themselves (RFC 1191, RFC 4821).
    pub mtu: u16,
    /// Largest payload of one segment handed out, octets; above the MSS if the driver has segmentation offload.
    pub offload_max_bytes: u32,
    /// Initial window in segments (RFC 6928).
    pub initial_window_segments: u32,
    /// Leave the first slow start when the round-trip time rises (HyStart++, RFC 9406), not at the first loss.
    pub hystart: bool,
    /// Use timestamps (RFC 7323).
    pub timestamps: bool,
    /// Use SACK (RFC 2018).
    pub sack: bool,
    /// Use ECN (RFC 3168).
    pub ecn: bool,
    /// Delay a segment that is not full while an earlier such one is unacknowledged (Nagle, RFC 9293 section 3.7.4;
    /// Minshall, appendix A.3).
    pub nagle: bool,
    /// Suspend subflows that acknowledge octets but never deliver them, while others can carry data. Without this
    /// setting such octets are sent again like any others; RFC 8684 section 3.3.6 asks for no more.
    pub suspension: bool,
    /// Longest time an ACK is delayed (RFC 9293 section 3.8.6.3); zero acknowledges at once.
    pub delayed_ack: Duration,
    /// Lower bound of the retransmission time-out (RFC 6298 section 2.4 says 1 s; Linux uses 200 ms).
    pub rto_min: Duration,
    /// Idle time before keep-alive probes (RFC 9293 section 3.8.4), 100 ms or more; `None` sends none.
    pub keep_alive: Option<Duration>,
    /// Give up when data stay unacknowledged this long (RFC 9293 section 3.8.3). A peer whose window is shut and who
    /// answers is waited for longer, unless the connection was given up ([`crate::Endpoint::close`]). Doubling of the
    /// retransmission time-out stops at a quarter of this, which leaves time for three retransmissions. 100 ms or more.
    pub user_timeout: Duration,
    /// Maximum number of subflows, including the first; [`crate::SUBFLOWS_CAP`] limits it further.
    pub subflows_max: usize,
    /// Maximum number of the peer's addresses to remember.
    pub remote_addresses_max: usize,
    /// Time spent in TIME-WAIT: 2 MSL (RFC 9293 section 3.4.2).
    pub time_wait: Duration,
    /// Differences from a present-day endpoint.
    pub era: Era,
}

/// Largest window that can be announced, octets (RFC 7323 section 2.3); a larger buffer would never fill.
const BUFFER_BYTES_MAX: u64 = 1 << 30;
/// Smallest MTU: headers of IPv4 and TCP plus the smallest MSS, below which options leave no room.
const MTU_MIN: u64 = 40 + 88;
/// Shortest time after which a silent peer is probed or given up, as in scenarios. At zero, a keep-alive would be due
/// again at the instant at which it is sent, and data would be given up before they leave.
const SILENCE_MIN: Duration = Duration::from_millis(100);

impl ConnectionConfig {
    /// Largest payload of a super-segment: with its headers it is one IP packet, and the length of its mapping has 16
    /// bits.
    pub(crate) fn super_segment_max(&self) -> u32 {
        const HEADERS_MAX: u32 = 40 + 60;
        self.offload_max_bytes.min(0xffff - HEADERS_MAX)
    }

    /// Returns the size of a new connection's send buffer, octets.
    pub(crate) fn first_send_buffer_bytes(&self) -> u64 {
        match self.era.binding {
            // 87040 octets with an MTU of 1500. The first subflow has 46080; with that value the model was no closer
            // (docs/decisions/0040).
            Binding::Autotuned => autotuned_bytes(0, self.mtu.into()).min(self.send_buffer_bytes),
            Binding::Late | Binding::Early { .. } => self.send_buffer_bytes,
        }
    }

    /// Refuses settings that no connection could run with. Any other setting at most makes a connection slow: no
    /// time-out is shorter than the granularity of RFC 6298, and a long-delayed ACK is sent with the second segment
    /// anyway.
    pub(crate) fn check(&self) -> Result<(), UnusableSetting> {
        let buffer_bytes = 1..=BUFFER_BYTES_MAX;
        let queue_bytes = match self.era.binding {
            Binding::Late | Binding::Autotuned => 1,
            Binding::Early { buffer_bytes } => buffer_bytes,
        };
        let count = |field, value: u32| check_within(field, u64::from(value), &(1..=u32::MAX.into()));
        check_within("send_buffer_bytes", self.send_buffer_bytes, &buffer_bytes)?;
        check_within("unsent_max_bytes", self.unsent_max_bytes, &buffer_bytes)?;
        check_within("receive_buffer_bytes", self.receive_buffer_bytes, &buffer_bytes)?;
        check_within("mtu", u64::from(self.mtu), &(MTU_MIN..=u16::MAX.into()))?;
        count("initial_window_segments", self.initial_window_segments)?;
        let silence = SILENCE_MIN..=Duration::MAX;
        check_within("keep_alive", self.keep_alive.unwrap_or(Duration::MAX), &silence)?;
        check_within("user_timeout", self.user_timeout, &silence)?;
        count("era.subflow_window_bytes", self.era.subflow_window_bytes)?;
        count("era.reinjection_timeouts", self.era.reinjection_timeouts)?;
        check_within("era.binding.buffer_bytes", queue_bytes, &buffer_bytes)
    }
}

/// Refuses a value that is not in `usable`.
fn check_within<T: Copy + PartialOrd + Into<SettingValue>>(
    field: &'static str,
    value: T,
    usable: &RangeInclusive<T>,
) -> Result<(), UnusableSetting> {
    if usable.contains(&value) {
        return Ok(());
    }
    let (least, most) = ((*usable.start()).into(), (*usable.end()).into());
    Err(UnusableSetting { field, value: value.into(), least, most })
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            local_addresses: Vec::new(),
            ephemeral_port_first: 49152,
            connections_max: 65536,
            backlog: 1024,
            reset_unknown: true,
        }
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            mptcp: true,
            checksum: false,
            congestion: ControllerSpec::named("lia"),
            scheduler: "lowest-rtt".into(),
            receiver_centric: None,
            path_manager: "full-mesh".into(),
            send_buffer_bytes: 4 << 20,
            unsent_max_bytes: BUFFER_BYTES_MAX,
            receive_buffer_bytes: 4 << 20,
            mtu: 1500,
            offload_max_bytes: 0,
            initial_window_segments: 10,
            hystart: true,
            timestamps: true,
            sack: true,
            ecn: false,
            nagle: true,
            suspension: true,
            delayed_ack: Duration::from_millis(40),
            rto_min: Duration::from_millis(200),
            keep_alive: None,
            user_timeout: Duration::from_secs(300),
            subflows_max: 8,
            remote_addresses_max: 8,
            time_wait: Duration::from_secs(60),
            era: Era::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;
    use crate::Endpoint;
    use crate::error::{ConnectError, ListenError};

    fn refusal(change: impl FnOnce(&mut ConnectionConfig)) -> Option<String> {
        let mut config = ConnectionConfig::default();
        change(&mut config);
        config.check().err().map(|unusable| unusable.to_string())
    }

    #[test]
    fn what_no_connection_can_run_with_is_refused_by_name() {
        assert_eq!(refusal(|_| ()), None);
        let said = "send_buffer_bytes cannot be 0: set 1 to 1073741824";
        assert_eq!(refusal(|config| config.send_buffer_bytes = 0).as_deref(), Some(said));
        let said = "receive_buffer_bytes cannot be 1073741825: set 1 to 1073741824";
        assert_eq!(refusal(|config| config.receive_buffer_bytes = (1 << 30) + 1).as_deref(), Some(said));
        assert_eq!(refusal(|config| config.mtu = 127).as_deref(), Some("mtu cannot be 127: set 128 to 65535"));
        let said = "initial_window_segments cannot be 0: set 1 to 4294967295";
        assert_eq!(refusal(|config| config.initial_window_segments = 0).as_deref(), Some(said));
        let said = "era.subflow_window_bytes cannot be 0: set 1 to 4294967295";
        assert_eq!(refusal(|config| config.era.subflow_window_bytes = 0).as_deref(), Some(said));
        let said = "era.binding.buffer_bytes cannot be 0: set 1 to 1073741824";
        assert_eq!(refusal(|config| config.era.binding = Binding::Early { buffer_bytes: 0 }).as_deref(), Some(said));
    }

    /// With a time of zero, a keep-alive was due again at the instant at which it was sent, endlessly.
    #[test]
    fn a_peer_is_not_given_up_or_probed_at_once() {
        let silence = |ms| Duration::from_millis(ms);
        let said = "keep_alive cannot be 0 ns: set 100 ms or more";
        assert_eq!(refusal(|config| config.keep_alive = Some(Duration::ZERO)).as_deref(), Some(said));
        let said = "user_timeout cannot be 99 ms: set 100 ms or more";
        assert_eq!(refusal(|config| config.user_timeout = silence(99)).as_deref(), Some(said));
        for span in [silence(100), Duration::MAX] {
            assert_eq!(refusal(|config| config.keep_alive = Some(span)), None);
            assert_eq!(refusal(|config| config.user_timeout = span), None);
        }
    }

    #[test]
    fn an_endpoint_neither_connects_nor_listens_with_it() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let config = ConnectionConfig { receive_buffer_bytes: 0, ..ConnectionConfig::default() };
        let unusable =
            UnusableSetting { field: "receive_buffer_bytes", value: 0.into(), least: 1.into(), most: (1 << 30).into() };
        let [local, remote] = ["10.0.0.1:80", "10.0.0.2:80"].map(|address| address.parse().unwrap());
        let listener = endpoint.listen(local, config.clone());
        assert_eq!(listener.map(|_| ()), Err(ListenError::UnusableSetting(unusable)));
        let connection = endpoint.connect(local, remote, config, Instant::ZERO);
        assert_eq!(connection, Err(ConnectError::UnusableSetting(unusable)));
        assert_eq!(endpoint.footprint().connections, 0);
    }

    /// RFC 8684 section 3.3.5: a sender that cannot fill the peer's window does not reach the path's rate.
    #[test]
    fn the_send_buffer_is_no_smaller_than_the_receive_buffer() {
        let config = ConnectionConfig::default();
        assert!(config.send_buffer_bytes >= config.receive_buffer_bytes);
    }

    #[test]
    fn the_least_and_the_most_are_usable() {
        for bytes in [1, 1 << 30] {
            assert_eq!(refusal(|config| config.send_buffer_bytes = bytes), None);
            assert_eq!(refusal(|config| config.receive_buffer_bytes = bytes), None);
        }
        assert_eq!(refusal(|config| config.mtu = 128), None);
        assert_eq!(refusal(|config| config.mtu = 65535), None);
    }
}
