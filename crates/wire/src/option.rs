//! TCP options, and the policy that packs them into 40 octets.

use arrayvec::ArrayVec;
use smallvec::SmallVec;
use units::SeqNr;

use crate::mptcp::MptcpOption;

/// The options of one segment. Options that this stack does not know are skipped on parsing (RFC 9293 section 3.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Maximum segment size in octets; SYN only (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift count; SYN only (RFC 7323 section 2.2).
    pub window_scale: Option<u8>,
    /// SACK permitted; SYN only (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 section 3).
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements, most recent first (RFC 2018 section 3).
    pub sack: SackBlocks,
    /// MPTCP options (RFC 8684 section 3); nearly always none or one.
    pub mptcp: SmallVec<[MptcpOption; 1]>,
}

/// The timestamps option (RFC 7323 section 3.2), in the sender's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock, echoed.
    pub echo: u32,
}

/// Octets `[start, end)` that have arrived (RFC 2018 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: SeqNr,
    /// Sequence number after the last of the block.
    pub end: SeqNr,
}

/// Up to four blocks fit into the option space.
pub type SackBlocks = ArrayVec<SackBlock, 4>;
