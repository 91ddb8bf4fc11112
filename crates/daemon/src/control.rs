//! How a running daemon is asked and told things: one JSON object a line, over a Unix socket of this host.
//!
//! ```text
//! message  what can be asked, and what is answered
//! place    where the socket of a daemon is
//! server   the daemon's end
//! client   the other end
//! ```

pub mod client;
pub mod message;
mod place;
pub mod server;

pub use client::{ask, clean, may_ask, running};
pub use message::{Answer, Request};
pub use place::Place;
