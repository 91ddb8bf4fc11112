//! A case: everything that determines a run except the clock, as data. A failure prints its text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use soak::transport::case::{Settings, Side, Talk};

/// A kernel and an engine, the paths between them, their applications, and actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Seed of the network's randomness.
    pub seed: u64,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// The side of the kernel; the engine is the other side.
    pub kernel_is: Side,
    /// Settings of the kernel.
    pub kernel: Kernel,
    /// Settings of the engine.
    pub engine: Settings,
    /// The paths; connections begin on the first.
    pub paths: Vec<PathCase>,
    /// The applications.
    pub talks: Vec<Talk>,
    /// Actions during the run, in any order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

/// Settings of a kernel in a namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Whether its sockets use MPTCP instead of plain TCP.
    pub mptcp: bool,
    /// Octets of its sockets' send buffers (`SO_SNDBUF`), if they are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u32>,
    /// Octets of its sockets' receive buffers (`SO_RCVBUF`), if they are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u32>,
    /// `ip mptcp limits`: subflows, and addresses accepted from the peer; absent: the kernel's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<[u8; 2]>,
    /// Variables below `/proc/sys/net`, and their values; all others have the kernel's defaults.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// `ip mptcp endpoint`, set before the first connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<MptcpEndpoint>,
}

/// An address of the kernel that its path manager uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MptcpEndpoint {
    /// Path of the address.
    pub path: usize,
    /// Its use.
    pub role: Role,
    /// Whether it is a backup.
    pub backup: bool,
}

/// The kernel's use of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Opens a subflow from it.
    Subflow,
    /// Announces it.
    Signal,
    /// Both.
    SubflowAndSignal,
    /// Opens subflows from it to every address of the peer.
    Fullmesh,
}

/// A path between the two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathCase {
    /// From the kernel to the engine.
    pub up: Way,
    /// From the engine to the kernel.
    pub down: Way,
    /// MTU of the devices at both ends, octets.
    pub mtu: u16,
    /// Start and end of each outage, ms since the network began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages_ms: Vec<[u64; 2]>,
    /// Middleboxes on it, from the kernel's end on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<Middlebox>,
}

/// One direction of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Rate, kbit/s.
    pub rate_kbps: u64,
    /// Delay, ms.
    pub delay_ms: u64,
    /// Maximum number of packets in the queue.
    pub queue_packets: u64,
    /// Lost packets of 100.
    pub loss_percent: f64,
    /// Mean length of a burst of losses, packets; single losses if it is 1 or less.
    pub burst_packets: f64,
    /// Delayed packets of 100.
    pub reorder_percent: f64,
    /// Maximum delay of such a packet, ms.
    pub reorder_ms: u64,
    /// Duplicated packets of 100.
    pub duplicate_percent: f64,
    /// Damaged packets of 100; TCP's checksum detects the damage.
    pub corrupt_percent: f64,
}

/// An element of a path that does more than forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Middlebox {
    /// A hop that drops larger packets.
    Narrow {
        /// Octets.
        mtu: u16,
        /// Whether it does so without ICMP.
        silent: bool,
    },
    /// Segments are cut.
    Split {
        /// Maximum data of a segment, octets.
        bytes: u32,
    },
    /// Translates the kernel's address; only for IPv4 and a kernel that is the client.
    Nat,
    /// Removes MPTCP's options.
    StripMptcp(StripFrom),
    /// Removes SACK, timestamps, window scale and MSS from SYNs.
    StripTcp,
}

/// Which segments lose MPTCP's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StripFrom {
    /// SYNs.
    Syn,
    /// SYN/ACKs.
    SynAck,
    /// All.
    All,
}

/// An action while connections run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Time, ms since the applications began.
    pub at_ms: u64,
    /// The action itself.
    pub deed: Deed,
}

/// Possible actions. Paths exclude the first and are modulo their number, so that connections keep their initial
/// subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Deed {
    /// Nothing passes a path for a while.
    Cut {
        /// Number of the path.
        path: usize,
        /// Duration, ms.
        for_ms: u64,
    },
    /// The kernel's path manager gets an address.
    KernelAdds(MptcpEndpoint),
    /// The kernel's path manager loses an address.
    KernelRemoves {
        /// Path of the address.
        path: usize,
    },
    /// The kernel's path manager changes a priority.
    KernelSetsPriority {
        /// Path of the address.
        path: usize,
        /// Whether it becomes a backup.
        backup: bool,
    },
    /// The engine gets an address, or hears of it again.
    EngineAdds {
        /// Path of the address.
        path: usize,
        /// Whether it is a backup.
        backup: bool,
    },
    /// The engine loses an address.
    EngineLoses {
        /// Path of the address.
        path: usize,
    },
    /// The engine announces an address on all its connections.
    EngineAnnounces {
        /// Path of the address.
        path: usize,
    },
    /// The engine withdraws an address on all its connections.
    EngineWithdraws {
        /// Path of the address.
        path: usize,
    },
    /// The engine changes the priority of a subflow on all its connections.
    EngineSetsPriority {
        /// Number of the subflow.
        subflow: u16,
        /// Whether it becomes a backup.
        backup: bool,
    },
}

impl Case {
    /// Returns the side of the engine.
    pub fn engine_is(&self) -> Side {
        match self.kernel_is {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// Returns the value of a kernel variable, if the case sets it.
    pub fn setting(&self, variable: &str) -> Option<&str> {
        self.kernel.settings.get(variable).map(String::as_str)
    }

    /// Returns the part of the case for the applications, which know nothing about networks, as a case of the
    /// simulator's soak.
    pub fn applications(&self) -> soak::transport::case::Case {
        soak::transport::case::Case {
            seed: self.seed,
            ipv6: self.ipv6,
            one_server_address: false,
            client: self.engine.clone(),
            server: self.engine.clone(),
            paths: Vec::new(),
            talks: self.talks.clone(),
            actions: Vec::new(),
        }
    }

    /// Returns the number of connections of all talks.
    pub fn connections(&self) -> usize {
        self.talks.iter().map(|talk| talk.connections as usize).sum()
    }

    /// Returns the case as text.
    ///
    /// # Panics
    /// Never: every case has a text.
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a case has a text")
    }

    /// Reads the text that [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// If it is not a case; the message names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}
