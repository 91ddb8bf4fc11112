//! The behaviour of applications.

use serde::{Deserialize, Serialize};

/// Connections of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Talk {
    /// Time of the first connection, ms.
    pub at_ms: u64,
    /// Number of connections.
    pub connections: u32,
    /// Interval between connections, ms.
    pub every_ms: u64,
    /// Behaviour of the client on each.
    pub client: Speaker,
    /// Behaviour of the server on each.
    pub server: Speaker,
}

/// Behaviour of one side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speaker {
    /// Octets to send.
    pub bytes: u64,
    /// Octets written at once.
    pub piece_bytes: u32,
    /// Pause after each piece, ms.
    pub pause_ms: u64,
    /// Pause after half of the octets, ms.
    pub idle_ms: u64,
    /// Whether to send only after the end of the peer's stream.
    pub after_peer: bool,
    /// How it ends the connection.
    pub ending: Ending,
    /// Octets read at once.
    pub read_bytes: u32,
    /// Pause between reads, ms; none if zero.
    pub read_pause_ms: u64,
    /// Time after establishment before the first read, ms.
    pub read_after_ms: u64,
}

/// How a side ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ending {
    /// Ends its stream after the last octet, and waits for the end of the peer's.
    Shutdown,
    /// Closes after the last octet, and stops reading.
    Close,
    /// Aborts after writing the last octet.
    Abort,
}
