//! A build that has nothing for the kernel.

use std::time::Duration;

use crate::told::check_time;
use crate::{Competition, Connection, Controller, Counters, Error, PathId, Result};

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

/// Tells what the subflows of a path compete with.
///
/// # Errors
/// There are none.
pub fn tell(_controller: &Controller, _path: PathId, told: Option<Competition>, holds: Duration) -> Result<()> {
    told.map_or(Ok(()), |told| told.check().and_then(|()| check_time(holds)))?;
    Err(Error::NotBuilt)
}
