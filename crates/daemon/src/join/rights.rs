//! Gives up the process's capabilities after setup.

use std::panic::resume_unwind;
use std::thread;

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

/// Runs `work`, which reads what strangers send, in a thread that has given up its rights as [`give_up_for_good`] does.
/// If `store` is usable only with root's rights over files, because another user owns it, the thread keeps these.
///
/// # Errors
/// If the kernel refuses.
///
/// # Panics
/// If `work` does.
pub fn run_without<T: Send>(store: &Store, work: impl FnOnce() -> T + Send) -> Result<T> {
    let checked = || {
        give_up()?;
        store.check_without_rights()?;
        store.identity().map(drop)
    };
    // Who writes there without rights would also take the files over from their owner.
    let is_usable = store.is_own() && in_a_thread(checked).is_ok();
    let kept = if is_usable { CapsHashSet::new() } else { over_files()? };
    in_a_thread(|| {
        give_up_all_but(&kept)?;
        stay_without()?;
        Ok(work())
    })
}

fn in_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns the rights over other users' files that the calling thread has.
fn over_files() -> Result<CapsHashSet> {
    let held = caps::read(None, CapSet::Permitted).map_err(refused)?;
    let wanted = [Capability::CAP_DAC_OVERRIDE, Capability::CAP_CHOWN, Capability::CAP_FOWNER];
    Ok(wanted.into_iter().filter(|right| held.contains(right)).collect())
}

fn refused(error: caps::errors::CapsError) -> Error {
    Error::Usage(format!("cannot give up capabilities: {error}"))
}

fn give_up_all_but(kept: &CapsHashSet) -> Result<()> {
    let none = CapsHashSet::new();
    for (set, kept) in
        [(CapSet::Ambient, &none), (CapSet::Effective, kept), (CapSet::Inheritable, &none), (CapSet::Permitted, kept)]
    {
        caps::set(None, set, kept).map_err(refused)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, chown};
    use std::process::Command;
    use std::thread;

    use super::*;

    /// Returns the capabilities of a program that the calling thread starts.
    fn of_a_program() -> String {
        let shown = Command::new("sed").args(["-n", "s/^CapEff:\t//p", "/proc/self/status"]).output().unwrap();
        String::from_utf8(shown.stdout).unwrap()
    }

    /// Returns the capabilities of a program that a thread starts after `prepare`.
    fn of_a_child(prepare: fn() -> Result<()>) -> String {
        let started = thread::spawn(move || {
            prepare().unwrap();
            of_a_program()
        });
        started.join().unwrap()
    }

    /// Root pairs for a daemon of another user as well.
    #[test]
    fn what_reads_strangers_has_no_rights_but_those_that_the_store_needs() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(&folder.path().join("state"));
        store.identity().unwrap();
        let pair = || {
            store.change_peers(|_| Ok(())).unwrap();
            let own = caps::read(None, CapSet::Effective).unwrap();
            (own, of_a_program())
        };
        let none = (CapsHashSet::new(), format!("{:016x}\n", 0));
        assert_eq!(run_without(&store, pair).unwrap(), none);
        if !left_out::is_root("pairing for a daemon of another user") {
            return;
        }
        const OTHER: u32 = 1000;
        let paths =
            || [folder.path().into(), store.folder().to_owned(), store.path("identity"), store.path("peers.json")];
        paths().iter().for_each(|path| chown(path, Some(OTHER), Some(OTHER)).unwrap());
        let (own, _) = run_without(&store, pair).unwrap();
        assert!(own.contains(&Capability::CAP_DAC_OVERRIDE) && own.len() <= 3, "{own:?}");
        assert!(paths().iter().all(|path| fs::metadata(path).unwrap().uid() == OTHER), "its files stay its own");
        assert!(caps::has_cap(None, CapSet::Effective, Capability::CAP_DAC_OVERRIDE).unwrap(), "the caller keeps its");
    }

    #[test]
    fn what_roots_threads_start_regains_rights_unless_forbidden() {
        let none = format!("{:016x}\n", 0);
        assert_eq!(of_a_child(give_up_for_good), none);
        if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).unwrap() {
            assert_ne!(of_a_child(give_up), none, "which the janitor's successor needs");
        } else {
            left_out::leave_out("rights that threads of root regain", "that takes CAP_SETPCAP");
        }
    }
}
