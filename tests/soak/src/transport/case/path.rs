//! The network between the hosts.

use serde::{Deserialize, Serialize};

/// A path: a way in each direction, and elements that both directions pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathCase {
    /// A NAT in front of the client that forgets connections after this many idle seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat_idle_s: Option<u64>,
    /// A gateway that edits one side's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Gateway>,
    /// A fast-ACK relay: the client is the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<Relay>,
    /// From the client to the server.
    pub up: Way,
    /// From the server to the client.
    pub down: Way,
}

/// One direction of a path: a link, and elements behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Rate, kbit/s; not with a trace.
    pub rate_kbps: u64,
    /// Opportunities to deliver 1500 octets, in milliseconds, repeated (the mahimahi format); if empty, the rate
    /// counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace_ms: Vec<u32>,
    /// Delay, ms.
    pub delay_ms: u64,
    /// Maximum number of packets in the queue.
    pub queue_packets: u64,
    /// Maximum number of octets in the queue, if that is limited too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// Queue length in packets above which packets are marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_above: Option<u64>,
    /// Losses of the link.
    pub loss: Loss,
    /// Elements behind the link, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<Element>,
}

/// Which packets a link loses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// None.
    None,
    /// Each packet with the same probability.
    Uniform {
        /// Lost packets of 100.
        percent: f64,
    },
    /// In bursts of packets: a sender of few packets, such as SYNs, may lose all of them.
    Gilbert {
        /// Mean number of lost packets of 100.
        percent: f64,
        /// Mean length of a burst, packets.
        burst: f64,
    },
}

impl Loss {
    /// Returns the mean number of lost packets of 100.
    pub const fn percent(&self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Uniform { percent } | Self::Gilbert { percent, .. } => *percent,
        }
    }
}

/// Which segments lose options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strip {
    /// SYNs.
    Syn,
    /// SYN/ACKs.
    SynAck,
    /// All.
    All,
    /// All except this many at first.
    After(u64),
}

/// A kind of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segments {
    /// With SYN.
    Syn,
    /// With FIN.
    Fin,
    /// With RST.
    Rst,
    /// With data.
    Data,
    /// Without data, SYN, FIN and RST.
    Ack,
    /// With a DATA_FIN.
    DataFin,
    /// With ADD_ADDR.
    AddAddr,
    /// With MP_FASTCLOSE.
    Fastclose,
}

/// An element that does more than forward.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Element {
    /// Nothing passes for a while.
    Outage {
        /// Start, ms.
        from_ms: u64,
        /// End, ms.
        until_ms: u64,
    },
    /// Nothing passes for a moment, repeatedly: losses in bursts, however few packets there are.
    Flaps {
        /// Interval between the starts of outages, ms.
        every_ms: u64,
        /// Length of an outage, ms.
        for_ms: u64,
    },
    /// Nothing passes any more.
    Dead {
        /// Start, ms.
        from_ms: u64,
    },
    /// Some packets are overtaken.
    Reorder {
        /// Packets of 100.
        percent: f64,
        /// Maximum delay of such a packet, ms.
        delay_ms: u64,
    },
    /// Some packets arrive twice.
    Duplicate {
        /// Packets of 100.
        percent: f64,
    },
    /// Some packets are damaged; TCP's checksum detects it.
    Damage {
        /// Packets of 100.
        percent: f64,
    },
    /// Some payloads are damaged, but TCP's checksum fits.
    Corrupt {
        /// Packets of 100.
        percent: f64,
    },
    /// MPTCP's options are removed.
    StripMptcp(Strip),
    /// Options of SYNs are removed, with their consequences.
    StripSyn {
        /// Maximum segment size.
        mss: bool,
        /// Window scale.
        window_scale: bool,
        /// SACK permitted.
        sack: bool,
        /// Timestamps.
        timestamps: bool,
    },
    /// Segments are cut.
    Split {
        /// Maximum data of a segment, octets.
        bytes: u64,
    },
    /// Segments are joined.
    Merge {
        /// Maximum data of a segment, octets.
        bytes: u64,
        /// Maximum wait for the next segment, ms.
        hold_ms: u64,
    },
    /// Data sequence numbers are falsified.
    ShiftDsn {
        /// Offset added to them.
        octets: u64,
        /// Number of mappings at first that stay correct.
        after: u64,
    },
    /// Some segments of a kind are lost.
    Drop {
        /// The kind.
        what: Segments,
        /// Number of such segments that pass first.
        after: u64,
        /// Number that are lost then.
        count: u64,
    },
}

/// A middlebox that edits a stream and keeps TCP's numbers consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Whether it edits the server's data instead of the client's.
    pub of_server: bool,
    /// Position in the subflow.
    pub at: u32,
    /// Number of octets.
    pub octets: u32,
    /// Whether to insert octets instead of overwriting.
    pub inserts: bool,
}

/// A relay that acknowledges at once (fast ACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Maximum octets of a subflow in it, each way.
    pub buffer_bytes: u64,
    /// MTU of its TCP, octets.
    pub mtu: u16,
    /// Delay of the link behind it (Wi-Fi), ms.
    pub delay_ms: u64,
}
