//! A sans-IO Multipath TCP engine: RFC 9293 and its companions below, RFC 8684 above.
//!
//! An [`Endpoint`] is one host. It is a pure state machine: it takes segments, commands and the time, and returns
//! segments, events and the time at which it wants to be called again. It owns no clock and no socket, and derives all
//! randomness from its seed. The same code therefore runs in the simulator, inside ns-3 and on real Linux.
//!
//! ```text
//! endpoint      segments and tokens -> connections; listeners
//! connection    the MPTCP level: data sequence space, joins, fallback     + scheduler, path manager, congestion
//! tcp           the TCP level: one four-tuple, its sequence space, its loss recovery
//! ```

#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod change;
pub mod config;
pub mod congestion;
mod connection;
mod control_loop;
mod endpoint;
pub mod era;
pub mod error;
pub mod event;
mod exceptions;
mod host;
pub mod inspection;
mod label;
pub mod observation;
mod ordered_queue;
pub mod path_manager;
mod ports;
mod received;
pub mod receiver_centric;
pub mod relay;
mod routes;
pub mod scheduler;
mod sent_once;
mod small_pieces;
mod state;
pub mod stats;
mod syn_cookie;
mod tcp;

pub use change::SettingsChange;
pub use config::{ConnectionConfig, EndpointConfig};
pub use connection::SUBFLOWS_CAP;
pub use endpoint::{Endpoint, Footprint, Stray};
pub use event::Event;
pub use received::Received;
pub use stats::{ConnectionStats, Echo, Hearing, SubflowStats};

/// Identifies a connection of one endpoint; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    slot: u32,
    generation: u32,
}

/// Unique among the connections of an endpoint: a slot and how often it was used before.
impl core::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// Identifies a listener of one endpoint; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub(crate) u32);

/// Identifies a subflow of one connection, in order of creation. After 65,536 subflows the numbers start over. They
/// skip subflows that exist or that [`ConnectionStats`] still lists, so identifiers are unique within a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct SubflowId(pub u16);
