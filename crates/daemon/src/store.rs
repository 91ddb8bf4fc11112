//! What a device keeps on disk: its identity, and the devices it is paired with.
//!
//! ```text
//! FOLDER/identity    its private key: 64 hexadecimal digits, readable only by its owner
//! FOLDER/peers.json  the devices that it is paired with
//! FOLDER/name        the name that it was given, if any
//! FOLDER/lock        held while any of them changes
//! ```
//!
//! Files are replaced as a whole: a power failure leaves the old file or the new one.

mod changes;
mod exposure;
pub(crate) mod file;
mod peers;
mod text;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use cooperation::channel::{Identity, KEY_BYTES, PublicKey};
use cooperation::link::Name;
use linux::driver::random_seed;
use linux::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tracing::warn;

pub use changes::Changes;
pub use peers::{Destination, Peers, Relay};

/// The default folder.
pub const FOLDER: &str = "/var/lib/anabranch";

/// A store in a folder.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Returns the store in `folder`. The folder is created when there is something to store.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.into() }
    }

    /// Creates the folder if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn make(&self) -> Result<()> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|error| {
            let remedy = dangling(&self.folder).unwrap_or_else(|| remedy(&error).into());
            cannot(format!("create {}, where keys are kept{remedy}", self.folder.display()), error)
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns this device's identity; the first call creates it.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is broken.
    pub fn identity(&self) -> Result<Identity> {
        let _lock = self.lock()?;
        let path = self.path("identity");
        if let Some(text) = read(&path)? {
            let octets: PublicKey = text
                .trim()
                .parse()
                .map_err(|_| self.lost_identity(&format!("it should hold {} hexadecimal digits", 2 * KEY_BYTES)))?;
            exposure::warn_if_exposed(&path);
            return Ok(Identity::from_secret(*octets.octets()));
        }
        // Paired devices know this device by the missing key.
        if self.peers()? != Peers::default() {
            return Err(self.lost_identity("it is missing, but peers.json lists devices that know it"));
        }
        let secret = random_seed()?;
        atomic_file::write_private(&path, format!("{}\n", PublicKey::new(secret)).as_bytes())?;
        exposure::warn_if_exposed(&path);
        Ok(Identity::from_secret(secret))
    }

    fn lost_identity(&self, why: &str) -> Error {
        let (path, peers) = (self.path("identity"), self.path("peers.json"));
        Error::file(&path)(format!(
            "{why}: restore it from a backup; or remove both files (rm -f {} {}), which gives this device a new \
             identity that must be paired again",
            path.display(),
            peers.display()
        ))
    }

    /// Returns the devices that it is paired with.
    ///
    /// # Errors
    /// If the file cannot be read, or is broken.
    pub fn peers(&self) -> Result<Peers> {
        let path = self.path("peers.json");
        match read(&path)? {
            None => Ok(Peers::default()),
            Some(text) => Peers::parse(&text).map_err(|why| {
                Error::file(&path)(format!("{why}; restore it from a backup, or remove it and pair again"))
            }),
        }
    }

    /// Changes the paired devices. Waits while another process changes them.
    ///
    /// # Errors
    /// Those of [`Self::peers`] and of `change`, or if the file cannot be written.
    pub fn change_peers<T>(&self, change: impl FnOnce(&mut Peers) -> Result<T>) -> Result<T> {
        let _lock = self.lock()?;
        let mut peers = self.peers()?;
        let done = change(&mut peers)?;
        atomic_file::write_private(&self.path("peers.json"), peers.text().as_bytes())?;
        Ok(done)
    }

    /// Returns the name that this device was given, if any.
    ///
    /// # Errors
    /// If the file cannot be read, or is broken.
    pub fn name(&self) -> Result<Option<Name>> {
        let path = self.path("name");
        let parse = |text: String| text.trim().parse::<Name>();
        read(&path)?
            .map(parse)
            .transpose()
            .map_err(|why| Error::file(&path)(format!("{why}; remove it, and give this device a name with --name")))
    }

    /// Stores the name that this device was given.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep_name(&self, name: &Name) -> Result<()> {
        let _lock = self.lock()?;
        // A disk that is full takes not even the same file again.
        if !matches!(self.name(), Ok(Some(known)) if known == *name) {
            atomic_file::write_private(&self.path("name"), format!("{name}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Returns whether the folder belongs to the process's user, or does not exist yet.
    pub(crate) fn is_own(&self) -> bool {
        fs::metadata(&self.folder).map_or(true, |folder| folder.uid() == rustix::process::geteuid().as_raw())
    }

    /// Checks that the store is usable now that the process has given up its capabilities. Without them, root is a user
    /// like others.
    ///
    /// # Errors
    /// If it is not usable, with the remedy.
    pub fn check_without_rights(&self) -> Result<()> {
        self.rewrite_peers().map_err(|error| {
            let user = rustix::process::geteuid().as_raw();
            if let Some(closed) = self.closed_to_its_owner(user) {
                return Error::Usage(format!("{error}: its mode denies its owner access (chmod {closed})"));
            }
            Error::Usage(format!(
                "{error}: a daemon runs without root's special rights, so {0} and the folders above it must be \
                 accessible to user {user} without them: name another folder with --state, or run sudo chown -R \
                 {user} {0}",
                self.folder.display()
            ))
        })
    }

    /// Writes the file of the paired devices as it is. A full disk prevents only changes, and says nothing about rights.
    fn rewrite_peers(&self) -> Result<()> {
        let _lock = self.lock()?;
        match atomic_file::write_private(&self.path("peers.json"), self.peers()?.text().as_bytes()) {
            Err(error) if is_full(&error.source) => {
                let folder = self.folder.display();
                warn!("the disk of {folder} is full: until there is room, no device can be paired or removed");
                Ok(())
            }
            written => Ok(written?),
        }
    }

    /// Returns the `chmod` arguments for a path that belongs to `user` and whose mode keeps its owner out.
    fn closed_to_its_owner(&self, user: u32) -> Option<String> {
        let files = ["identity", "peers.json", "lock"].map(|name| (self.path(name), "u+rw", 0o600));
        let mut all = core::iter::once((self.folder.clone(), "u+rwx", 0o700)).chain(files);
        all.find_map(|(path, open, bits)| {
            let metadata = fs::metadata(&path).ok()?;
            let is_closed = metadata.uid() == user && metadata.permissions().mode() & bits != bits;
            is_closed.then(|| format!("{open} {}", path.display()))
        })
    }

    /// Locks the store against changes by others until the file is dropped.
    fn lock(&self) -> Result<File> {
        self.make()?;
        let path = self.path("lock");
        let file = file::open(&path, OpenOptions::new().append(true).create(true).mode(0o600));
        let file = file.map_err(|error| cannot(format!("write to {}{}", path.display(), remedy(&error)), error))?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::system(format!("lock {}", path.display()))(errno)),
            }
        }
    }
}

/// Returns the remedy if the folder, or one above it, is a symbolic link to nothing.
fn dangling(folder: &Path) -> Option<String> {
    let link = folder.ancestors().find(|path| fs::symlink_metadata(path).is_ok())?;
    let target = fs::read_link(link).ok()?;
    let is_dangling = fs::metadata(link).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let link = link.display();
    is_dangling.then(|| {
        format!(
            " ({link} is a symbolic link to {}, which does not exist: create that, or remove the link)",
            target.display()
        )
    })
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Returns the error of a store that could not do `what`: a wrong argument if nothing can ever stand in this place.
fn cannot(what: String, error: io::Error) -> Error {
    // No permission as a rule means that root is missing, not that the folder is wrong.
    match atomic_file::is_misplaced(&error) && error.kind() != ErrorKind::PermissionDenied {
        true => Error::Usage(format!("cannot {what}: {error}")),
        false => Error::system(what)(error),
    }
}

/// Returns the remedy for an error, in parentheses, if there is one.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => " (try sudo)",
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => " (name a folder with --state: this is a file)",
        ErrorKind::IsADirectory => " (a folder is in its place: move it away)",
        ErrorKind::ReadOnlyFilesystem => " (name a writable folder with --state)",
        _ if is_full(error) => " (free some space on that disk)",
        _ => "",
    }
}

/// Reads the text of a file, if there is one.
fn read(path: &Path) -> Result<Option<String>> {
    let octets =
        file::read(path).map_err(|error| cannot(format!("read {}{}", path.display(), remedy(&error)), error))?;
    // Invalid UTF-8 is reported like any other wrong content.
    Ok(octets.map(|octets| String::from_utf8_lossy(&octets).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variable with the folder of a small file system.
    const FULL: &str = "ANABRANCH_TEST_FULL";

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(&folder.path().join("deep/er"));
        (folder, store)
    }

    #[test]
    fn a_device_stays_who_it_is() {
        let (_folder, store) = store();
        let first = store.identity().unwrap().public();
        assert_eq!(store.identity().unwrap().public(), first);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(store.folder()), mode(&store.path("identity"))), (0o700, 0o600));
    }

    #[test]
    fn a_key_that_is_exposed_is_told_of_and_used() {
        let (_folder, store) = store();
        let heard = crate::heard::Heard::default();
        let _listening = heard.listen();
        store.make().unwrap();
        fs::set_permissions(store.folder(), fs::Permissions::from_mode(0o777)).unwrap();
        let key = store.identity().unwrap().public();
        assert!(heard.take().contains("chmod go-w"), "also of one that was made there just now");
        assert_eq!(store.identity().unwrap().public(), key);
        assert_eq!(heard.take(), "", "once");
    }

    #[test]
    fn broken_files_are_told_of_with_the_remedy() {
        let (_folder, store) = store();
        store.make().unwrap();
        for text in ["", "abc", &"0".repeat(63), "\u{0}"] {
            fs::write(store.path("identity"), text).unwrap();
            assert!(store.identity().unwrap_err().to_string().contains("restore it"), "{text:?}");
        }
        for text in ["", "{", "[]", r#"{"version":2}"#, r#"{"version":1,"relays":[{}]}"#] {
            fs::write(store.path("peers.json"), text).unwrap();
            let why = store.peers().unwrap_err().to_string();
            assert!(why.contains("peers.json") && why.contains("restore it"), "{why}");
        }
        fs::write(store.path("peers.json"), [0xff, 0xfe]).unwrap();
        assert!(store.peers().unwrap_err().to_string().contains("restore it"));
    }

    #[test]
    fn a_link_that_leads_to_nothing_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("state");
        std::os::unix::fs::symlink("/no/such/folder", &link).unwrap();
        for path in [link.clone(), link.join("deeper")] {
            let why = Store::at(&path).identity().unwrap_err().to_string();
            assert!(why.contains("state is a symbolic link to /no/such/folder, which does not exist"), "{why}");
        }
    }

    /// A power failure on a file system that does not keep its promises.
    #[test]
    fn a_file_that_was_cut_is_never_taken_for_another() {
        let (_folder, store) = store();
        let key = store.identity().unwrap().public();
        store.change_peers(|peers| peers.add_destination("anna".parse().unwrap(), key)).unwrap();
        let whole = ["identity", "peers.json"].map(|name| fs::read(store.path(name)).unwrap());
        // A missing final newline does no harm.
        for len in 0..whole[0].len() - 1 {
            fs::write(store.path("identity"), &whole[0][..len]).unwrap();
            assert!(store.identity().unwrap_err().to_string().contains("paired again"), "{len} octets");
        }
        fs::remove_file(store.path("identity")).unwrap();
        let said = store.identity().unwrap_err().to_string();
        assert!(said.contains("missing") && said.contains("rm -f "), "{said}");
        fs::write(store.path("identity"), &whole[0]).unwrap();
        assert_eq!(store.identity().unwrap().public(), key);
        for len in 0..whole[1].len() - 1 {
            fs::write(store.path("peers.json"), &whole[1][..len]).unwrap();
            assert!(store.peers().unwrap_err().to_string().contains("restore it"), "{len} octets");
            assert!(store.change_peers(|_| Ok(())).is_err());
            assert_eq!(fs::read(store.path("peers.json")).unwrap(), whole[1][..len], "nothing is written over it");
        }
    }

    /// Root without capabilities cannot use another user's folder, although it could create files there before.
    #[test]
    fn a_folder_of_somebody_else_is_told_of() {
        if !left_out::is_root("a folder of somebody else") {
            return;
        }
        let (folder, store) = store();
        store.identity().unwrap();
        std::os::unix::fs::chown(folder.path(), Some(1000), None).unwrap();
        std::os::unix::fs::chown(store.folder(), Some(1000), None).unwrap();
        let checked = || {
            crate::join::rights::give_up().unwrap();
            store.check_without_rights()
        };
        let why = std::thread::scope(|scope| scope.spawn(checked).join()).unwrap().unwrap_err().to_string();
        assert!(why.contains("--state") && why.contains("chown -R 0"), "{why}");
        for path in [folder.path(), store.folder()] {
            std::os::unix::fs::chown(path, Some(0), None).unwrap();
        }
        std::thread::scope(|scope| scope.spawn(checked).join()).unwrap().unwrap();
    }

    /// Root without capabilities is subject to modes, although it was not before.
    #[test]
    fn a_mode_that_keeps_its_owner_out_is_told_of() {
        let (_folder, store) = store();
        store.identity().unwrap();
        store.change_peers(|_| Ok(())).unwrap();
        let checked = || {
            crate::join::rights::give_up().unwrap();
            store.check_without_rights().unwrap_err().to_string()
        };
        for (path, open, mode) in [(store.path("peers.json"), "u+rw", 0o600), (store.folder().into(), "u+rwx", 0o700)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
            let why = std::thread::scope(|scope| scope.spawn(checked).join()).unwrap();
            let remedy = format!("chmod {open} {}", path.display());
            assert!(why.contains(&remedy) && !why.contains("chown"), "{why}");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    /// Runs in a mount namespace whose folder `FULL` is a small file system.
    #[test]
    #[ignore = "run by a_full_disk_is_told_of_and_is_no_question_of_rights"]
    fn on_a_small_disk() {
        let Some(place) = std::env::var_os(FULL) else { return };
        let (store, heard) = (Store::at(Path::new(&place)), crate::heard::Heard::default());
        let _listening = heard.listen();
        store.identity().unwrap();
        store.change_peers(|_| Ok(())).unwrap();
        store.keep_name(&"anna".parse().unwrap()).unwrap();
        let filled = fs::write(store.path("filler"), vec![0; 1 << 20]);
        assert_eq!(filled.unwrap_err().kind(), ErrorKind::StorageFull);
        heard.take();
        store.check_without_rights().unwrap();
        let said = heard.take();
        assert!(said.contains("is full") && !said.contains("chown"), "{said}");
        store.keep_name(&"anna".parse().unwrap()).unwrap();
        assert!(store.keep_name(&"bert".parse().unwrap()).is_err() && store.change_peers(|_| Ok(())).is_err());
    }

    #[test]
    fn a_full_disk_is_told_of_and_is_no_question_of_rights() {
        if !left_out::is_root("a full disk") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=64k,mode=0700 none \"$0\" && exec \"$@\""]);
        command.arg(folder.path()).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "store::tests::on_a_small_disk", "--ignored"]).env(FULL, folder.path());
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said} {done:?}");
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_is_a_wrong_argument() {
        let store = Store::at(Path::new("/dev/null"));
        let failed = [store.identity().err(), store.peers().err(), store.change_peers(|_| Ok(())).err()];
        for error in failed {
            assert!(matches!(&error, Some(Error::Usage(why)) if why.contains("--state")), "{error:?}");
        }
    }

    #[test]
    fn a_name_is_kept() {
        let (_folder, store) = store();
        assert_eq!(store.name().unwrap(), None);
        store.keep_name(&"anna".parse().unwrap()).unwrap();
        assert_eq!(store.name().unwrap(), Some("anna".parse().unwrap()));
        store.keep_name(&"bert".parse().unwrap()).unwrap();
        assert_eq!(store.name().unwrap(), Some("bert".parse().unwrap()));
        fs::write(store.path("name"), "-").unwrap();
        assert!(store.name().unwrap_err().to_string().contains("--name"));
    }

    #[test]
    fn what_is_written_is_read() {
        let (_folder, store) = store();
        assert_eq!(store.peers().unwrap(), Peers::default());
        let key = Identity::from_secret([7; 32]).public();
        store.change_peers(|peers| peers.add_destination("anna".parse().unwrap(), key)).unwrap();
        let peers = store.peers().unwrap();
        assert_eq!((peers.destinations[0].key, peers.destinations[0].slot), (key, 1));
        assert!(store.change_peers(|peers| peers.remove("bert")).is_err());
        store.change_peers(|peers| peers.remove("anna")).unwrap();
        assert_eq!(store.peers().unwrap(), Peers::default());
    }
}
