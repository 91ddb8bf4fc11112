//! The channel between a relay and the destination: what they tell each other, over a reliable, in-order stream of octets.
//!
//! Data do not travel here but on subflows (decision 0012). One channel serves one relay and one connection; who
//! speaks is known from the channel, so that no relay can speak for another. The layout is in
//! `docs/algorithms/differentiated-forwarding.md`.
//!
//! ```text
//! end              one end: frames in, octets out, and back
//! to_destination   what a relay says: frames, and the kinds that mark them
//! to_relay         what the destination says
//! codec            frames <-> octets
//! field            numbers <-> octets
//! fault            why octets are not a frame
//! authenticated    octets that only who knows the secret can have sent, each once and in order
//! ```
//!
//! What a peer can make an end remember is the start of one record, [`authenticated::BODY_BYTES_MAX`] octets and what is
//! around them.

pub mod authenticated;
pub mod codec;
mod end;
mod fault;
mod field;
pub mod to_destination;
pub mod to_relay;

pub use authenticated::{AuthenticationError, Secret};
pub use end::{ChannelEnd, ChannelError};
pub use fault::Fault;

/// The version of the frames, in the first octet of each.
pub const VERSION: u8 = 3;

/// The end of a channel at its relay.
pub type RelayEnd = ChannelEnd<to_destination::ToDestination, to_relay::ToRelay>;
/// The end of a channel at the destination.
pub type DestinationEnd = ChannelEnd<to_relay::ToRelay, to_destination::ToDestination>;
