//! What happens to subflows and addresses on the way.

use serde::{Deserialize, Serialize};

use super::Side;

/// Something that a host does to its connections while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// When, ms.
    pub at_ms: u64,
    /// Who.
    pub side: Side,
    /// To which of the connections that it has then, counted round.
    pub connection: usize,
    /// What.
    pub deed: Deed,
}

/// What a host can do to a connection. Paths and subflows are counted round.
///
/// What takes a subflow away is left undone where no other subflow on a sound path stands (see [`super::super::goals`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Deed {
    /// Opens a subflow from an address of its own to one of the peer's.
    AddSubflow {
        /// Path of its own address.
        from: usize,
        /// Path of the peer's address.
        to: usize,
        /// As a backup.
        backup: bool,
    },
    /// Closes a subflow.
    RemoveSubflow {
        /// Which.
        subflow: usize,
    },
    /// Changes a priority.
    SetPriority {
        /// Of which subflow.
        subflow: usize,
        /// To backup, or back.
        backup: bool,
    },
    /// Announces an address of its own.
    Announce {
        /// Of which path.
        path: usize,
        /// With a port at which nobody listens.
        port: bool,
    },
    /// Withdraws an address of its own.
    Withdraw {
        /// Of which path.
        path: usize,
    },
    /// Loses an address, for all its connections, and gets it back after a second.
    LoseAddress {
        /// Of which path.
        path: usize,
    },
    /// Cuts a window.
    CutWindow {
        /// Of which subflow.
        subflow: usize,
        /// To so many octets.
        cwnd_bytes: u64,
    },
}
