//! The control plane: messages between source, relays and destination, over reliable, in-order streams of octets.
//!
//! Data travel on subflows instead (decision 0012). A channel leads from the destination to one relay, or to the
//! source. The channel identifies the sender of each message, so nobody can speak for another. `docs/control-plane.md`
//! defines the octets.
//!
//! ```text
//! end              one end of a channel: frames to octets, and back
//! to_destination   messages of a relay: frames and their kinds
//! to_relay         messages of the destination to a relay
//! to_source        messages of the destination to the source
//! from_source      messages of the source: none yet
//! codec            frames <-> octets
//! field            numbers <-> octets
//! fault            the faults of octets that should be a frame
//! key              identities: private and public keys
//! secure           octets that only one end can have sent and only the other can read, each once and in order
//! prefix           the plain octets at the start: version and role
//! noise            the handshake with which `secure` begins
//! error            the errors of a channel
//! ```
//!
//! A peer can make an end keep no more than the start of one record, [`secure::KEPT_BYTES_MAX`] octets.

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
pub const VERSION: u8 = 5;

/// A relay's end of its channel to the destination; it answers.
pub type RelayEnd = ChannelEnd<ToDestination, ToRelay>;
/// The destination's end of a channel to a relay; it starts the handshake.
pub type DestinationEnd = ChannelEnd<ToRelay, ToDestination>;
/// The source's end of its channel to the destination; it answers.
pub type SourceEnd = ChannelEnd<FromSource, ToSource>;
/// The destination's end of the channel to the source; it starts the handshake.
pub type ToSourceEnd = ChannelEnd<ToSource, FromSource>;
