//! The controllers that this network namespace has, and the one that it uses.

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

/// Returns the names of the kernel's controllers, including its own.
///
/// # Errors
/// If the setting cannot be read.
pub fn available() -> Result<Vec<String>> {
    Ok(read("tcp_available_congestion_control")?.split_whitespace().map(str::to_owned).collect())
}

/// Returns the controller of new connections in this network namespace.
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
        // Even root may use only the controllers that the machine allows for all namespaces.
        Some(Errno::PERM) => Error::NotAllowed { name: name.into() },
        _ => Error::Setting { path: format!("{path} = {name}"), error },
    })
}
