//! MP_CAPABLE (RFC 8684 section 3.1).

use super::Key;

/// MP_CAPABLE in all its handshake forms; which fields are there tells the form:
///
/// | form | `sender_key` | `receiver_key` | `data` |
/// |---|---|---|---|
/// | SYN | none | none | none |
/// | SYN/ACK | listener's | none | none |
/// | third ACK | initiator's | listener's | none |
/// | third ACK with data | initiator's | listener's | length |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpCapable {
    /// Protocol version; RFC 8684 is version 1.
    pub version: u8,
    /// The flag octet A..H.
    pub flags: CapableFlags,
    /// Key of the segment's sender.
    pub sender_key: Option<Key>,
    /// Key of the segment's receiver, echoed.
    pub receiver_key: Option<Key>,
    /// Mapping of the first data, which starts at the initial data sequence number plus one.
    pub data: Option<DataLen>,
}

/// Data-level length, and checksum if those were agreed upon, of data that travel with MP_CAPABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLen {
    /// Octets mapped.
    pub len: u16,
    /// Checksum over mapping and data.
    pub checksum: Option<u16>,
}

/// The flag octet of MP_CAPABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CapableFlags(pub u8);

impl CapableFlags {
    /// A: checksums required.
    pub const CHECKSUM_REQUIRED: Self = Self(0x80);
    /// B: extensibility; must be zero.
    pub const EXTENSIBILITY: Self = Self(0x40);
    /// C: the receiver must not join towards the sender's address of this subflow.
    pub const NO_JOIN_TO_THIS_ADDRESS: Self = Self(0x20);
    /// H: HMAC-SHA256.
    pub const HMAC_SHA256: Self = Self(0x01);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of two sets of flags.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
