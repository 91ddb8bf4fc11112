//! Channels on connections of the engine: control messages arrive as late as the network makes them, and their octets
//! count.
//!
//! ```text
//! settings   settings of these connections and of answerers
//! carried    a channel on one connection, with the messages that wait
//! caller     the calling end: opens the connection, and reopens it when it is gone
//! answerer   the answering end
//! keys       randomness for channels
//! ```
//!
//! Messages carry state, not a stream: of two frames on the same matter, only the later one is worth sending. Therefore
//! at most one frame on each matter waits for a slow peer.

mod answerer;
#[cfg(test)]
mod answerer_tests;
mod caller;
mod carried;
mod keys;
mod settings;

pub(super) use answerer::{Answerer, Displaced, Said};
pub(super) use caller::{Called, Caller};
pub use keys::Seeds;
pub use settings::{AnswererSettings, ControlSettings};

/// Totals of control connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlStats {
    /// Octets of channels that were passed to connections.
    pub sent_bytes: u64,
    /// Octets of channels that were received from connections.
    pub received_bytes: u64,
    /// Channels whose peers have proven their identity.
    pub opened: u64,
    /// Channels closed because the octets were not the expected peer's.
    pub refused: u64,
}

impl core::ops::AddAssign for ControlStats {
    fn add_assign(&mut self, other: Self) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.opened += other.opened;
        self.refused += other.refused;
    }
}
