//! Which controllers this network namespace has, and which it uses.

use std::fs;

use rustix::io::Errno;

use crate::{Error, Result};

const FOLDER: &str = "/proc/sys/net/ipv4";

fn path(variable: &str) -> String {
    format!("{FOLDER}/{variable}")
}

fn read(variable: &str) -> Result<String> {
    let path = path(variable);
    fs::read_to_string(&path).map_err(|error| Error::Setting { path, error })
}

/// What the kernel has by name, its own among them.
///
/// # Errors
/// If the setting cannot be read.
pub fn available() -> Result<Vec<String>> {
    Ok(read("tcp_available_congestion_control")?.split_whitespace().map(str::to_owned).collect())
}

/// What new connections of this network namespace use.
///
/// # Errors
/// If the setting cannot be read.
pub fn default() -> Result<String> {
    Ok(read("tcp_congestion_control")?.trim().to_owned())
}

/// Makes new connections of this network namespace use the controller that the kernel knows by `name`.
///
/// # Errors
/// If the kernel has none of that name, or the setting cannot be written.
pub fn set_default(name: &str) -> Result<()> {
    let path = path("tcp_congestion_control");
    fs::write(&path, name).map_err(|error| match Errno::from_io_error(&error) {
        // As root: a namespace may have what the machine allows all of them.
        Some(Errno::PERM) => Error::NotAllowed { name: name.into() },
        _ => Error::Setting { path: format!("{path} = {name}"), error },
    })
}
