//! Name and groups of this host.

use cooperation::link::Name;
use daemon::store::Store;

use crate::failure::Failure;

/// Returns the name that others see: the given one, that of an earlier time, or the valid part of the host name.
pub fn name(told: Option<&Name>, store: &Store) -> Result<Name, Failure> {
    if let Some(name) = told {
        return Ok(name.clone());
    }
    if let Some(name) = store.name()? {
        return Ok(name);
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fit = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let text: String = host.trim().chars().filter(fit).skip_while(|c| !c.is_ascii_alphanumeric()).collect();
    let text: String = text.split('.').next().unwrap_or_default().chars().take(Name::BYTES_MAX).collect();
    text.parse().map_err(|_| {
        Failure::Input(format!("the host name {:?} is not a valid device name: choose one with --name", host.trim()))
    })
}

/// Keeps a given name for the next time. A failure is no reason not to go on under it now.
pub fn keep_name(told: Option<&Name>, store: &Store) {
    if let Some(Err(error)) = told.map(|name| store.keep_name(name)) {
        tracing::warn!("the name is not kept for the next time: {error}");
    }
}

/// Returns the number of a group of this host.
pub fn group(name: &str) -> Result<u32, Failure> {
    let groups = std::fs::read_to_string("/etc/group")
        .map_err(|error| Failure::Failed(format!("cannot read /etc/group: {error}")))?;
    let mut fields = groups.lines().map(|line| line.split(':'));
    let found = fields.find_map(|mut fields| (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?);
    found.ok_or_else(|| {
        Failure::Input(format!("--control-group {name}: /etc/group has no such group: create it with groupadd {name}"))
    })
}
