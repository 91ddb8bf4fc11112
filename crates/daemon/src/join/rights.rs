//! What the process gives up once it is set up.

use caps::CapSet;
use linux::{Error, Result};

/// Gives up all capabilities, for the calling thread and those it starts from now on: the device is open, and the janitor, which does
/// what else needs them, is a process of its own.
///
/// # Errors
/// If the kernel does not let it.
pub fn give_up() -> Result<()> {
    for set in [CapSet::Ambient, CapSet::Effective, CapSet::Inheritable, CapSet::Permitted] {
        caps::clear(None, set).map_err(|error| Error::Usage(format!("cannot give up capabilities: {error}")))?;
    }
    Ok(())
}
