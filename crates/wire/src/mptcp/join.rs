//! MP_JOIN (RFC 8684 section 3.2).

use super::{AddressId, Token, begin, subtype};
use crate::octets::Reader;

/// MP_JOIN in its three forms, which differ in the length of the option. The receiver judges whether a form belongs on
/// the segment that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpJoin {
    /// On the SYN (figure 5).
    Syn {
        /// B: use this subflow only if no regular one works.
        backup: bool,
        /// Identifier of the sender's address.
        address_id: AddressId,
        /// The receiver's token: which connection to join.
        token: Token,
        /// The sender's random number.
        nonce: u32,
    },
    /// On the SYN/ACK (figure 6).
    SynAck {
        /// B: use this subflow only if no regular one works.
        backup: bool,
        /// Identifier of the sender's address.
        address_id: AddressId,
        /// The leftmost 64 bits of the sender's HMAC.
        hmac: u64,
        /// The sender's random number.
        nonce: u32,
    },
    /// On the third ACK (figure 7).
    Ack {
        /// The leftmost 160 bits of the sender's HMAC.
        hmac: [u8; 20],
    },
}

const BACKUP: u8 = 0x1;
const SYN_BYTES: usize = 12;
const SYN_ACK_BYTES: usize = 16;
const ACK_BYTES: usize = 24;
const KIND_AND_LENGTH_BYTES: usize = 2;

impl MpJoin {
    /// Octets of figures 5, 6 and 7.
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Syn { .. } => SYN_BYTES,
            Self::SynAck { .. } => SYN_ACK_BYTES,
            Self::Ack { .. } => ACK_BYTES,
        }
    }

    /// Reads figure 5, 6 or 7 from its subtype octet on.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let len = body.len() + KIND_AND_LENGTH_BYTES;
        let mut body = Reader::new(body);
        let backup = body.u8()? & BACKUP != 0;
        let address_id = AddressId(body.u8()?);
        let join = match len {
            SYN_BYTES => Self::Syn { backup, address_id, token: Token(body.u32()?), nonce: body.u32()? },
            SYN_ACK_BYTES => Self::SynAck { backup, address_id, hmac: body.u64()?, nonce: body.u32()? },
            // Figure 7 has reserved bits in place of flag and identifier.
            ACK_BYTES => Self::Ack { hmac: body.array()? },
            _ => return None,
        };
        body.finish(join)
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let mut head = |backup: bool, address_id: AddressId| {
            begin(subtype::MP_JOIN, if backup { BACKUP } else { 0 }, self.len(), out);
            out.push(address_id.0);
        };
        match *self {
            Self::Syn { backup, address_id, token, nonce } => {
                head(backup, address_id);
                out.extend_from_slice(&token.0.to_be_bytes());
                out.extend_from_slice(&nonce.to_be_bytes());
            }
            Self::SynAck { backup, address_id, hmac, nonce } => {
                head(backup, address_id);
                out.extend_from_slice(&hmac.to_be_bytes());
                out.extend_from_slice(&nonce.to_be_bytes());
            }
            Self::Ack { hmac } => {
                head(false, AddressId(0));
                out.extend_from_slice(&hmac);
            }
        }
    }
}
