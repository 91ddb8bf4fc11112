//! Settings of control connections and of answerers.

use core::net::SocketAddr;

use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use units::Duration;

use crate::channel::{Identity, PublicKey};

/// Settings of an answerer.
pub struct AnswererSettings {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// Its identity.
    pub identity: Identity,
    /// The keys that it answers.
    pub serves: Vec<PublicKey>,
    /// Seed of its randomness; must be unpredictable on a real network.
    pub seed: [u8; 32],
    /// Settings of its connections.
    pub connections: ControlSettings,
}

/// Settings of control connections.
#[derive(Clone, Debug)]
pub struct ControlSettings {
    /// TCP settings. A few frames in flight are enough, so the buffers are small: they bound what a slow peer makes us
    /// keep.
    pub tcp: ConnectionConfig,
    /// Pause of a caller after a first failure; doubles with each further one.
    pub retry_min: Duration,
    /// Maximum pause.
    pub retry_max: Duration,
    /// Time in which a caller must prove its identity.
    pub greeting_max: Duration,
    /// Maximum number of channels of one answerer.
    pub channels_max: usize,
}

/// Frames arrive in single small segments, and a separate ACK costs a Wi-Fi channel as much as they do. The ACK
/// therefore waits for an answer or the next segment. Less than the 200 ms after which a sender probes for a lost tail
/// (RFC 8985 section 7.2).
const ACK_DELAY: Duration = Duration::from_millis(150);
/// Maximum octets that wait in the engine for the peer.
const BUFFER_BYTES: u64 = 16 << 10;

impl ControlSettings {
    /// Returns the settings for an interface whose packets have at most `mtu` octets.
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
