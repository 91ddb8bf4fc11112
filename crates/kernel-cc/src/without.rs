//! A build that has nothing for the kernel.

use std::time::Duration;

use crate::told::check_time;
use crate::{Adapting, Connection, Controller, Counters, Error, PathId, Result, Told};

/// The clang that has compiled the programs: none.
pub const COMPILER: &str = "";

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

/// Gives the kernel a controller for a while.
///
/// # Errors
/// It cannot.
pub fn hold(_controller: &Controller, _connections_max: u32) -> Result<Hold> {
    Err(Error::NotBuilt)
}

/// A controller for a while, which nobody can have.
#[derive(Debug)]
pub enum Hold {}

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

/// Tells what there is to know of a path.
///
/// # Errors
/// There is none.
pub fn tell(_controller: &Controller, _path: PathId, what: Told, holds: Duration) -> Result<()> {
    what.check().and_then(|()| check_time("how long it holds", holds))?;
    Err(Error::NotBuilt)
}

/// Sets adaptive congestion control for all connections of a controller.
///
/// # Errors
/// There are none.
pub fn adapt(_controller: &Controller, adapting: Option<&Adapting>) -> Result<()> {
    adapting.map_or(Ok(()), Adapting::check)?;
    Err(Error::NotBuilt)
}

/// The adaptive congestion control of a controller.
///
/// # Errors
/// It has none.
pub fn adapting(_controller: &Controller) -> Result<Option<Adapting>> {
    Err(Error::NotBuilt)
}
