//! The channel between a relay and the destination: frames over a reliable, in-order stream of octets.
//!
//! In a simulation the stream is a TCP connection of the engine, on Linux any TCP connection under
//! [`authenticated`]. One channel serves one relay and one connection. The layout of every frame is in
//! `docs/algorithms/differentiated-forwarding.md`.
//!
//! ```text
//! to_destination   what a relay says: frames, and the kinds that mark them
//! to_relay         what the destination says
//! codec            frames <-> octets: encoder and decoder, cut anywhere
//! field            numbers, addresses and flags <-> octets
//! scratch          memory for heads
//! fault            why octets are not a frame
//! authenticated    octets that only who knows the secret can have sent, each once and in order
//! ```
//!
//! Data pass through without being copied: a data frame is a head of 12 octets and the payload itself, and a decoder
//! hands on the pieces of a payload as they come. What a peer can make a decoder remember is the start of one frame that
//! carries no data, [`codec::CONTROL_BYTES_MAX`] octets.

pub mod authenticated;
pub mod codec;
mod fault;
mod field;
mod scratch;
pub mod to_destination;
pub mod to_relay;

pub use codec::{Decoder, Encoder};
pub use fault::{ChannelError, Fault};

/// The version of the frames, in the first octet of each.
pub const VERSION: u8 = 1;

/// A subflow, by the number that its relay gave it when the source opened it, or the destination when it asked the relay
/// to open it. Each counts its own; [`Self::DESTINATIONS`] tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowNr(pub u16);

impl SubflowNr {
    /// Set in the numbers that the destination gives.
    pub const DESTINATIONS: u16 = 0x8000;
}
