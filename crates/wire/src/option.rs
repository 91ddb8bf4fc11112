//! TCP options (RFC 9293 section 3.1): reading and writing of up to 40 octets.
//!
//! **Reading** never fails, because a bad option is no reason to lose the segment:
//!
//! - Options of unknown kind, and MPTCP options of unknown subtype, are skipped by their length (RFC 9293 MUST-6).
//! - A known option with an impossible length is left out, as if it were absent, and counted.
//! - If a length is below two or reaches past the end of the header, the start of the next option is unknown. The rest
//!   of the header is left out, and counted once. RFC 9293 (MUST-7) asks for readiness and only suggests a reset. A
//!   reset would give every middlebox and off-path guesser a way to kill connections; Linux stops reading too.
//! - Of several options of one kind the last one counts. All MPTCP options are kept, in order.
//!
//! RFC 8684 does not mention malformed options. Leaving them out makes them equal to options that a middlebox removed,
//! for which RFC 8684 specifies the reaction everywhere (section 3.7: fall back, or reset the subflow).
//!
//! **Writing** follows Linux's order and alignment: MSS, SACK-permitted and timestamps, window scale, SACK, MPTCP. Each
//! is padded with NOPs to a multiple of four octets, so that the peer's fast paths find timestamps where they expect
//! them. Options that others packed more tightly, and that were read from a segment, may exceed 40 octets with padding;
//! they are written without. Nothing is ever left out: who builds a segment sees to it that its options fit
//! ([`Options::fits`]).

use arrayvec::ArrayVec;
use smallvec::SmallVec;
use units::SeqNr;

use crate::mptcp::{self, MptcpOption, Round, Unread, length_octet};
use crate::octets::Reader;

/// The options of one segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Maximum segment size in octets; SYN only (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift count, at most 14; SYN only (RFC 7323 section 2.2). Larger ones are read, and sent, as 14
    /// (section 2.3).
    pub window_scale: Option<u8>,
    /// SACK permitted; SYN only (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 section 3).
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements, most recent first (RFC 2018 section 3).
    pub sack: SackBlocks,
    /// MPTCP options (RFC 8684 section 3); nearly always none or one.
    pub mptcp: SmallVec<[MptcpOption; 1]>,
    /// MPTCP-rec's round, an experimental MPTCP option. It has its own field because every data segment of such a
    /// connection carries one beside its DSS.
    pub round: Option<Round>,
    /// Number of malformed MPTCP options left out on reading. Not sent.
    pub malformed_mptcp: u8,
    /// Number of other malformed options left out on reading. Not sent.
    pub malformed_tcp: u8,
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

/// Up to four blocks fit into the option space, three beside timestamps (RFC 2018 section 3).
pub type SackBlocks = ArrayVec<SackBlock, 4>;

/// Option kinds (RFC 9293 section 3.1, RFC 2018, RFC 7323).
mod kind {
    pub(super) const END_OF_LIST: u8 = 0;
    pub(super) const NO_OPERATION: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}
use kind::NO_OPERATION as NOP;

/// Largest shift count (RFC 7323 section 2.3).
const WINDOW_SCALE_MAX: u8 = 14;
/// Kind and length of a SACK option, with padding.
const SACK_OVERHEAD_BYTES: usize = 4;
const SACK_BLOCK_BYTES: usize = 8;

impl Options {
    /// Octets of option space in a TCP header.
    pub const MAX_BYTES: usize = 40;

    /// Removes all options.
    #[inline]
    pub fn clear(&mut self) {
        let Self { mss, window_scale, sack_permitted, timestamps, sack, mptcp, round, malformed_mptcp, malformed_tcp } =
            self;
        (*mss, *window_scale, *sack_permitted, *timestamps, *round) = (None, None, false, None, None);
        (*malformed_mptcp, *malformed_tcp) = (0, 0);
        sack.clear();
        *mptcp = SmallVec::new();
    }

    /// Returns the octets of these options with padding: a multiple of four.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        // SACK-permitted replaces the two NOPs before timestamps.
        let timestamps = match (self.timestamps, self.sack_permitted) {
            (Some(_), _) => 12,
            (None, true) => 4,
            (None, false) => 0,
        };
        let window_scale = if self.window_scale.is_some() { 4 } else { 0 };
        // Nearly all segments have exactly one, a DSS.
        let mptcp = match self.mptcp.as_slice() {
            [] => 0,
            [MptcpOption::Dss(dss)] => dss.len().next_multiple_of(4),
            several => several.iter().map(|option| option.encoded_len().next_multiple_of(4)).sum(),
        };
        let round = if self.round.is_some() { Round::LEN } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { SACK_OVERHEAD_BYTES + self.sack.len() * SACK_BLOCK_BYTES };
        mss + timestamps + window_scale + mptcp + round + sack
    }

    /// Whether these options fit into a header, padding included.
    #[inline]
    pub fn fits(&self) -> bool {
        self.encoded_len() <= Self::MAX_BYTES
    }

    /// Returns the octets that are left, padding included.
    #[inline]
    pub fn room(&self) -> usize {
        Self::MAX_BYTES.saturating_sub(self.encoded_len())
    }

    /// Returns how many SACK blocks fit into `room` octets.
    pub const fn sack_blocks_in(room: usize) -> usize {
        room.saturating_sub(SACK_OVERHEAD_BYTES) / SACK_BLOCK_BYTES
    }

    /// Returns the octets that [`Self::emit`] writes.
    #[inline]
    pub(crate) fn emitted_len(&self) -> usize {
        match self.encoded_len() {
            len if len <= Self::MAX_BYTES => len,
            _ => self.without_padding().len(),
        }
    }

    /// Reads the options of a TCP header: the octets after its first 20.
    pub fn parse(octets: &[u8]) -> Self {
        let mut options = Self::default();
        let mut rest = octets;
        while let [kind, after_kind @ ..] = rest {
            match *kind {
                kind::END_OF_LIST => break,
                NOP => rest = after_kind,
                kind => {
                    let len = after_kind.first().map_or(0, |len| usize::from(*len));
                    let Some(body) = rest.get(2..len) else {
                        options.count_malformed(kind);
                        break;
                    };
                    options.parse_option(kind, body);
                    rest = &rest[len..];
                }
            }
        }
        options
    }

    /// Reads one option from the octets after its length.
    fn parse_option(&mut self, kind: u8, body: &[u8]) {
        let understood = match kind {
            kind::MSS => take(&mut self.mss, parse_u16(body)),
            kind::WINDOW_SCALE => take(&mut self.window_scale, parse_window_scale(body)),
            kind::SACK_PERMITTED => {
                self.sack_permitted |= body.is_empty();
                body.is_empty()
            }
            kind::TIMESTAMPS => take(&mut self.timestamps, Timestamps::parse(body)),
            kind::SACK => parse_sack(body).map(|blocks| self.sack = blocks).is_some(),
            mptcp::KIND => self.parse_mptcp(body),
            _ => true,
        };
        if !understood {
            self.count_malformed(kind);
        }
    }

    fn parse_mptcp(&mut self, body: &[u8]) -> bool {
        match MptcpOption::parse(body) {
            Ok(MptcpOption::Experimental(_)) if take(&mut self.round, Round::parse(body)) => true,
            Ok(option) => {
                self.mptcp.push(option);
                true
            }
            Err(unread) => unread == Unread::UnknownSubtype,
        }
    }

    fn count_malformed(&mut self, kind: u8) {
        if kind == mptcp::KIND {
            self.malformed_mptcp += 1;
        } else {
            self.malformed_tcp += 1;
        }
    }

    /// Appends the options: [`Self::encoded_len`] octets if these fit into a header, else fewer, without padding.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        if self.fits() {
            self.emit_padded(out);
        } else {
            out.extend(self.without_padding());
        }
    }

    /// Returns the options without padding between them, in a multiple of four octets.
    #[cold]
    fn without_padding(&self) -> Vec<u8> {
        let (mut padded, mut out) = (Vec::new(), Vec::new());
        self.emit_padded(&mut padded);
        let mut rest = &padded[..];
        while let [kind, after_kind @ ..] = rest {
            let len = if *kind == NOP { 0 } else { usize::from(after_kind[0]) };
            out.extend_from_slice(&rest[..len]);
            rest = &rest[len.max(1)..];
        }
        out.resize(out.len().next_multiple_of(4), NOP);
        out
    }

    fn emit_padded(&self, out: &mut Vec<u8>) {
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            out.extend_from_slice(&[kind::MSS, 4, high, low]);
        }
        if self.sack_permitted {
            let before = if self.timestamps.is_some() { 2 } else { 0 };
            out.extend_from_slice(&[NOP, NOP, kind::SACK_PERMITTED, 2][before..]);
        }
        if let Some(timestamps) = self.timestamps {
            let after = if self.sack_permitted { 2 } else { 0 };
            out.extend_from_slice(&[NOP, NOP, kind::TIMESTAMPS, 10][after..]);
            out.extend_from_slice(&timestamps.value.to_be_bytes());
            out.extend_from_slice(&timestamps.echo.to_be_bytes());
        }
        if let Some(window_scale) = self.window_scale {
            out.extend_from_slice(&[NOP, kind::WINDOW_SCALE, 3, window_scale.min(WINDOW_SCALE_MAX)]);
        }
        if !self.sack.is_empty() {
            out.extend_from_slice(&[NOP, NOP, kind::SACK, length_octet(2 + self.sack.len() * SACK_BLOCK_BYTES)]);
            for block in &self.sack {
                out.extend_from_slice(&block.start.0.to_be_bytes());
                out.extend_from_slice(&block.end.0.to_be_bytes());
            }
        }
        for option in &self.mptcp {
            option.emit(out);
            let len = option.encoded_len();
            out.extend_from_slice(&[NOP; 3][..len.next_multiple_of(4) - len]);
        }
        if let Some(round) = self.round {
            round.emit(out);
        }
    }
}

/// Stores `read` in `place`, and returns whether there was a value.
fn take<T>(place: &mut Option<T>, read: Option<T>) -> bool {
    let understood = read.is_some();
    if understood {
        *place = read;
    }
    understood
}

fn parse_u16(body: &[u8]) -> Option<u16> {
    body.try_into().ok().map(u16::from_be_bytes)
}

fn parse_window_scale(body: &[u8]) -> Option<u8> {
    let [shift] = body.try_into().ok()?;
    Some(u8::min(shift, WINDOW_SCALE_MAX))
}

impl Timestamps {
    fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let timestamps = Self { value: body.u32()?, echo: body.u32()? };
        body.finish(timestamps)
    }
}

fn parse_sack(body: &[u8]) -> Option<SackBlocks> {
    let mut body = Reader::new(body);
    let mut blocks = SackBlocks::new();
    while body.remaining() > 0 {
        blocks.try_push(SackBlock { start: SeqNr(body.u32()?), end: SeqNr(body.u32()?) }).ok()?;
    }
    (!blocks.is_empty()).then_some(blocks)
}
