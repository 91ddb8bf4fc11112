//! Why octets are not the peer's.

use super::fault::Fault;
use super::prefix::CHANNEL_VERSION;

/// A channel broke: the peer is not what it claims to be, or somebody touched its octets. Close it and open another, with
/// a new seed; what is told next makes up for what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The octets are not the peer's, or not its next ones.
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
    /// They are the peer's, and no frame.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Octets that the peer did not write, or not now. Close the channel and treat the peer as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// The peer's first octets are not a prefix.
    #[error("the channel starts with {octets:02x?}, not with its prefix: is this the port of another service?")]
    NoPrefix {
        /// The first octets.
        octets: [u8; 4],
    },
    /// Another version of prefix, handshake and records.
    #[error("a channel of version {version} instead of {CHANNEL_VERSION}: run the same release at both ends")]
    Version {
        /// The peer's.
        version: u8,
    },
    /// The prefix is not of the other role: perhaps our own, sent back.
    #[error("the prefix has role {role} instead of {expected}: are the roles of both ends mixed up?")]
    Role {
        /// The peer's.
        role: u8,
        /// What it should be.
        expected: u8,
    },
    /// The peer's message of the handshake fits neither our keys nor what we sent.
    #[error(
        "the handshake fails: one end has another key than the other one thinks, or octets were changed on their way; \
         compare the public keys, and pair the devices again if they differ"
    )]
    Handshake,
    /// A record of impossible length.
    #[error("record {record} announces {len} octets, of {min} to {max}: the peer is broken or not the peer")]
    Length {
        /// Its place in the channel, from 0.
        record: u64,
        /// What it announces.
        len: u16,
        /// What it should be at least.
        min: u16,
        /// What it should be at most.
        max: u16,
    },
    /// A record does not decrypt in its place.
    #[error(
        "record {record} is not the peer's next one: forged, damaged, played again or out of its turn; open another \
         channel, and do not trust the network if it happens again"
    )]
    Forged {
        /// Its place in the channel, from 0.
        record: u64,
    },
}
