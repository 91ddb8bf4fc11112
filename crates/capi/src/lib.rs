//! C ABI of the engine: test rigs and simulators written in other languages drive an endpoint through it.
//!
//! The endpoint is sans-IO here as well: the caller feeds IP packets and the time, takes packets and the next wake-up
//! out, and sees what happened as events. Nothing blocks, nothing runs in the background.
//!
//! Rules that hold for every function:
//!
//! - It returns an [`AnabranchStatus`]: zero when done, positive when there is nothing now, negative on error;
//!   [`anabranch_last_error`] then says what and why, per thread.
//! - A null pointer is an error, never a crash. Any other pointer must be valid, as always in C.
//! - No panic crosses the boundary: it becomes [`AnabranchStatus::Internal`], and the endpoint refuses further work.
//! - Time only moves forward: a `now_ns` before an earlier one is refused, and nothing happens.
//! - One endpoint is used by one thread at a time; different endpoints are independent.
//! - After feeding it or giving a command: [`anabranch_poll_transmit`] and [`anabranch_poll_event`] until they have
//!   nothing, then [`anabranch_poll_timeout`].

mod address;
mod application;
mod config;
mod connection;
mod endpoint;
mod event;
mod handles;
mod packet;
mod stats;
mod status;
mod subflow;

pub use address::{AnabranchAddress, anabranch_address_parse};
pub use application::*;
pub use connection::*;
pub use endpoint::*;
pub use event::{AnabranchCloseReason, AnabranchEvent, AnabranchEventKind, anabranch_poll_event};
pub use packet::{anabranch_handle_packet, anabranch_poll_transmit};
pub use stats::{anabranch_stats_json, anabranch_string_free};
pub use status::{AnabranchStatus, anabranch_last_error};
pub use subflow::*;

/// Version of this interface; grows with every incompatible change.
pub const ANABRANCH_ABI_VERSION: u32 = 1;

/// The version of the interface that the library was built with: compare it with `ANABRANCH_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_abi_version() -> u32 {
    ANABRANCH_ABI_VERSION
}
