//! What lies between the hosts.

use serde::{Deserialize, Serialize};

/// A path: a way in each direction, and what both directions pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathCase {
    /// A NAT in front of the client that forgets what was idle for so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat_idle_s: Option<u64>,
    /// A gateway that edits what one side sends.
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
    /// Opportunities to deliver 1500 octets, in milliseconds, repeated (the mahimahi format); none: the rate counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace_ms: Vec<u32>,
    /// Delay, ms.
    pub delay_ms: u64,
    /// Packets in the queue at most.
    pub queue_packets: u64,
    /// Octets in the queue at most, if that is limited too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// Marks packets that find so many packets in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_above: Option<u64>,
    /// What the link loses.
    pub loss: Loss,
    /// What stands behind the link, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<Element>,
}

/// Which packets a link loses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// None.
    None,
    /// Each with the same chance.
    Uniform {
        /// Of 100 packets.
        percent: f64,
    },
    /// In bursts of packets: what sends few, such as SYNs, may lose all of them.
    Gilbert {
        /// Of 100 packets, in the mean.
        percent: f64,
        /// Mean length of a burst, packets.
        burst: f64,
    },
}

impl Loss {
    /// Packets lost of 100, in the mean.
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
    /// All but the first so many.
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

/// Something on a way that does more than forward.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Element {
    /// Nothing passes for a while.
    Outage {
        /// From then on, ms.
        from_ms: u64,
        /// Until then, ms.
        until_ms: u64,
    },
    /// Nothing passes for a moment, again and again: losses in bursts, however few packets there are.
    Flaps {
        /// From the begin of one outage to that of the next, ms.
        every_ms: u64,
        /// Length of an outage, ms.
        for_ms: u64,
    },
    /// Nothing passes any more.
    Dead {
        /// From then on, ms.
        from_ms: u64,
    },
    /// Some packets are overtaken.
    Reorder {
        /// Of 100 packets.
        percent: f64,
        /// Held back for so long at most, ms.
        delay_ms: u64,
    },
    /// Some packets come twice.
    Duplicate {
        /// Of 100 packets.
        percent: f64,
    },
    /// Some packets are damaged, which TCP's checksum finds.
    Damage {
        /// Of 100 packets.
        percent: f64,
    },
    /// Some payloads are damaged, and TCP's checksum fits nevertheless.
    Corrupt {
        /// Of 100 packets.
        percent: f64,
    },
    /// MPTCP's options are removed.
    StripMptcp(Strip),
    /// Options of SYNs, and what follows from them, are removed.
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
    /// Cuts segments.
    Split {
        /// Octets of data at most.
        bytes: u64,
    },
    /// Joins segments.
    Merge {
        /// Octets of data at most.
        bytes: u64,
        /// Waits for the next for so long, ms.
        hold_ms: u64,
    },
    /// Falsifies data sequence numbers.
    ShiftDsn {
        /// By so many.
        octets: u64,
        /// But of the first so many mappings.
        after: u64,
    },
    /// Some segments of a kind are lost.
    Drop {
        /// Which kind.
        what: Segments,
        /// The first so many pass.
        after: u64,
        /// Then so many are lost.
        count: u64,
    },
}

/// Edits a stream and keeps TCP's numbers consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// What the server sends; else what the client sends.
    pub of_server: bool,
    /// Position in the subflow.
    pub at: u32,
    /// So many octets.
    pub octets: u32,
    /// They are inserted; else they overwrite what is there.
    pub inserts: bool,
}

/// A relay that acknowledges at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Octets that a subflow may have in it each way.
    pub buffer_bytes: u64,
    /// Its TCP's MTU, octets.
    pub mtu: u16,
    /// Delay of the link behind it (Wi-Fi), ms.
    pub delay_ms: u64,
}
