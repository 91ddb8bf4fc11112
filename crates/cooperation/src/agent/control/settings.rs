//! How control connections behave, and who answers them.

use core::net::SocketAddr;

use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use units::Duration;

use crate::channel::{Identity, PublicKey};

/// Settings of who waits for callers.
pub struct AnswererSettings {
    /// Where callers reach it.
    pub address: SocketAddr,
    /// Who it is.
    pub identity: Identity,
    /// Whom it answers.
    pub serves: Vec<PublicKey>,
    /// What its randomness grows from; on a real network it must be unpredictable.
    pub seed: [u8; 32],
    /// How its connections behave.
    pub connections: ControlSettings,
}

/// Settings of control connections.
#[derive(Clone, Debug)]
pub struct ControlSettings {
    /// Their TCP. A few frames in flight are enough, so the buffers are small: they bound what a slow peer makes us keep.
    pub tcp: ConnectionConfig,
    /// How long a caller waits after a first failure; twice as long after each further one.
    pub retry_min: Duration,
    /// ... and this long at most.
    pub retry_max: Duration,
    /// How long a caller may take to prove who it is.
    pub greeting_max: Duration,
    /// Channels that one answerer keeps at most.
    pub channels_max: usize,
}

/// What comes are single small segments, and an ACK of its own costs a Wi-Fi channel as much as they do: it waits for an answer or for
/// the next of them. Less than the 200 ms after which a sender probes for a lost tail (RFC 8985 section 7.2).
const ACK_DELAY: Duration = Duration::from_millis(150);
/// Octets that wait in the engine for the peer at most.
const BUFFER_BYTES: u64 = 16 << 10;

impl ControlSettings {
    /// For an interface whose packets have `mtu` octets at most.
    pub fn new(mtu: u16) -> Self {
        let tcp = ConnectionConfig {
            mptcp: false,
            congestion: ControllerSpec::named("cubic"),
            send_buffer_bytes: BUFFER_BYTES,
            receive_buffer_bytes: BUFFER_BYTES,
            mtu,
            nagle: false,
            delayed_ack: ACK_DELAY,
            keep_alive: Some(Duration::from_secs(10)),
            user_timeout: Duration::from_secs(20),
            ..ConnectionConfig::default()
        };
        Self {
            tcp,
            retry_min: Duration::from_millis(500),
            retry_max: Duration::from_secs(4),
            greeting_max: Duration::from_secs(5),
            channels_max: 8,
        }
    }
}
