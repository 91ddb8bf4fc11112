//! MPTCP options (RFC 8684 section 3): TCP option kind 30, one file per subtype.
//!
//! Every option starts with kind, length and an octet whose high nibble is the subtype (figure 3). Reserved bits are
//! sent as zero and ignored on arrival. An option whose length does not suit its subtype and flags is malformed:
//! [`crate::Options::parse`] leaves it out and counts it.

mod add_addr;
mod capable;
mod dss;
mod experimental;
mod fail;
mod fastclose;
mod join;
mod prio;
mod receiver_centric;
mod remove_addr;
mod reset;

pub use add_addr::AddAddr;
pub use capable::{CapableFlags, DataLen, MpCapable};
pub use dss::{DataSeq, Dss, Mapping};
pub use experimental::Experimental;
pub use fail::MpFail;
pub use fastclose::MpFastclose;
pub use join::MpJoin;
pub use prio::MpPrio;
pub use receiver_centric::{HeldBlock, PathId, RateReport, Round};
pub use remove_addr::RemoveAddr;
pub use reset::{MpTcpRst, ResetReason};

/// A connection key (RFC 8684 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

/// The token that names a connection at one host: the most significant 32 bits of the SHA-256 of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u32);

/// An address identifier (RFC 8684 section 3.4.1); 0 is the address of the first subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AddressId(pub u8);

/// One MPTCP option.
#[derive(Clone, Debug, PartialEq)]
pub enum MptcpOption {
    /// Subtype 0x0: starts a connection.
    Capable(MpCapable),
    /// Subtype 0x1: adds a subflow to a connection.
    Join(MpJoin),
    /// Subtype 0x2: data sequence signal.
    Dss(Dss),
    /// Subtype 0x3: announces an address.
    AddAddr(AddAddr),
    /// Subtype 0x4: withdraws addresses.
    RemoveAddr(RemoveAddr),
    /// Subtype 0x5: changes a subflow's priority.
    Prio(MpPrio),
    /// Subtype 0x6: a checksum failed; fall back.
    Fail(MpFail),
    /// Subtype 0x7: closes the connection abruptly.
    Fastclose(MpFastclose),
    /// Subtype 0x8: why a subflow is reset.
    TcpRst(MpTcpRst),
    /// Subtype 0xf: private experiments (RFC 8684 section 7.2).
    Experimental(Experimental),
}

/// MPTCP option subtypes (RFC 8684 section 7.2).
mod subtype {
    pub(super) const MP_CAPABLE: u8 = 0x0;
    pub(super) const MP_JOIN: u8 = 0x1;
    pub(super) const DSS: u8 = 0x2;
    pub(super) const ADD_ADDR: u8 = 0x3;
    pub(super) const REMOVE_ADDR: u8 = 0x4;
    pub(super) const MP_PRIO: u8 = 0x5;
    pub(super) const MP_FAIL: u8 = 0x6;
    pub(super) const MP_FASTCLOSE: u8 = 0x7;
    pub(super) const MP_TCPRST: u8 = 0x8;
    pub(super) const MP_EXPERIMENTAL: u8 = 0xf;
}

/// TCP option kind of all MPTCP options.
pub(crate) const KIND: u8 = 30;

/// Converts the length of an option, of at most 40 octets.
pub(crate) fn length_octet(len: usize) -> u8 {
    u8::try_from(len).unwrap_or(u8::MAX)
}

/// Writes kind, length and the subtype octet (figure 3), whose low nibble belongs to the subtype.
fn begin(subtype: u8, low_nibble: u8, len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&[KIND, length_octet(len), subtype << 4 | low_nibble & 0x0f]);
}

/// Why octets of kind 30 are not an [`MptcpOption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// A subtype that RFC 8684 does not assign; it is skipped.
    UnknownSubtype,
    /// The length does not suit subtype and flags.
    Malformed,
}

impl MptcpOption {
    /// Returns the octets on the wire without padding: the option's length field. Zero for an option without content,
    /// which is not sent; only an empty [`RemoveAddr`] is such an option.
    #[inline(never)]
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Capable(option) => option.len(),
            Self::Join(option) => option.len(),
            Self::Dss(option) => option.len(),
            Self::AddAddr(option) => option.len(),
            Self::RemoveAddr(option) => option.len(),
            Self::Prio(_) => MpPrio::LEN,
            Self::Fail(_) => MpFail::LEN,
            Self::Fastclose(_) => MpFastclose::LEN,
            Self::TcpRst(_) => MpTcpRst::LEN,
            Self::Experimental(option) => option.len(),
        }
    }

    /// Reads an option from its subtype octet on, after kind and length.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Unread> {
        let subtype = body.first().ok_or(Unread::Malformed)? >> 4;
        let option = match subtype {
            subtype::MP_CAPABLE => MpCapable::parse(body).map(Self::Capable),
            subtype::MP_JOIN => MpJoin::parse(body).map(Self::Join),
            subtype::DSS => Dss::parse(body).map(Self::Dss),
            subtype::ADD_ADDR => AddAddr::parse(body).map(Self::AddAddr),
            subtype::REMOVE_ADDR => RemoveAddr::parse(body).map(Self::RemoveAddr),
            subtype::MP_PRIO => MpPrio::parse(body).map(Self::Prio),
            subtype::MP_FAIL => MpFail::parse(body).map(Self::Fail),
            subtype::MP_FASTCLOSE => MpFastclose::parse(body).map(Self::Fastclose),
            subtype::MP_TCPRST => MpTcpRst::parse(body).map(Self::TcpRst),
            subtype::MP_EXPERIMENTAL => Experimental::parse(body).map(Self::Experimental),
            _ => return Err(Unread::UnknownSubtype),
        };
        option.ok_or(Unread::Malformed)
    }

    /// Appends the option, without padding.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Capable(option) => option.emit(out),
            Self::Join(option) => option.emit(out),
            Self::Dss(option) => option.emit(out),
            Self::AddAddr(option) => option.emit(out),
            Self::RemoveAddr(option) => option.emit(out),
            Self::Prio(option) => option.emit(out),
            Self::Fail(option) => option.emit(out),
            Self::Fastclose(option) => option.emit(out),
            Self::TcpRst(option) => option.emit(out),
            Self::Experimental(option) => option.emit(out),
        }
    }
}
