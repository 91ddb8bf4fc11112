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
//! turns        an order in which several parties take turns
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
mod turns;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The parts of this package that log events, as the log names them, and `engine` for the engine of [`join()`].
///
/// [`join()`]: join::join
pub const LOG_PARTS: [&str; 17] = [
    "daemon::discovery",
    "daemon::join",
    "daemon::join::keeper",
    "daemon::join::wanted",
    "daemon::kernel_mode",
    "daemon::kernel_mode::state",
    "daemon::links::link",
    "daemon::pairing",
    "daemon::proxy::bad_subflows",
    "daemon::relay",
    "daemon::relay::allowed",
    "daemon::relay::forwarder",
    "daemon::relay::terms",
    "daemon::relay::unheard",
    "daemon::store",
    "daemon::store::exposure",
    "engine",
];

/// Locks a mutex, and ignores poisoning: every critical section leaves the value consistent, even if its thread panics.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn the_parts_that_log_are_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let logs =
            |path: &PathBuf| fs::read_to_string(path).unwrap().lines().any(|line| line.starts_with("use tracing::"));
        let name = |path: PathBuf| {
            let inner = path.with_extension("").strip_prefix(&folder).unwrap().to_str().unwrap().replace('/', "::");
            // This one logs under the engine's name.
            if inner == "join::engine_log" { "engine".to_owned() } else { format!("daemon::{inner}") }
        };
        let mut parts: Vec<String> = sources(&folder).into_iter().filter(logs).map(name).collect();
        parts.retain(|part| part != "daemon::heard");
        parts.sort();
        assert_eq!(parts, LOG_PARTS);
    }
}
