//! The errors of a channel.

use super::fault::Fault;
use super::prefix::CHANNEL_VERSION;

/// A broken channel: the peer is not the device that it claims to be, or somebody tampered with its octets. Close the
/// channel and open another with a new seed; later messages make up for lost ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The octets are not the peer's, or not the next ones in order.
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
    /// The octets are the peer's, but not a frame.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Octets that the peer did not write, or that come out of turn. Close the channel and treat the peer as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// The peer's first octets are not a prefix.
    #[error("the channel starts with {octets:02x?}, not with its prefix: is this the port of another service?")]
    NoPrefix {
        /// The first octets of the peer.
        octets: [u8; 4],
    },
    /// The peer has another version of prefix, handshake and records.
    #[error("a channel of version {version} instead of {CHANNEL_VERSION}: run the same release at both ends")]
    Version {
        /// The peer's version.
        version: u8,
    },
    /// The prefix names the wrong role: perhaps it is our own, sent back.
    #[error("the prefix has role {role} instead of {expected}: are the roles of both ends mixed up?")]
    Role {
        /// The role in the prefix.
        role: u8,
        /// The expected role.
        expected: u8,
    },
    /// The peer's handshake message matches neither our keys nor our own message.
    #[error(
        "the handshake failed: one end has another key than the other expects, or data were changed in transit; \
         compare the public keys, and pair the devices again if they differ"
    )]
    Handshake,
    /// A record has an impossible length.
    #[error("record {record} announces {len} octets, not {min} to {max}: the peer is broken or an impostor")]
    Length {
        /// Number of the record in its direction, from 0.
        record: u64,
        /// The announced length.
        len: u16,
        /// The minimum length.
        min: u16,
        /// The maximum length.
        max: u16,
    },
    /// A record does not decrypt at its place in the channel.
    #[error(
        "record {record} is not the peer's next one: it was forged, damaged, replayed or reordered; open another \
         channel, and do not trust the network if it happens again"
    )]
    Forged {
        /// Number of the record in its direction, from 0.
        record: u64,
    },
}
