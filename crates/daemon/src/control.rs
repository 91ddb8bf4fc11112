//! Requests to a running daemon and its answers: one JSON object per line, over a Unix socket of this host.
//!
//! ```text
//! message  requests and answers
//! place    path of a daemon's socket
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
