//! The plain octets at the start of each end's stream: magic, version, and the role of the writer.
//!
//! They are also the prologue of the handshake, so changing them on the way breaks the handshake.

use super::error::AuthenticationError;

/// The version of prefix, handshake and records. Version 1 used keyed hashes and shared secrets.
pub const CHANNEL_VERSION: u8 = 2;
/// Octets of a prefix.
pub const PREFIX_BYTES: usize = MAGIC.len() + 2;
const MAGIC: [u8; 4] = *b"ABCH";

/// The role of the writer: which end of which channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The destination, to a relay.
    DestinationToRelay = 1,
    /// A relay, to the destination.
    Relay = 2,
    /// The destination, to the source.
    DestinationToSource = 3,
    /// The source, to the destination.
    Source = 4,
}

impl Role {
    /// Returns the number of the role in a prefix.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the role of the other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::DestinationToRelay => Self::Relay,
            Self::Relay => Self::DestinationToRelay,
            Self::DestinationToSource => Self::Source,
            Self::Source => Self::DestinationToSource,
        }
    }

    /// Returns whether this end starts the handshake: the destination does, because it knows which peer it wants.
    pub const fn initiates(self) -> bool {
        matches!(self, Self::DestinationToRelay | Self::DestinationToSource)
    }

    /// Returns the prefix that this role sends.
    pub(super) const fn prefix(self) -> [u8; PREFIX_BYTES] {
        let [a, b, c, d] = MAGIC;
        [a, b, c, d, CHANNEL_VERSION, self.number()]
    }

    /// Returns the prefixes of both ends, the initiator's first.
    pub(super) fn prologue(self) -> Vec<u8> {
        let initiator = if self.initiates() { self } else { self.peer() };
        [initiator.prefix(), initiator.peer().prefix()].concat()
    }

    /// Checks that `octets` are the prefix of this role.
    pub(super) fn check(self, octets: &[u8]) -> Result<(), AuthenticationError> {
        let &[a, b, c, d, version, role] = octets else { unreachable!("a prefix has its length") };
        if [a, b, c, d] != MAGIC {
            return Err(AuthenticationError::NoPrefix { octets: [a, b, c, d] });
        }
        if version != CHANNEL_VERSION {
            return Err(AuthenticationError::Version { version });
        }
        if role != self.number() {
            return Err(AuthenticationError::Role { role, expected: self.number() });
        }
        Ok(())
    }
}
