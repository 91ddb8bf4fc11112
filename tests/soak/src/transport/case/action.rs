//! Actions on subflows and addresses during a run.

use serde::{Deserialize, Serialize};

use super::Side;

/// An action of a host on its connections while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Time, ms.
    pub at_ms: u64,
    /// The acting host.
    pub side: Side,
    /// Which of the host's current connections, modulo their number.
    pub connection: usize,
    /// The action itself.
    pub deed: Deed,
}

/// What a host can do to a connection. Numbers of paths and subflows are modulo their count.
///
/// A deed that removes a subflow is skipped unless another subflow on a sound path remains (see
/// [`super::super::goals`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Deed {
    /// Opens a subflow from one of the host's addresses to one of the peer's.
    AddSubflow {
        /// Path of the host's address.
        from: usize,
        /// Path of the peer's address.
        to: usize,
        /// Whether it is a backup.
        backup: bool,
    },
    /// Closes a subflow.
    RemoveSubflow {
        /// Number of the subflow.
        subflow: usize,
    },
    /// Changes a priority.
    SetPriority {
        /// Number of the subflow.
        subflow: usize,
        /// Whether it becomes a backup.
        backup: bool,
    },
    /// Announces one of the host's addresses.
    Announce {
        /// Path of the address.
        path: usize,
        /// Whether to announce a port on which nobody listens.
        port: bool,
    },
    /// Withdraws one of the host's addresses.
    Withdraw {
        /// Path of the address.
        path: usize,
    },
    /// Loses an address, for all connections of the host, and gets it back after a second.
    LoseAddress {
        /// Path of the address.
        path: usize,
    },
    /// Cuts a window.
    CutWindow {
        /// Number of the subflow.
        subflow: usize,
        /// New window, octets.
        cwnd_bytes: u64,
    },
}
