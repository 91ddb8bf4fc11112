//! The link between a relay and a destination on a network that others are on too: IP packets in sealed UDP datagrams, and what both
//! ends tell each other, in the same ones. The octets are written down in `docs/link.md`.
//!
//! ```text
//! datagram       the outer octets: kinds, numbers of sessions, counters
//! admission      which first datagrams are worth the arithmetic of a handshake
//! replay_window  each datagram once, in whatever order they come
//! session        sealing and opening
//! word           what the ends tell each other
//! caller         the destination's end
//! answerer       the relay's end, with all its destinations
//! pairing        how two devices get to know each other's keys, by a short code that a person reads off one and types into the other
//! name           what a person calls a device
//! ```
//!
//! Loss, order and repetition are the network's affair: packets carry their own TCP, and of words only the latest counts, so each is
//! simply said again. A datagram that is not the peer's is dropped, and changes nothing.

mod admission;
mod answerer;
mod caller;
mod datagram;
mod name;
pub mod pairing;
mod replay_window;
mod session;
mod word;

pub use answerer::{Answerer, Caught};
pub use caller::{Caller, Heard};
pub use datagram::OVERHEAD_BYTES;
pub use name::{Name, NoName};
pub use word::{Alive, Families, Lends, Renewal, Terms};

use units::Duration;

/// Version of datagrams and words; part of what the handshake protects.
pub const LINK_VERSION: u8 = 2;
/// The UDP port on which relays listen; pairing uses the TCP port of the same number.
pub const PORT: u16 = 8684;
/// Largest IP packet that is carried, octets: sealed, in a datagram of IPv6, it fits a path of 1500.
pub const INNER_MTU: u16 = 1420;
/// Largest datagram, octets.
pub const DATAGRAM_BYTES_MAX: usize = INNER_MTU as usize + OVERHEAD_BYTES;

/// How often the destination says that it is there; the relay answers each time.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// An end that has not heard the other for so long takes the link for down.
pub const SILENCE_MAX: Duration = Duration::from_millis(3500);
