//! A build that has nothing for the kernel.

use crate::{Connection, Controller, Counters, Error, Result};

/// Whether this build and this machine could load a controller.
///
/// # Errors
/// They cannot.
pub fn check() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Whether it is loaded.
pub fn is_loaded(_controller: &Controller) -> bool {
    false
}

/// Gives the kernel a controller.
///
/// # Errors
/// It cannot.
pub fn load(_controller: &Controller, _connections_max: u32) -> Result<()> {
    Err(Error::NotBuilt)
}

/// Takes it back.
///
/// # Errors
/// It cannot.
pub fn unload(_controller: &Controller) -> Result<()> {
    Err(Error::NotBuilt)
}

/// What its connections do.
///
/// # Errors
/// It has none.
pub fn connections(_controller: &Controller) -> Result<Vec<Connection>> {
    Err(Error::NotBuilt)
}

/// What became of subflows so far.
///
/// # Errors
/// It has none.
pub fn counters(_controller: &Controller) -> Result<Counters> {
    Err(Error::NotBuilt)
}
