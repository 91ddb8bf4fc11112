//! State of the proxy, for `anabranch status`.

use std::net::SocketAddr;

use serde::Serialize;
use transport::ConnectionStats;
use units::Duration;

use super::choice::UplinkView;
pub use super::meter::UplinkMeter;

/// State of the proxy at one time.
#[derive(Clone, Debug, Serialize)]
pub struct ProxyStatus {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Totals since the start.
    pub totals: Totals,
    /// What is known about each address of the engine.
    pub addresses: Vec<AddressStatus>,
    /// The current clients.
    pub clients: Vec<ClientStatus>,
}

/// An address of the engine.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AddressStatus {
    /// What the choice of uplinks knows about it.
    #[serde(flatten)]
    pub view: UplinkView,
    /// Whether it is a backup for a while, because it made transfers slower than without it.
    pub held_back: bool,
    /// Traffic.
    pub meter: UplinkMeter,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Clients accepted.
    pub accepted: u64,
    /// Connections to servers that were established.
    pub connected: u64,
    /// Connections among them that use MPTCP.
    pub mptcp: u64,
    /// Requests that were malformed, or whose target the proxy refuses.
    pub refused: u64,
    /// Names that could not be resolved.
    pub unresolved: u64,
    /// Servers that could not be reached.
    pub unreached: u64,
    /// Connections that a client or a server has broken off.
    pub broken: u64,
    /// Octets from clients to servers.
    pub up_bytes: u64,
    /// Octets from servers to clients.
    pub down_bytes: u64,
    /// How often accepting paused for lack of descriptors or room.
    pub pauses: u64,
    /// How often the driver called the proxy: an idle proxy is not called.
    pub turns: u64,
}

/// One client.
#[derive(Clone, Debug, Serialize)]
pub struct ClientStatus {
    /// `socks5`, `connect` or `http`; `none` until it is known.
    pub protocol: &'static str,
    /// The host and port that it has requested.
    pub target: Option<String>,
    /// `opening`, `resolving`, `dialing`, `open` or `ending`.
    pub stage: &'static str,
    /// Time since it came.
    pub age: Duration,
    /// Octets to the server.
    pub up_bytes: u64,
    /// Octets from the server.
    pub down_bytes: u64,
    /// Statistics of the engine's connection, subflows included.
    pub connection: Option<ConnectionStats>,
}
