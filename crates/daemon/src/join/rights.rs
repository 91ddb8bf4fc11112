//! Gives up the process's capabilities after setup.

use caps::{CapSet, Capability, CapsHashSet};
use linux::{Error, Result};

use crate::store::Store;

/// Gives up all capabilities of the calling thread and of the threads that it starts from now on. The device is open by
/// then, and the janitor, a process of its own, does what still needs capabilities.
///
/// # Errors
/// If the kernel refuses.
pub fn give_up() -> Result<()> {
    give_up_all_but(&CapsHashSet::new())
}

/// As [`give_up`], and checks that the files in `store`, if given, can still be used without capabilities.
///
/// # Errors
/// As [`give_up`], or if the files cannot be used.
pub fn give_up_beside(store: Option<&Store>) -> Result<()> {
    give_up()?;
    store.map_or(Ok(()), Store::check_without_rights)
}

/// As [`give_up`], but keeps CAP_NET_ADMIN, the right to change subflows of the kernel.
///
/// # Errors
/// As [`give_up`].
pub fn keep_network() -> Result<()> {
    give_up_all_but(&CapsHashSet::from_iter([Capability::CAP_NET_ADMIN]))
}

fn give_up_all_but(kept: &CapsHashSet) -> Result<()> {
    let none = CapsHashSet::new();
    for (set, kept) in
        [(CapSet::Ambient, &none), (CapSet::Effective, kept), (CapSet::Inheritable, &none), (CapSet::Permitted, kept)]
    {
        caps::set(None, set, kept).map_err(|error| Error::Usage(format!("cannot give up capabilities: {error}")))?;
    }
    Ok(())
}
