//! The link between a relay and a destination over a network that they share with others: sealed UDP datagrams that
//! carry IP packets and control messages. `docs/link.md` defines the octets.
//!
//! ```text
//! datagram       the outer format: kinds, session numbers, counters
//! admission      which first datagrams are worth the arithmetic of a handshake
//! call_time      by which old calls are told from new ones
//! replay_window  accepts each datagram once, in any order
//! session        sealing and opening
//! unconfirmed    sessions that wait for the destination's first word
//! word           control messages between the ends
//! caller         the destination's end
//! answerer       the relay's end, with all its destinations
//! pairing        how two devices exchange keys: a person reads a short code on one and types it into the other
//! name           the name that a person gives a device
//! ```
//!
//! The link leaves loss, order and duplicates to others: packets carry their own TCP, and only the latest word of a
//! kind counts, so words are simply sent again. An end drops a datagram that is not the peer's; such a datagram changes
//! nothing.

mod admission;
mod answerer;
mod call_time;
mod caller;
mod datagram;
mod name;
pub mod pairing;
mod replay_window;
mod session;
mod unconfirmed;
mod word;

pub use answerer::{Answerer, Caught};
pub use caller::{Caller, Heard};
pub use datagram::OVERHEAD_BYTES;
pub use name::{Name, NoName};
pub use word::{Alive, Families, Lends, Renewal, Terms};

use units::Duration;

/// Version of datagrams and words; the handshake authenticates it.
pub const LINK_VERSION: u8 = 3;
/// The UDP port on which relays listen; pairing uses the TCP port of the same number.
pub const PORT: u16 = 8684;
/// Largest IP packet that a link carries, octets: sealed, over IPv6, it fits a path MTU of 1500.
pub const INNER_MTU: u16 = 1420;
/// Largest datagram, octets.
pub const DATAGRAM_BYTES_MAX: usize = INNER_MTU as usize + OVERHEAD_BYTES;

/// Interval at which the destination sends `Alive`; the relay answers each one.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// An end that has not heard the other for this long treats the link as down.
pub const SILENCE_MAX: Duration = Duration::from_millis(3500);
