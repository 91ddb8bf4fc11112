//! What runs beside other programs on a device with several uplinks.
//!
//! ```text
//! calendar     days, as relays tell of them
//! join         several uplinks of this device used as one, by whoever uses the proxy
//! kernel_mode  the same for programs that use the kernel's own Multipath TCP
//! links        the destination's ends of links to relays, which are uplinks as others
//! control      how a running daemon is asked and told things
//! discovery    relays tell the networks around that they are there, and are found
//! doctor       what keeps uplinks from being used as one, and what to change
//! names        names over uplinks, where this device's name servers are silent
//! pairing      two devices get to know each other by a short code
//! proxy        SOCKS5 and HTTP on the loopback: every client's connection becomes one of the engine's
//! relay        lends this device's own link to others that are paired with it
//! scoped       addresses that may need an interface beside them
//! sockets      what links and pairings listen on
//! store        what a device remembers: who it is, and with which devices it is paired
//! ```

mod calendar;
pub mod control;
pub mod discovery;
pub mod doctor;
#[cfg(test)]
mod heard;
pub mod join;
pub mod kernel_mode;
pub mod links;
mod names;
pub mod pairing;
pub mod proxy;
pub mod relay;
pub mod scoped;
mod sockets;
pub mod store;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What several threads share; whoever panicked with it held has left it whole.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
