//! Stands in for the loader in a build without the kernel's programs.

use std::time::Duration;

use crate::told::check_time;
use crate::{Adapting, Connection, Controller, Counters, Error, PathId, Result, Told};

/// The clang that has compiled the programs: none.
pub const COMPILER: &str = "";

/// Checks whether this build and this machine can load a controller.
///
/// # Errors
/// Always.
pub fn check() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Returns whether a controller is loaded.
pub fn is_loaded(_controller: &Controller) -> bool {
    false
}

/// Loads a controller into the kernel.
///
/// # Errors
/// Always.
pub fn load(_controller: &Controller, _connections_max: u32) -> Result<()> {
    Err(Error::NotBuilt)
}

/// Loads a controller for a limited time.
///
/// # Errors
/// Always.
pub fn hold(_controller: &Controller, _connections_max: u32) -> Result<Hold> {
    Err(Error::NotBuilt)
}

/// A controller loaded for a limited time, which does not exist in this build.
#[derive(Debug)]
pub enum Hold {}

/// Unloads a controller.
///
/// # Errors
/// Always.
pub fn unload(_controller: &Controller) -> Result<()> {
    Err(Error::NotBuilt)
}

/// Returns the connections of a controller.
///
/// # Errors
/// Always.
pub fn connections(_controller: &Controller) -> Result<Vec<Connection>> {
    Err(Error::NotBuilt)
}

/// Returns the counts of subflows so far.
///
/// # Errors
/// Always.
pub fn counters(_controller: &Controller) -> Result<Counters> {
    Err(Error::NotBuilt)
}

/// Reports what is known of a path.
///
/// # Errors
/// Always.
pub fn tell(_controller: &Controller, _path: PathId, what: Told, holds: Duration) -> Result<()> {
    what.check().and_then(|()| check_time("the lifetime", holds))?;
    Err(Error::NotBuilt)
}

/// Sets adaptive congestion control for all connections of a controller.
///
/// # Errors
/// Always.
pub fn adapt(_controller: &Controller, adapting: Option<&Adapting>) -> Result<()> {
    adapting.map_or(Ok(()), Adapting::check)?;
    Err(Error::NotBuilt)
}

/// Returns the adaptive congestion control of a controller.
///
/// # Errors
/// Always.
pub fn adapting(_controller: &Controller) -> Result<Option<Adapting>> {
    Err(Error::NotBuilt)
}
