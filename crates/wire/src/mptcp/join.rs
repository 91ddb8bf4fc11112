//! MP_JOIN (RFC 8684 section 3.2).

use super::{AddressId, Token};

/// MP_JOIN in its three forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpJoin {
    /// On the SYN (figure 6).
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
    /// On the SYN/ACK (figure 7).
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
    /// On the third ACK (figure 8).
    Ack {
        /// The leftmost 160 bits of the sender's HMAC.
        hmac: [u8; 20],
    },
}
