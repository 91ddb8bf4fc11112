//! The options of MPTCP-rec, on the subtype that RFC 8684 section 7.2 reserves for private experiments.
//!
//! | | octets | low nibble of the subtype octet | following octets |
//! |---|---|---|---|
//! | offer | 7 | 0 | four octets that name the experiment |
//! | [`Round`] | 4 | path | round |
//! | [`RateReport`] | 12, 20, 28, 36 | path | round, time stamp (4), desired rate (4), up to three held blocks (8 each) |
//!
//! The MPTCP-rec paper draws the report (its figure 3) and gives no sizes. These sizes leave room beside timestamps and
//! a DATA_ACK: 12 + 8 + 12 = 32, so one held block fits too. A round fits beside a mapping: 12 + 20 + 4 = 36. Every
//! data segment carries a round, so it has its own place in [`crate::Options`], and any experimental option of four
//! octets is read as one. The options have this meaning only on a connection on which both sides made the offer.

use arrayvec::ArrayVec;

use super::{Experimental, KIND, length_octet, subtype};
use crate::octets::Reader;

/// Content of the offer: this experiment, in its first version.
const EXPERIMENT: [u8; 4] = *b"rec1";
/// Octets of a report without blocks, from its round on.
const REPORT_BYTES: usize = 9;
const BLOCK_BYTES: usize = 8;

/// Names a path within a connection: the pid of the MPTCP-rec paper's section 4.1. The sender of data chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathId(u8);

impl PathId {
    /// Number of paths that can be distinguished.
    pub const COUNT: u8 = 16;

    /// Returns the path `number`, which must be below [`Self::COUNT`].
    pub const fn new(number: u8) -> Option<Self> {
        if number < Self::COUNT { Some(Self(number)) } else { None }
    }

    /// Returns its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// Path and round of a data segment (rID and pid, section 4.1); every data segment carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The path.
    pub path: PathId,
    /// The latest report on this path that the sender of data has applied.
    pub id: u8,
}

impl Round {
    /// Octets on the wire.
    pub(crate) const LEN: usize = 4;

    /// Reads the option from its subtype octet on; `None` for any other.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        match body {
            [first, id] if first >> 4 == subtype::MP_EXPERIMENTAL => Some(Self { path: PathId(first & 0x0f), id: *id }),
            _ => None,
        }
    }

    pub(crate) fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[KIND, length_octet(Self::LEN), subtype::MP_EXPERIMENTAL << 4 | self.path.0, self.id]);
    }
}

/// Data that the receiver holds out of order and will not discard (NR-SACK), in octets after the DATA_ACK of the same
/// segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBlock {
    /// First octet.
    pub start: u32,
    /// Octet after the last.
    pub end: u32,
}

/// The extended NR-SACK (section 4.1, figure 3b): the rate at which the receiver wants data on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateReport {
    /// The path, as the sender of data numbers it.
    pub path: PathId,
    /// The round that begins when the sender of data applies this report.
    pub round: u8,
    /// Time of the report in milliseconds of the receiver's clock; it orders the reports of a path.
    pub timestamp_ms: u32,
    /// The desired sending rate (DSR), octets of payload per second; zero while unknown.
    pub desired_bytes_per_s: u32,
    /// Held blocks, that of the most recent arrival first.
    pub held: ArrayVec<HeldBlock, 3>,
}

impl RateReport {
    /// Octets of the option with `blocks` blocks.
    pub const fn len_with(blocks: usize) -> usize {
        3 + REPORT_BYTES + blocks * BLOCK_BYTES
    }

    /// Reads a report; `None` if the option is something else or has an empty block.
    pub fn read(option: &Experimental) -> Option<Self> {
        let path = PathId::new(option.flags)?;
        let mut body = Reader::new(&option.data);
        let (round, timestamp_ms, desired_bytes_per_s) = (body.u8()?, body.u32()?, body.u32()?);
        let mut held = ArrayVec::new();
        while body.remaining() > 0 {
            let block = HeldBlock { start: body.u32()?, end: body.u32()? };
            if block.start >= block.end {
                return None;
            }
            held.try_push(block).ok()?;
        }
        Some(Self { path, round, timestamp_ms, desired_bytes_per_s, held })
    }

    /// Returns the option that carries this report.
    pub fn option(&self) -> Experimental {
        let mut data = ArrayVec::new();
        data.push(self.round);
        data.extend(self.timestamp_ms.to_be_bytes());
        data.extend(self.desired_bytes_per_s.to_be_bytes());
        for block in &self.held {
            data.extend(block.start.to_be_bytes());
            data.extend(block.end.to_be_bytes());
        }
        Experimental { flags: self.path.0, data }
    }
}

impl Experimental {
    /// Returns the offer to use MPTCP-rec, for the SYN and SYN/ACK of a connection's first subflow.
    pub fn receiver_centric_offer() -> Self {
        Self { flags: 0, data: EXPERIMENT.into_iter().collect() }
    }

    /// Returns whether this is that offer.
    pub fn is_receiver_centric_offer(&self) -> bool {
        self.flags == 0 && self.data[..] == EXPERIMENT
    }
}
