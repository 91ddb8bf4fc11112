//! Information about a connection.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Told;

/// A connection with its subflows.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Token of MPTCP; `None` for plain TCP.
    pub token: Option<u32>,
    /// In the order of their places.
    pub subflows: Vec<Subflow>,
}

/// A subflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Subflow {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Identifier of the remote address (RFC 8684 section 3.2); 0 for that of the connection itself.
    pub address_id: u8,
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Slow start threshold, octets; `None` before the first loss.
    pub ssthresh_bytes: Option<u64>,
    /// Maximum segment size, octets.
    pub mss_bytes: u32,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of the last minutes (`tcp_min_rtt_wlen`), once measured.
    pub base_rtt: Option<Duration>,
    /// Whether the subflow is recovering from a loss.
    pub in_recovery: bool,
    /// mVeno's weight of the increase, in (0, 1].
    pub delta: Option<f64>,
    /// mVeno's probability that a loss means congestion, once a round has ended.
    pub q: Option<f64>,
    /// What has been reported of its path and is still valid.
    pub told: Told,
    /// Number of times adaptive congestion control has cut its window.
    pub cuts: u64,
}

/// Counts of subflows since a controller was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Subflows and plain connections that began.
    pub added: u64,
    /// Of these, the ones that have ended.
    pub removed: u64,
    /// Number of times that no memory or no place was left: such a subflow is controlled like a single path, and asks
    /// again later.
    pub without_place: u64,
}
