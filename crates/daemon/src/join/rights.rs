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

/// As [`give_up`], and not even programs that these threads start regain them, as those of root otherwise do: for
/// threads that read what strangers send.
///
/// # Errors
/// As [`give_up`].
pub fn give_up_for_good() -> Result<()> {
    give_up()?;
    stay_without()
}

/// Keeps programs that the calling thread starts, or a thread that it starts from now on, from having more capabilities
/// than their thread (`no_new_privs`).
///
/// # Errors
/// If the kernel refuses.
pub fn stay_without() -> Result<()> {
    rustix::thread::set_no_new_privs(true).map_err(Error::system("forbid new privileges"))
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

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;

    /// Returns the capabilities of a program that a thread starts after `prepare`.
    fn of_a_child(prepare: fn() -> Result<()>) -> String {
        let started = thread::spawn(move || {
            prepare().unwrap();
            let shown = Command::new("sed").args(["-n", "s/^CapEff:\t//p", "/proc/self/status"]).output().unwrap();
            String::from_utf8(shown.stdout).unwrap()
        });
        started.join().unwrap()
    }

    #[test]
    fn what_roots_threads_start_regains_rights_unless_forbidden() {
        let none = format!("{:016x}\n", 0);
        assert_eq!(of_a_child(give_up_for_good), none);
        if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).unwrap() {
            assert_ne!(of_a_child(give_up), none, "which the janitor's successor needs");
        }
    }
}
