//! What the process gives up once it is set up.

use caps::{CapSet, Capability, CapsHashSet};
use linux::{Error, Result};

use crate::store::Store;

/// Gives up all capabilities, for the calling thread and those it starts from now on: the device is open, and the janitor, which does
/// what else needs them, is a process of its own.
///
/// # Errors
/// If the kernel does not let it.
pub fn give_up() -> Result<()> {
    give_up_all_but(&CapsHashSet::new())
}

/// As [`give_up`], and sees that what is kept in `store`, if anything is, can still be used then.
///
/// # Errors
/// As [`give_up`], or if it cannot.
pub fn give_up_beside(store: Option<&Store>) -> Result<()> {
    give_up()?;
    store.map_or(Ok(()), Store::check_without_rights)
}

/// As [`give_up`], but the right to change subflows of the kernel stays: CAP_NET_ADMIN.
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
