//! What the proxy does, for `anabranch status`.

use std::net::SocketAddr;

use serde::Serialize;
use transport::ConnectionStats;
use units::Duration;

use super::choice::UplinkView;
pub use super::meter::UplinkMeter;

/// Everything at one time.
#[derive(Clone, Debug, Serialize)]
pub struct ProxyStatus {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Sums since its start.
    pub totals: Totals,
    /// What is known of each address of the engine.
    pub addresses: Vec<AddressStatus>,
    /// The clients that are there.
    pub clients: Vec<ClientStatus>,
}

/// An address of the engine.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AddressStatus {
    /// What connections know of it.
    #[serde(flatten)]
    pub view: UplinkView,
    /// It is a backup for some time, because connections waited for it more than it brought.
    pub held_back: bool,
    /// What passed.
    pub meter: UplinkMeter,
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Clients accepted.
    pub accepted: u64,
    /// Connections to servers that were opened.
    pub connected: u64,
    /// Of these, connections with MPTCP.
    pub mptcp: u64,
    /// Requests that were malformed, or went where nobody is taken.
    pub refused: u64,
    /// Names that could not be resolved.
    pub unresolved: u64,
    /// Servers that could not be reached.
    pub unreached: u64,
    /// Connections that a client or a server broke off.
    pub broken: u64,
    /// Octets from clients to servers.
    pub up_bytes: u64,
    /// Octets from servers to clients.
    pub down_bytes: u64,
    /// How often accepting paused for want of descriptors or of room.
    pub pauses: u64,
    /// How often the driver gave the proxy its turn: an idle proxy has none.
    pub turns: u64,
}

/// One client.
#[derive(Clone, Debug, Serialize)]
pub struct ClientStatus {
    /// `socks5`, `connect` or `http`; `none` until it is known.
    pub protocol: &'static str,
    /// Where it is connected to.
    pub target: Option<String>,
    /// What it waits for, if anything: `opening`, `resolving`, `dialing`, `open`, `ending`.
    pub stage: &'static str,
    /// How long it has been there.
    pub age: Duration,
    /// Octets to the server.
    pub up_bytes: u64,
    /// Octets from the server.
    pub down_bytes: u64,
    /// The engine's view, subflows included.
    pub connection: Option<ConnectionStats>,
}
