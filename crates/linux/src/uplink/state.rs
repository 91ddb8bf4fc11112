//! The record of changes of this host, written before any of them is made.
//!
//! For each engine with uplinks there are two files in [`FOLDER`]: `ID.undo` says how everything is undone; `ID.alive`
//! is locked by the process and by its janitor, so the kernel knows when both are gone. `ID` is the network namespace's
//! number and the engine's device. The file `lock` is held while changes are planned, made or undone.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::event::{Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{janitor, namespaces};
use crate::run_folder::{self, RUN_FOLDER as FOLDER};
use crate::stop::Stop;
use crate::{Error, Result};

/// Whoever can open a lock can hold it, and so keep every daemon from starting and ending.
const LOCK_MODE: u32 = 0o600;
/// Maximum wait for the janitor of an earlier process, or for another process's turn.
const PATIENCE_POLLS: u32 = 1500;
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The right to make changes for a device, and to undo them. Other processes wait for it while this process or its
/// janitor lives.
#[derive(Debug)]
pub(super) struct Claim {
    device: String,
    namespace: String,
    alive: File,
}

/// Excludes all other processes from planning, making or undoing changes while it exists.
#[derive(Debug)]
pub(super) struct Turn(File);

impl Claim {
    /// Waits until no other process has changes for `device`; undoes those of dead processes.
    ///
    /// # Errors
    /// If the folder cannot be written to, another process holds on, or `stop` is triggered.
    pub fn take(device: &str, stop: &Stop) -> Result<Self> {
        run_folder::make(Path::new(FOLDER)).map_err(unwritable(Path::new(FOLDER)))?;
        let namespace = namespace()?;
        for _ in 0..PATIENCE_POLLS {
            if stop.is_triggered() {
                return Err(Error::Interrupted);
            }
            match Self::attempt(device, &namespace)? {
                Some(claim) if claim.undo_file().exists() => janitor::undo(&claim)?,
                Some(claim) => return Ok(claim),
                None => pause(),
            }
        }
        Err(Error::Usage(format!(
            "another process still holds the uplinks of {device}: end it (fuser {FOLDER}/*.alive finds it)"
        )))
    }

    /// Takes the claim; `None` if another process holds it, or did so a moment ago.
    fn attempt(device: &str, namespace: &str) -> Result<Option<Self>> {
        let path = Path::new(FOLDER).join(format!("{namespace}-{device}.alive"));
        let alive = open_lock(&path).map_err(unwritable(&path))?;
        match flock(&alive, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(Error::system(format!("lock {}", path.display()))(errno)),
        }
        // The file may have been removed between the two calls, and then its lock has no effect.
        let number = |metadata: std::io::Result<fs::Metadata>| metadata.map(|it| it.ino()).ok();
        let is_there = number(alive.metadata()) == number(fs::metadata(&path));
        Ok(is_there.then(|| Self { device: device.into(), namespace: namespace.into(), alive }))
    }

    /// Returns a descriptor for a process that shall hold the claim too.
    pub fn alive(&self) -> Result<File> {
        self.alive.try_clone().map_err(Error::system("duplicate a file descriptor"))
    }

    /// Returns the arguments of the janitor: folder, namespace and device.
    pub fn names(&self) -> [&str; 3] {
        [FOLDER, &self.namespace, &self.device]
    }

    fn alive_file(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("{}-{}.alive", self.namespace, self.device))
    }

    /// The file of [`Self::write`].
    pub fn undo_file(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("{}-{}.undo", self.namespace, self.device))
    }

    /// Records how everything is undone, first line first.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, undo: &[String]) -> Result<()> {
        let text: String = undo.iter().map(|line| format!("{line}\n")).collect();
        Ok(atomic_file::write(&self.undo_file(), text.as_bytes())?)
    }
}

impl Drop for Turn {
    /// Ends the lock. Closing alone would not: a process that is just being started has the descriptor, too, until it
    /// executes its program.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl Turn {
    /// Waits for the turn.
    ///
    /// # Errors
    /// If the folder cannot be written to, or another process holds on.
    pub fn take() -> Result<Self> {
        Self::take_at(&Path::new(FOLDER).join("lock"), PATIENCE_POLLS, || false)
    }

    /// Like [`Self::take`], but waits only until `stop` is triggered.
    ///
    /// # Errors
    /// As [`Self::take`], or if `stop` is triggered.
    pub fn take_before(stop: &Stop) -> Result<Self> {
        Self::take_at(&Path::new(FOLDER).join("lock"), PATIENCE_POLLS, || stop.is_triggered())
    }

    fn take_at(path: &Path, polls: u32, is_over: impl Fn() -> bool) -> Result<Self> {
        let file = open_lock(path).map_err(unwritable(path))?;
        for _ in 0..polls {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if is_over() => return Err(Error::Interrupted),
                Err(Errno::WOULDBLOCK | Errno::INTR) => pause(),
                Err(errno) => return Err(Error::system(format!("lock {}", path.display()))(errno)),
            }
        }
        Err(Error::Usage(format!(
            "another process keeps changing uplinks of this host: find it with fuser {}",
            path.display()
        )))
    }
}

/// Returns the value of a variable before any of our programs, living or dead, changed it, if one has.
pub(super) fn original(path: &str) -> Option<String> {
    changes_of(path).into_iter().next().map(|(_, original)| original)
}

/// Returns whether one of our programs has changed a variable for another device than `device`.
pub(super) fn others_change(path: &str, device: &str) -> bool {
    changes_of(path).iter().any(|(other, _)| other != device)
}

/// Returns the devices for which a variable was changed, and the value that each restores.
fn changes_of(path: &str) -> Vec<(String, String)> {
    let Ok(namespace) = namespace() else { return Vec::new() };
    let of = |(device, file): (String, PathBuf)| {
        let text = fs::read_to_string(file).ok()?;
        let original = text.lines().find_map(|line| {
            let mut words = line.strip_prefix("sysctl ")?.split(' ');
            (words.next() == Some(path)).then(|| words.nth(1).map(str::to_owned))?
        })?;
        Some((device, original))
    };
    entries(&namespace, "undo").into_iter().filter_map(of).collect()
}

/// Undoes what processes of the calling thread's network namespace have left whose janitors are gone too. Returns their
/// devices.
///
/// # Errors
/// If the folder cannot be written to, or there is no shell.
pub(super) fn clean() -> Result<Vec<String>> {
    let namespace = namespace()?;
    let mut devices: Vec<String> =
        ["undo", "alive"].iter().flat_map(|kind| entries(&namespace, kind)).map(|(device, _)| device).collect();
    devices.sort();
    devices.dedup();
    let mut cleaned = Vec::new();
    for device in devices {
        if let Some(claim) = Claim::attempt(&device, &namespace)? {
            let left = claim.undo_file().exists();
            janitor::undo(&claim)?;
            cleaned.extend(left.then_some(device));
        }
    }
    Ok(cleaned)
}

/// Records of processes that have ended, like their janitors, in other network namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Devices in namespaces that no longer exist: their records are removed now.
    pub forgotten: usize,
    /// Devices in namespaces that exist, where their changes are still to be undone.
    pub remaining: usize,
}

/// Removes the files of processes that have ended, like their janitors, in network namespaces that no longer exist:
/// another namespace may get the same number.
///
/// # Errors
/// If a file cannot be locked.
pub(super) fn forget() -> Result<Elsewhere> {
    let own = namespace()?;
    let mut dead = Vec::new();
    for (namespace, device) in foreign(&own) {
        // A live process there holds its claim.
        dead.extend(Claim::attempt(&device, &namespace)?);
    }
    if dead.is_empty() {
        return Ok(Elsewhere::default());
    }
    let there = namespaces::all();
    let is_gone = |claim: &Claim| claim.namespace.parse().is_ok_and(|number: u64| !there.contains(&number));
    let (gone, others): (Vec<Claim>, Vec<Claim>) = dead.into_iter().partition(is_gone);
    for claim in &gone {
        let _ = fs::remove_file(claim.undo_file());
        let _ = fs::remove_file(claim.alive_file());
    }
    let remaining = others.iter().filter(|claim| claim.undo_file().exists()).count();
    Ok(Elsewhere { forgotten: gone.len(), remaining })
}

/// Returns the namespaces and devices of files outside the namespace `own`, each once.
fn foreign(own: &str) -> BTreeSet<(String, String)> {
    let files = fs::read_dir(FOLDER).into_iter().flatten().filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let id = name.strip_suffix(".undo").or_else(|| name.strip_suffix(".alive"))?;
        let (namespace, device) = id.split_once('-')?;
        (namespace != own).then(|| (namespace.to_owned(), device.to_owned()))
    });
    files.collect()
}

/// Returns the files of a kind, with their devices.
fn entries(namespace: &str, kind: &str) -> Vec<(String, PathBuf)> {
    let found = fs::read_dir(FOLDER).into_iter().flatten().filter_map(|entry| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?;
        let device = name.strip_prefix(namespace)?.strip_prefix('-')?.strip_suffix(kind)?.strip_suffix('.')?.to_owned();
        Some((device, path))
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    found
}

/// Returns the number of the calling thread's network namespace.
fn namespace() -> Result<String> {
    let own = fs::metadata("/proc/thread-self/ns/net").map_err(Error::system("read /proc/thread-self/ns/net"))?;
    Ok(own.ino().to_string())
}

/// Opens a lock that only its owner may open, and closes one to others that an earlier version has left open to them.
fn open_lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(LOCK_MODE).open(path)?;
    if file.metadata()?.mode() & 0o777 != LOCK_MODE {
        file.set_permissions(Permissions::from_mode(LOCK_MODE))?;
    }
    Ok(file)
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
    Error::system(format!("write to {}, where changes of this host are recorded (try sudo)", path.display()))
}

fn pause() {
    // An interrupted wait counts as complete.
    let _ = poll(&mut [], Some(&POLL));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_namespace_has_a_number() {
        assert!(namespace().unwrap().parse::<u64>().is_ok());
    }

    #[test]
    fn whoever_waits_for_a_turn_can_be_ended_and_does_not_wait_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Turn::take_at(&path, 1, || false).unwrap();
        assert!(matches!(Turn::take_at(&path, PATIENCE_POLLS, || true), Err(Error::Interrupted)));
        let error = Turn::take_at(&path, 2, || false).unwrap_err().to_string();
        assert!(error.ends_with(&format!("fuser {}", path.display())), "{error}");
        let _of_a_process_that_is_being_started = held.0.try_clone().unwrap();
        drop(held);
        // A free lock is taken even when time is over: the caller has something to undo.
        drop(Turn::take_at(&path, 1, || true).unwrap());
    }

    #[test]
    fn a_lock_is_open_to_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        drop(Turn::take_at(&path, 1, || false).unwrap());
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        drop(Turn::take_at(&path, 1, || false).unwrap());
        assert_eq!(mode(), 0o600, "of an earlier version");
    }

    #[test]
    fn nobody_has_changed_a_variable_that_is_not_there() {
        assert_eq!(original("ipv4/conf/no-such-device/forwarding"), None);
    }
}
