//! The control plane: what source, relays and destination tell each other, over reliable, in-order streams of octets.
//!
//! Data do not travel here but on subflows (decision 0012). A channel leads from the destination to one relay, or to the
//! source; who speaks is known from the channel, so that nobody can speak for another. The octets are written down in
//! `docs/control-plane.md`.
//!
//! ```text
//! end              one end: frames in, octets out, and back
//! to_destination   what a relay says: frames, and the kinds that mark them
//! to_relay         what the destination says to a relay
//! to_source        what the destination says to the source
//! from_source      what the source says: nothing yet
//! codec            frames <-> octets
//! field            numbers <-> octets
//! fault            why octets are not a frame
//! key              who is who: private and public keys
//! secure           octets that only one end can have sent and only the other can read, each once and in order
//! prefix           the plain octets before: version and role
//! noise            the handshake that `secure` begins with
//! error            why octets are not the peer's
//! ```
//!
//! What a peer can make an end remember is the start of one record, [`secure::KEPT_BYTES_MAX`] octets.

pub mod codec;
mod end;
mod error;
mod fault;
pub(crate) mod field;
pub mod from_source;
mod key;
pub(crate) mod noise;
mod prefix;
pub mod secure;
pub mod to_destination;
pub mod to_relay;
pub mod to_source;

pub use end::ChannelEnd;
pub use error::{AuthenticationError, ChannelError};
pub use fault::Fault;
pub use key::{Identity, KEY_BYTES, NoKey, PublicKey};
pub use prefix::{CHANNEL_VERSION, PREFIX_BYTES, Role};

use from_source::FromSource;
use to_destination::ToDestination;
use to_relay::ToRelay;
use to_source::ToSource;

/// The version of the frames, in the first octet of each.
pub const VERSION: u8 = 4;

/// The end of a channel at its relay, which answers.
pub type RelayEnd = ChannelEnd<ToDestination, ToRelay>;
/// The end of a relay's channel at the destination, which begins.
pub type DestinationEnd = ChannelEnd<ToRelay, ToDestination>;
/// The end of a channel at the source, which answers.
pub type SourceEnd = ChannelEnd<FromSource, ToSource>;
/// The end of the source's channel at the destination, which begins.
pub type ToSourceEnd = ChannelEnd<ToSource, FromSource>;
