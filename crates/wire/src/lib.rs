//! Bytes <-> segments: IPv4, IPv6, TCP and every option of RFC 8684.
//!
//! The engine speaks in [`Segment`]s; only TUN devices, ns-3 and capture files need bytes. [`Segment::parse`] makes the
//! one from the other and [`Segment::emit`] goes back.

pub mod checksum;
mod error;
mod ip;
pub mod mptcp;
mod option;
mod payload;
mod segment;
mod tcp;

pub use error::ParseError;
pub use ip::Ecn;
pub use option::{Options, SackBlock, SackBlocks, Timestamps};
pub use payload::{Pattern, Payload};
pub use segment::Segment;
pub use tcp::Flags;
