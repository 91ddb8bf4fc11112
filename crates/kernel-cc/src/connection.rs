//! What there is to know of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Told;

/// A connection with its subflows.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// The token of Multipath TCP; none for plain TCP.
    pub token: Option<u32>,
    /// In the order of their places.
    pub subflows: Vec<Subflow>,
}

/// A subflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Subflow {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Identifier of the other end's address (RFC 8684 section 3.2); 0 for that of the connection itself.
    pub address_id: u8,
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Slow start threshold, octets; none as long as there was no loss.
    pub ssthresh_bytes: Option<u64>,
    /// Maximum segment size, octets.
    pub mss_bytes: u32,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time, once measured.
    pub base_rtt: Option<Duration>,
    /// Whether a loss is being repaired.
    pub in_recovery: bool,
    /// mVeno's weight of the increase, in (0, 1].
    pub delta: Option<f64>,
    /// mVeno's probability that a loss means congestion, once a round has ended.
    pub q: Option<f64>,
    /// What is told of its path, and holds.
    pub told: Told,
    /// How often adaptive congestion control has cut its window.
    pub cuts: u64,
}

/// What became of subflows since a controller was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Subflows and plain connections that began.
    pub added: u64,
    /// Of those, ended.
    pub removed: u64,
    /// Times that no memory or no place was left: such a subflow is controlled like a single path, and asks again later.
    pub without_place: u64,
}
