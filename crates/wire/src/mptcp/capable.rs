//! MP_CAPABLE (RFC 8684 section 3.1).

use super::{Key, begin, subtype};
use crate::octets::Reader;

/// MP_CAPABLE in all its handshake forms (figure 4). The fields that are present determine the form:
///
/// | form | `sender_key` | `receiver_key` | `data` | octets |
/// |---|---|---|---|---|
/// | SYN | none | none | none | 4 |
/// | SYN/ACK | listener's | none | none | 12 |
/// | third ACK | initiator's | listener's | none | 20 |
/// | third ACK with data | initiator's | listener's | length | 22, with checksum 24 |
///
/// A field is sent only together with those to its left. On parsing, the length alone determines the form, whatever the
/// version: the SYN of version 0 (RFC 6824), which carries a key, reads like a SYN/ACK. The receiver judges whether
/// form, version and flags suit the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpCapable {
    /// Protocol version, four bits; RFC 8684 is version 1.
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

/// Data-level length, and checksum if agreed upon, of data that MP_CAPABLE carries.
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
    /// D to H: one bit for each algorithm.
    pub const ALGORITHMS: Self = Self(0x1f);
    /// H: HMAC-SHA256.
    pub const HMAC_SHA256: Self = Self(0x01);

    /// Returns whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of two sets of flags.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

const LEN: usize = 4;
const KEY_BYTES: usize = 8;
const DATA_LEN_BYTES: usize = 2;
const CHECKSUM_BYTES: usize = 2;

impl MpCapable {
    /// Returns the receiver's key if there is a sender's key before it, and likewise the data length.
    const fn tail(&self) -> (Option<Key>, Option<DataLen>) {
        match (self.sender_key, self.receiver_key) {
            (Some(_), Some(receiver_key)) => (Some(receiver_key), self.data),
            _ => (None, None),
        }
    }

    /// Octets of figure 4 in the form that the fields determine.
    pub(super) const fn len(&self) -> usize {
        if self.sender_key.is_none() {
            return LEN;
        }
        match self.tail() {
            (None, _) => LEN + KEY_BYTES,
            (Some(_), None) => LEN + 2 * KEY_BYTES,
            (Some(_), Some(DataLen { checksum: None, .. })) => LEN + 2 * KEY_BYTES + DATA_LEN_BYTES,
            (Some(_), Some(_)) => LEN + 2 * KEY_BYTES + DATA_LEN_BYTES + CHECKSUM_BYTES,
        }
    }

    /// Reads figure 4 from its subtype octet on.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let version = body.u8()? & 0x0f;
        let flags = CapableFlags(body.u8()?);
        let mut capable = Self { version, flags, sender_key: None, receiver_key: None, data: None };
        if body.remaining() > 0 {
            capable.sender_key = Some(Key(body.u64()?));
        }
        if body.remaining() > 0 {
            capable.receiver_key = Some(Key(body.u64()?));
        }
        if body.remaining() > 0 {
            let len = body.u16()?;
            let checksum = if body.remaining() > 0 { Some(body.u16()?) } else { None };
            capable.data = Some(DataLen { len, checksum });
        }
        body.finish(capable)
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        begin(subtype::MP_CAPABLE, self.version, self.len(), out);
        out.push(self.flags.0);
        let (receiver_key, data) = self.tail();
        for key in [self.sender_key, receiver_key].into_iter().flatten() {
            out.extend_from_slice(&key.0.to_be_bytes());
        }
        if let Some(data) = data {
            out.extend_from_slice(&data.len.to_be_bytes());
            if let Some(checksum) = data.checksum {
                out.extend_from_slice(&checksum.to_be_bytes());
            }
        }
    }
}
