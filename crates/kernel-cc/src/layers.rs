//! What goes to the kernel while connections last.

use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::time::{ClockId, clock_gettime};

use crate::loader::pinned;
use crate::told::{Competition, PathId, check_time};
use crate::{Controller, Error, Result};

/// The clock of `bpf_ktime_get_ns`.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let [seconds, nanos] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + nanos
}

/// Tells what the subflows of a path compete with, for so long or until it is told anew; `None` takes it back.
///
/// # Errors
/// If the controller does not yield to anybody or is not loaded, it has no such connection, or the numbers cannot be meant.
pub fn tell(controller: &Controller, path: PathId, competition: Option<Competition>, holds: Duration) -> Result<()> {
    if !controller.shares() {
        return Err(Error::Deaf { name: controller.name });
    }
    let connections = pinned(controller, "connections")?;
    let told = pinned(controller, "told")?;
    let refused = |error: libbpf_rs::Error| Error::Refused { name: controller.name, why: error.to_string() };
    let Some(competition) = competition else {
        return match told.delete(&path.key()) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(refused(error)),
            _ => Ok(()),
        };
    };
    competition.check()?;
    check_time(holds)?;
    if !has_connection(&connections, path.token) {
        return Err(Error::NoConnection { name: controller.name, token: path.token });
    }
    let nanos = u64::try_from(holds.as_nanos()).unwrap_or(u64::MAX);
    let value = competition.octets(now_ns().saturating_add(nanos));
    if let Err(error) = told.update(&path.key(), &value, MapFlags::ANY) {
        // Full of what was told of connections that have ended, perhaps.
        sweep(&told, &connections);
        told.update(&path.key(), &value, MapFlags::ANY).map_err(|_| refused(error))?;
    }
    Ok(())
}

fn has_connection(connections: &MapHandle, token: u32) -> bool {
    connections.lookup(&u64::from(token).to_ne_bytes(), MapFlags::ANY).is_ok_and(|found| found.is_some())
}

/// Removes what was told of connections that are no more. The kernel leaves it there: it cannot tell which of them are still wanted.
fn sweep(told: &MapHandle, connections: &MapHandle) {
    for key in told.keys().collect::<Vec<_>>() {
        if !has_connection(connections, PathId::token_of(&key)) {
            let _ = told.delete(&key);
        }
    }
}

/// What still holds of a path.
pub(crate) fn told_of(told: &MapHandle, path: PathId) -> Option<Competition> {
    let value = told.lookup(&path.key(), MapFlags::ANY).ok().flatten()?;
    Competition::parse(&value, now_ns())
}
