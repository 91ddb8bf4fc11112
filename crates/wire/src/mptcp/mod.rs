//! MPTCP options (RFC 8684 section 3): TCP option kind 30, one file per subtype.

mod add_addr;
mod capable;
mod dss;
mod fail;
mod fastclose;
mod join;
mod prio;
mod remove_addr;
mod reset;

pub use add_addr::AddAddr;
pub use capable::{CapableFlags, DataLen, MpCapable};
pub use dss::{DataSeq, Dss, Mapping};
pub use fail::MpFail;
pub use fastclose::MpFastclose;
pub use join::MpJoin;
pub use prio::MpPrio;
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
    /// Subtype 0xf: experimental (RFC 8684 section 3.10); data after the subtype nibble's octet.
    Experimental(Experimental),
}

/// An experimental option (RFC 8684 section 3.10): for private use between consenting peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Experimental {
    /// The low nibble of the subtype octet.
    pub flags: u8,
    /// What follows it, at most 37 octets.
    pub data: arrayvec::ArrayVec<u8, 37>,
}
