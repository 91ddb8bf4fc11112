//! C ABI of the engine, by which test rigs and simulators in other languages drive an endpoint.
//!
//! The endpoint is sans-IO here as well: the caller passes IP packets and the time in, takes packets and the next
//! wake-up out, and receives events. Nothing blocks, nothing runs in the background.
//!
//! Rules for every function:
//!
//! - It returns an [`AnabranchStatus`]: zero on success, positive if there is nothing now, negative on error. After an
//!   error [`anabranch_last_error`] explains it, per thread.
//! - A null pointer is an error, never a crash. Any other pointer must be valid, as always in C.
//! - No panic crosses the boundary: it becomes [`AnabranchStatus::Internal`], and the endpoint refuses further work.
//! - Time only moves forward: a `now_ns` before an earlier one is refused without effect.
//! - One endpoint is used by one thread at a time; different endpoints are independent.
//! - After passing packets or time in, or calling a command: call [`anabranch_poll_transmit`] and
//!   [`anabranch_poll_event`] until they return nothing, then [`anabranch_poll_timeout`].

mod address;
mod agent;
mod application;
mod config;
mod connection;
mod early;
mod endpoint;
mod event;
mod handles;
mod log;
mod packet;
mod stats;
mod status;
mod subflow;

pub use address::{AnabranchAddress, anabranch_address_parse};
pub use agent::*;
pub use application::*;
pub use connection::*;
pub use endpoint::*;
pub use event::{AnabranchCloseReason, AnabranchEvent, AnabranchEventKind, anabranch_poll_event};
pub use log::{AnabranchWrite, anabranch_start_log};
pub use packet::{anabranch_handle_packet, anabranch_poll_transmit};
pub use stats::{anabranch_stats_json, anabranch_string_free};
pub use status::{AnabranchStatus, anabranch_last_error};
pub use subflow::*;

/// Version of this interface. It grows with every incompatible change.
pub const ANABRANCH_ABI_VERSION: u32 = 1;

/// Returns the version of the interface that the library was built with: compare it with `ANABRANCH_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_abi_version() -> u32 {
    ANABRANCH_ABI_VERSION
}
