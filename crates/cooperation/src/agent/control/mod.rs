//! Channels on connections of the engine: so control messages are as late as the network makes them, and their octets count.
//!
//! ```text
//! settings   how these connections behave, and who answers them
//! carried    a channel on one connection, with what waits to be said
//! caller     who opens the connection, and opens it again when it is gone
//! answerer   who waits for callers
//! keys       randomness for channels
//! ```
//!
//! What is said is state, not a stream: of two words on the same matter only the later is worth sending. So what waits behind a
//! slow peer is one word on each matter, and no more.

mod answerer;
mod caller;
mod carried;
mod keys;
mod settings;

pub(super) use answerer::Answerer;
pub(super) use caller::{Called, Caller};
pub use keys::Seeds;
pub use settings::{AnswererSettings, ControlSettings};

/// What control connections did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlStats {
    /// Octets of channels that were handed to connections.
    pub sent_bytes: u64,
    /// Octets of channels that connections gave.
    pub received_bytes: u64,
    /// Channels whose peers have proven who they are.
    pub opened: u64,
    /// Channels closed because of octets that were not their peers'.
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
