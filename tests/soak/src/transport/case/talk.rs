//! What applications do.

use serde::{Deserialize, Serialize};

/// Connections of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Talk {
    /// The first connection opens then, ms.
    pub at_ms: u64,
    /// How many.
    pub connections: u32,
    /// One after so many milliseconds.
    pub every_ms: u64,
    /// What the client does on each.
    pub client: Speaker,
    /// What the server does on each.
    pub server: Speaker,
}

/// What one side does on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speaker {
    /// Octets to send.
    pub bytes: u64,
    /// Octets handed over at once.
    pub piece_bytes: u32,
    /// Waits so long after each piece, ms.
    pub pause_ms: u64,
    /// Says nothing for so long after half of it, ms.
    pub idle_ms: u64,
    /// Sends only when the peer has ended its stream.
    pub after_peer: bool,
    /// How it ends.
    pub ending: Ending,
    /// Octets taken at once.
    pub read_bytes: u32,
    /// Takes again after so long, ms; at once if zero.
    pub read_pause_ms: u64,
    /// Takes nothing before that much time has passed since the connection stood, ms.
    pub read_after_ms: u64,
}

/// How a side ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ending {
    /// Ends its stream after the last octet, and waits for the end of the peer's.
    Shutdown,
    /// Closes after the last octet, and reads no more.
    Close,
    /// Aborts after the last octet was handed over.
    Abort,
}
