//! Reports and settings for the kernel during connections.

use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::clock::now;
use crate::loader::{keys, pinned};
use crate::told::check_time;
use crate::words::nanos;
use crate::{Adapting, Controller, Error, PathId, Result, Told};

/// Reports what is known of a path, valid for the time `holds`. This replaces the earlier report; an empty one removes
/// it.
///
/// # Errors
/// If the controller is not loaded or has no such connection, if competition is reported to a controller that does not
/// yield, or if the numbers make no sense.
pub fn tell(controller: &Controller, path: PathId, what: Told, holds: Duration) -> Result<()> {
    if what.competition.is_some() && !controller.shares() {
        return Err(Error::Deaf { name: controller.name });
    }
    what.check()?;
    check_time("the lifetime", holds)?;
    let connections = pinned(controller, "connections")?;
    let told = pinned(controller, "told")?;
    let refused = |error: libbpf_rs::Error| Error::Refused { name: controller.name, why: error.to_string() };
    if what.is_nothing() {
        return match told.delete(&path.key()) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(refused(error)),
            _ => Ok(()),
        };
    }
    if !has_connection(&connections, path.token) {
        return Err(Error::NoConnection { name: controller.name, token: path.token });
    }
    let value = what.octets(now().as_nanos().saturating_add(nanos(holds)));
    if let Err(error) = told.update(&path.key(), &value, MapFlags::ANY) {
        // The map may be full of reports that have expired, or on connections that have ended.
        sweep(&told, &connections);
        told.update(&path.key(), &value, MapFlags::ANY).map_err(|_| refused(error))?;
    }
    Ok(())
}

fn has_connection(connections: &MapHandle, token: u32) -> bool {
    connections.lookup(&u64::from(token).to_ne_bytes(), MapFlags::ANY).is_ok_and(|found| found.is_some())
}

/// Removes reports that have expired, and those on connections that no longer exist. The kernel cannot do so: it does
/// not know which are still wanted.
fn sweep(told: &MapHandle, connections: &MapHandle) {
    let now_ns = now().as_nanos();
    for key in keys(told) {
        let value = told.lookup(&key, MapFlags::ANY).ok().flatten();
        let holds = value.is_some_and(|value| !Told::parse(&value, now_ns).is_nothing());
        if !holds || !has_connection(connections, PathId::token_of(&key)) {
            let _ = told.delete(&key);
        }
    }
}

/// Returns what is still valid of a path's report.
pub(crate) fn told_of(told: &MapHandle, path: PathId) -> Told {
    let value = told.lookup(&path.key(), MapFlags::ANY).ok().flatten();
    value.map(|value| Told::parse(&value, now().as_nanos())).unwrap_or_default()
}

/// Sets adaptive congestion control for all connections of a controller, or ends it; windows that were cut grow again.
/// Under other settings, each connection begins a period with its next ACK.
///
/// # Errors
/// If the controller is not loaded, or the kernel does not implement the settings.
pub fn adapt(controller: &Controller, adapting: Option<&Adapting>) -> Result<()> {
    adapting.map_or(Ok(()), Adapting::check)?;
    let refused = |error: libbpf_rs::Error| Error::Refused { name: controller.name, why: error.to_string() };
    let map = pinned(controller, "adapting")?;
    let present = map.lookup(&[0; 4], MapFlags::ANY).ok().flatten();
    // Settings that are given again do not disturb the periods.
    let is_same = |value: &Vec<u8>| match adapting {
        Some(adapting) => adapting.is_written_in(value),
        None => Adapting::parse(value).is_none(),
    };
    if present.as_ref().is_some_and(is_same) {
        return Ok(());
    }
    let since_ns = now().as_nanos();
    let value = adapting.map_or(Adapting::OFF.to_vec(), |adapting| adapting.octets(since_ns));
    map.update(&[0; 4], &value, MapFlags::ANY).map_err(refused)
}

/// Returns the adaptive congestion control of a controller, if it is on.
///
/// # Errors
/// If the controller is not loaded.
pub fn adapting(controller: &Controller) -> Result<Option<Adapting>> {
    let value = pinned(controller, "adapting")?.lookup(&[0; 4], MapFlags::ANY).ok().flatten();
    Ok(value.and_then(|value| Adapting::parse(&value)))
}
