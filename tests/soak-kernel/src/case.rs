//! A case: everything that decides a run but the clock, as data. Its text is what a failure prints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use soak::transport::case::{Settings, Side, Talk};

/// A kernel and an engine, the paths between them, what their applications do and what else happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Of the network's randomness.
    pub seed: u64,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Who is the kernel; the engine is the other side.
    pub kernel_is: Side,
    /// How the kernel is set.
    pub kernel: Kernel,
    /// How the engine is set.
    pub engine: Settings,
    /// The paths; connections begin on the first.
    pub paths: Vec<PathCase>,
    /// What the applications do.
    pub talks: Vec<Talk>,
    /// What happens on the way, in any order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

/// Settings of a kernel in a namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its sockets speak MPTCP; otherwise plain TCP.
    pub mptcp: bool,
    /// Octets of its sockets' send buffers (`SO_SNDBUF`), if they are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u32>,
    /// Octets of its sockets' receive buffers (`SO_RCVBUF`), if they are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u32>,
    /// `ip mptcp limits`: subflows, and addresses accepted from the peer; none: as the kernel has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<[u8; 2]>,
    /// Variables below `/proc/sys/net`, and their values; all others are as the kernel has them.
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
    /// That of which path.
    pub path: usize,
    /// What for.
    pub role: Role,
    /// As a backup.
    pub backup: bool,
}

/// What the kernel does with an address.
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
    /// From when until when nothing passes, ms since the network began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages_ms: Vec<[u64; 2]>,
    /// What stands on it, from the kernel's end on.
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
    /// Packets in the queue at most.
    pub queue_packets: u64,
    /// Packets lost, of 100.
    pub loss_percent: f64,
    /// Mean length of a burst of losses, packets; one loss at a time if it is 1 or less.
    pub burst_packets: f64,
    /// Packets held back, of 100.
    pub reorder_percent: f64,
    /// For so long at most, ms.
    pub reorder_ms: u64,
    /// Packets that come twice, of 100.
    pub duplicate_percent: f64,
    /// Packets damaged, which TCP's checksum finds, of 100.
    pub corrupt_percent: f64,
}

/// Something on a path that does more than forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Middlebox {
    /// A hop that takes no larger packets.
    Narrow {
        /// Octets.
        mtu: u16,
        /// And tells nobody.
        silent: bool,
    },
    /// Cuts segments.
    Split {
        /// Octets of data at most.
        bytes: u32,
    },
    /// Translates the kernel's address; IPv4 and a kernel that is the client.
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

/// Something that happens while connections run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// When, ms since the applications began.
    pub at_ms: u64,
    /// What.
    pub deed: Deed,
}

/// What can happen. Paths but the first, counted round, so that connections keep the subflow that they began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Deed {
    /// Nothing passes a path for a while.
    Cut {
        /// Which path.
        path: usize,
        /// For how long, ms.
        for_ms: u64,
    },
    /// The kernel's path manager is told of an address.
    KernelAdds(MptcpEndpoint),
    /// The kernel's path manager is told that an address is no longer to be used.
    KernelRemoves {
        /// That of which path.
        path: usize,
    },
    /// The kernel's path manager changes a priority.
    KernelSetsPriority {
        /// Of the address of which path.
        path: usize,
        /// To backup, or back.
        backup: bool,
    },
    /// The engine gets an address, or gets to know it again.
    EngineAdds {
        /// That of which path.
        path: usize,
        /// As a backup.
        backup: bool,
    },
    /// The engine loses an address.
    EngineLoses {
        /// That of which path.
        path: usize,
    },
    /// The engine announces an address on all its connections.
    EngineAnnounces {
        /// That of which path.
        path: usize,
    },
    /// The engine withdraws an address on all its connections.
    EngineWithdraws {
        /// That of which path.
        path: usize,
    },
    /// The engine changes the priority of a subflow on all its connections.
    EngineSetsPriority {
        /// Which.
        subflow: u16,
        /// To backup, or back.
        backup: bool,
    },
}

impl Case {
    /// Who is the engine.
    pub fn engine_is(&self) -> Side {
        match self.kernel_is {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// The value of a variable of the kernel, if the case sets it.
    pub fn setting(&self, variable: &str) -> Option<&str> {
        self.kernel.settings.get(variable).map(String::as_str)
    }

    /// What there is of the case for the applications, which know nothing of networks: a case of the simulator's soak.
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

    /// Connections of all talks.
    pub fn connections(&self) -> usize {
        self.talks.iter().map(|talk| talk.connections as usize).sum()
    }

    /// The case as text.
    ///
    /// # Panics
    /// Never: every case has a text.
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a case has a text")
    }

    /// Reads what [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// If it is no case; in words, with the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}
