//! Daemons for a device with several uplinks, which run beside its other programs.
//!
//! ```text
//! calendar     dates in the messages of relays
//! join         uses several uplinks as one, for programs that use the proxy
//! kernel_mode  the same for programs that use the kernel's own Multipath TCP
//! links        the destination's ends of links to relays, which are uplinks like others
//! control      requests to a running daemon
//! discovery    relays announce themselves on local networks and are found
//! doctor       finds out what prevents uplinks from being used as one, and what to change
//! names        name look-ups over uplinks when this device's name servers are silent
//! pairing      introduces two devices to each other by a short code
//! proxy        SOCKS5 and HTTP on the loopback: every client's connection becomes one of the engine's
//! relay        lends this device's own link to paired devices
//! scoped       addresses that may need an interface beside them
//! sockets      sockets of links and pairings
//! store        a device's identity and the devices it is paired with, on disk
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

/// Locks a mutex, and ignores poisoning: every critical section leaves the value consistent, even if its thread panics.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
