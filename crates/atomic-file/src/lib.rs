//! Files that are either complete or absent, however the writing process ends.
//!
//! ```no_run
//! use std::io::Write as _;
//!
//! let mut file = atomic_file::AtomicFile::create("results.json".as_ref())?;
//! file.write_all(b"{}")?;
//! file.commit()?; // Before this line there is no such file, or still the old one.
//! # Ok::<(), std::io::Error>(())
//! ```

mod error;
mod standing;

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use tempfile::NamedTempFile;

pub use error::{Error, Named, Result, is_misplaced};
pub use standing::Standing;

const PRIVATE_MODE: u32 = 0o600;
const BUFFER_BYTES: usize = 1 << 16;
/// Directory through which a file without a name is linked. A bare chroot lacks it.
const DESCRIPTORS: &str = "/proc/self/fd";
const NO_FOLDER: &str = "is not a folder";

/// A file that is being written. It has no name until [`Self::commit`] (`O_TMPFILE`). A process that ends earlier, in
/// whatever way, leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    writer: BufWriter<Backing>,
    path: PathBuf,
    named: Named,
}

#[derive(Debug)]
enum Backing {
    /// A file without a name: the kernel frees it when it is closed.
    Nameless(File),
    /// A file with a temporary name, for file systems without nameless files and hosts without `/proc`. Only dropping
    /// removes it.
    Named(NamedTempFile),
}

impl AtomicFile {
    /// Starts a file that will stand at `path`. If there is a file at `path` already, the new one gets its mode and,
    /// where the process may set it, its owner from the start.
    ///
    /// # Errors
    /// If `path` is a folder or [special](is_special), or if its folder does not exist or cannot be written to.
    pub fn create(path: &Path) -> Result<Self> {
        Self::create_as(path, Named::File, Backing::open)
    }

    /// Does the same as [`Self::create`], and creates the folders above `path`.
    ///
    /// # Errors
    /// If `path` is a folder or [special](is_special), or if a folder cannot be created or written to.
    pub fn create_with_folders(path: &Path) -> Result<Self> {
        make_folder(folder_of(path))?;
        Self::create_as(path, Named::Folder, Backing::open)
    }

    /// Returns the path at which the file will stand.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn create_as(path: &Path, named: Named, open: fn(&Path, u32) -> io::Result<Backing>) -> Result<Self> {
        check_place(path)?;
        let standing = Standing::at(path);
        let backing = open(folder_of(path), standing.mode_at_first()).map_err(Error::of(path, named))?;
        standing.pass_to(backing.file());
        Ok(Self { writer: BufWriter::with_capacity(BUFFER_BYTES, backing), path: path.into(), named })
    }

    /// Puts the complete file in place and replaces a file that is there. The content is on the disk before the name,
    /// and the name is when this returns, where the file system can sync a folder.
    ///
    /// # Errors
    /// If the disk is full or the folder has changed: nothing is left behind in that case. If the disk fails at the end,
    /// the file stands, but may be gone after a power failure.
    pub fn commit(self) -> Result<()> {
        let Self { writer, path, named } = self;
        let backing = writer.into_inner().map_err(io::IntoInnerError::into_error);
        backing.and_then(|backing| backing.place(&path)).map_err(Error::of(&path, named))
    }
}

impl Backing {
    fn open(folder: &Path, mode: u32) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::from_raw_mode(mode)) {
            Ok(file) if Path::new(DESCRIPTORS).exists() => Ok(Self::Nameless(file.into())),
            Ok(_) => Self::open_named(folder, mode),
            // The error that means "no nameless files here" differs between file systems.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Self::open_named(folder, mode),
            Err(errno) => Self::open_named(folder, mode).map_err(|_| errno.into()),
        }
    }

    fn open_named(folder: &Path, mode: u32) -> io::Result<Self> {
        let open = |path: &Path| File::options().read(true).write(true).create_new(true).mode(mode).open(path);
        builder().make_in(folder, open).map(Self::Named)
    }

    fn file(&self) -> &File {
        match self {
            Self::Nameless(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    fn keep_private(&self) -> io::Result<()> {
        self.file().set_permissions(Permissions::from_mode(PRIVATE_MODE))
    }

    fn place(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Named(file) => {
                file.as_file().sync_data()?;
                file.persist(path)?;
            }
            Self::Nameless(file) => {
                file.sync_data()?;
                give_name(&file, path)?;
            }
        }
        keep_name(folder_of(path))
    }
}

/// Links `file` at `path` if the path is free; otherwise links it beside `path` and renames it, because only a rename
/// replaces a file in one step.
fn give_name(file: &File, path: &Path) -> io::Result<()> {
    let own = format!("{DESCRIPTORS}/{}", file.as_fd().as_raw_fd());
    let link = |to: &Path| rustix::fs::linkat(CWD, &own, CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link(path) {
        Err(Errno::EXIST) => {
            let beside = builder().make_in(folder_of(path), |beside| Ok(link(beside)?))?;
            Ok(beside.persist(path)?)
        }
        done => Ok(done?),
    }
}

/// Brings the name of the file at `path` to the disk, or that it is gone, where the file system can sync a folder.
///
/// # Errors
/// If the disk fails, or the folder is gone.
pub fn sync_name(path: &Path) -> io::Result<()> {
    keep_name(folder_of(path))
}

/// Brings the names in `folder` to the disk. Otherwise a power failure some seconds later brings the old file back.
fn keep_name(folder: &Path) -> io::Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    // Other errors mean that the folder may be written to but not read, or that its file system or a sandbox does not
    // let it be synced: nothing more can be done.
    let is_lost = |errno| matches!(errno, Errno::IO | Errno::NOSPC | Errno::DQUOT | Errno::NOENT);
    synced.or_else(|error| if Errno::from_io_error(&error).is_none_or(is_lost) { Err(error) } else { Ok(()) })
}

/// Creates `folder` and the folders above it.
fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| {
        // The kernel says of a file there that it exists, which the user may well know.
        let is_file = error.kind() == io::ErrorKind::AlreadyExists;
        let source = if is_file { io::Error::new(io::ErrorKind::NotADirectory, NO_FOLDER) } else { error };
        Error::of(folder, Named::Folder)(source)
    })
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".anabranch-");
    builder
}

impl Write for Backing {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Nameless(file) => file.write(octets),
            Self::Named(file) => file.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.writer.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Returns whether `path`, or the target of a link there, is written to instead of replaced: a device, a pipe or a
/// socket.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
    })
}

/// Checks that a file may stand at `path`.
///
/// # Errors
/// If `path` is a folder or [special](is_special).
pub fn check_place(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Error::at(path)(io::Error::new(io::ErrorKind::IsADirectory, "is a folder")));
    }
    if is_special(path) {
        let what = "is a device, a pipe or a socket, which is never replaced by a file";
        return Err(Error::at(path)(io::Error::new(io::ErrorKind::AlreadyExists, what)));
    }
    Ok(())
}

/// Writes `content` to `path`, completely or not at all. Creates the folders above it.
///
/// # Errors
/// The errors of the file system.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create_with_folders(path)?;
    file.write_all(content).map_err(Error::of(path, Named::Folder))?;
    file.commit()
}

/// Does the same as [`write()`], but only the owner may read the file.
///
/// # Errors
/// The errors of the file system.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create_with_folders(path)?;
    // The permissions are set before there is anything to read.
    file.writer
        .get_ref()
        .keep_private()
        .and_then(|()| file.write_all(content))
        .map_err(Error::of(path, Named::Folder))?;
    file.commit()
}

/// Checks that files can be written to `folder`, by trying and without leaving a trace. For work that takes long before
/// it has anything to write.
///
/// # Errors
/// If `folder`, or the lowest existing folder above it, is no folder or cannot be written to.
pub fn rehearse(folder: &Path) -> Result<()> {
    if let Some(error) = fs::symlink_metadata(folder).err().filter(error::is_too_long) {
        return Err(Error::of(folder, Named::Folder)(error));
    }
    let there = folder.ancestors().find(|path| path.as_os_str().is_empty() || path.exists());
    let there = there.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !there.is_dir() {
        let problem = if there == folder { NO_FOLDER.into() } else { format!("{} {NO_FOLDER}", there.display()) };
        return Err(Error::of(folder, Named::Folder)(io::Error::new(io::ErrorKind::NotADirectory, problem)));
    }
    Backing::open(there, PRIVATE_MODE).map(drop).map_err(Error::of(folder, Named::Folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, chown, symlink};
    use std::os::unix::net::UnixListener;

    use rustix::fs::inotify::{self, ReadFlags, WatchFlags};

    use super::*;

    /// Both kinds of file, whichever the file system of the test supports.
    const KINDS: [fn(&Path, u32) -> io::Result<Backing>; 2] = [Backing::open, Backing::open_named];

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_appears_whole_and_leaves_nothing_beside_it() {
        for open in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out");
            for content in ["first", "second"] {
                let mut file = AtomicFile::create_as(&path, Named::File, open).unwrap();
                file.write_all(content.as_bytes()).unwrap();
                assert_ne!(fs::read_to_string(&path).unwrap_or_default(), content);
                file.commit().unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), content);
                assert_eq!(names(folder.path()), ["out"]);
            }
        }
    }

    /// What happens in `folder` while `work` runs, in order: names appear, and the folder itself is opened.
    fn seen(folder: &Path, work: impl FnOnce()) -> Vec<ReadFlags> {
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        let wanted = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::OPEN;
        inotify::add_watch(&watch, folder, wanted).unwrap();
        work();
        let mut room = [core::mem::MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(watch, &mut room);
        core::iter::from_fn(|| events.next().ok().map(|event| event.events())).collect()
    }

    /// Whether the disk then keeps the name cannot be seen here.
    #[test]
    fn the_folder_is_opened_to_be_synced_once_the_file_has_its_name() {
        for open in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out");
            for _ in ["new", "replaced"] {
                let file = AtomicFile::create_as(&path, Named::File, open).unwrap();
                let seen = seen(folder.path(), || file.commit().unwrap());
                let named = seen.iter().rposition(|it| it.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO));
                let opened = seen.iter().rposition(|it| it.contains(ReadFlags::OPEN | ReadFlags::ISDIR));
                assert!(named.is_some() && named < opened, "{seen:?}");
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_synced_is_no_error_and_a_missing_one_is() {
        let folder = tempfile::tempdir().unwrap();
        keep_name(folder.path()).unwrap();
        // A file system of the kernel's own, without disk and sync.
        keep_name(Path::new("/proc/self")).unwrap();
        assert_eq!(keep_name(&folder.path().join("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_given_up_leaves_nothing() {
        for open in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let mut file = AtomicFile::create_as(&folder.path().join("out"), Named::File, open).unwrap();
            file.write_all(b"half").unwrap();
            file.flush().unwrap();
            drop(file);
            assert!(names(folder.path()).is_empty());
        }
    }

    #[test]
    fn what_is_no_regular_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [socket, link] = ["socket", "link"].map(|name| folder.path().join(name));
        let _socket = UnixListener::bind(&socket).unwrap();
        symlink(&socket, &link).unwrap();
        for path in [&socket, &link, &"/dev/null".into()] {
            assert!(AtomicFile::create(path).unwrap_err().to_string().contains("name a regular file"));
        }
        assert!(socket.exists() && link.is_symlink());
    }

    #[test]
    fn a_file_gets_the_permissions_of_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        fs::write(folder.path().join("plain"), b"").unwrap();
        for open in KINDS {
            AtomicFile::create_as(&folder.path().join("out"), Named::File, open).unwrap().commit().unwrap();
            assert_eq!(mode("out"), mode("plain"));
        }
    }

    #[test]
    fn a_file_that_is_replaced_passes_its_mode_and_owner_on_before_there_is_content() {
        const NOBODY: u32 = 65534;
        for (open, mode) in KINDS.into_iter().zip([0o600, 0o751]) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out");
            fs::write(&path, b"old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            // Only root may change the owner.
            let owner =
                chown(&path, Some(NOBODY), Some(NOBODY)).map_or(fs::metadata(&path).unwrap().uid(), |()| NOBODY);
            let is_as_before = |found: fs::Metadata| (found.mode() & 0o7777, found.uid()) == (mode, owner);
            let file = AtomicFile::create_as(&path, Named::File, open).unwrap();
            assert!(is_as_before(file.writer.get_ref().file().metadata().unwrap()));
            file.commit().unwrap();
            assert!(is_as_before(fs::metadata(&path).unwrap()));
            assert_eq!(fs::read(&path).unwrap(), b"");
        }
    }

    #[test]
    fn what_is_private_stays_so_when_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for content in ["first", "second"] {
            write_private(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_stays() {
        for open in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let (target, link) = (folder.path().join("target"), folder.path().join("link"));
            fs::write(&target, b"old").unwrap();
            symlink(&target, &link).unwrap();
            AtomicFile::create_as(&link, Named::File, open).unwrap().commit().unwrap();
            assert!(link.symlink_metadata().unwrap().is_file());
            assert_eq!(fs::read(&target).unwrap(), b"old");
        }
    }

    #[test]
    fn folders_above_are_made_where_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/results.json");
        assert!(AtomicFile::create(&path).is_err());
        assert!(names(folder.path()).is_empty());
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(path.parent().unwrap()), ["results.json"]);
    }

    #[test]
    fn folders_are_refused() {
        let error = AtomicFile::create(Path::new("/")).unwrap_err();
        assert_eq!(error.to_string(), "cannot write /: is a folder\n  help: name a file in it");
        for open in KINDS {
            let error = AtomicFile::create_as(Path::new("/nowhere/at/all"), Named::File, open).unwrap_err().to_string();
            assert!(error.starts_with("cannot write /nowhere/at/all: ") && !error.contains(".anabranch"), "{error}");
        }
    }

    #[test]
    fn who_named_a_folder_is_told_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        let of = |result: Result<()>| {
            let error = result.unwrap_err();
            assert!(error.is_misplaced(), "{error}");
            error.to_string().replace(file.to_str().unwrap(), "FILE")
        };
        let wanted = "cannot write FILE: is not a folder\n  help: name a folder, or one that does not exist yet";
        assert_eq!(of(rehearse(&file)), wanted);
        assert_eq!(of(write(&file.join("results.json"), b"")), wanted);
        assert_eq!(of(write_private(&file.join("identity"), b"")), wanted);
        assert!(of(rehearse(&file.join("deep"))).starts_with("cannot write FILE/deep: FILE is not a folder\n"));
        assert!(of(write(&file.join("deep/er"), b"")).contains("Not a directory"), "as the kernel says it");
        let wanted = "No such file or directory (os error 2)\n  help: name a folder that you may write to";
        for nowhere in [rehearse(Path::new("/proc/x")), write(Path::new("/proc/x/identity"), b"")] {
            let why = of(nowhere);
            assert!(why.starts_with("cannot write /proc/x: ") && why.contains(wanted), "{why}");
        }
    }

    #[test]
    fn a_full_disk_is_no_wrong_place() {
        let folder = tempfile::tempdir().unwrap();
        let full = Error::at(Path::new("x"))(io::ErrorKind::StorageFull.into());
        assert!(!full.is_misplaced());
        let long = "x".repeat(300);
        let unnamed = AtomicFile::create(&folder.path().join(long)).unwrap();
        assert!(unnamed.commit().unwrap_err().is_misplaced());
    }

    #[test]
    fn a_rehearsal_says_what_writing_would_say_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        rehearse(&folder.path().join("deep/er")).unwrap();
        assert!(names(folder.path()).is_empty());
        rehearse(Path::new("not-there")).unwrap();
        let blocked = folder.path().join("file");
        fs::write(&blocked, b"").unwrap();
        let text = rehearse(&blocked.join("er")).unwrap_err().to_string();
        assert!(text.starts_with(&format!("cannot write {}", blocked.display())), "{text}");
        assert!(rehearse(&blocked).is_err());
    }

    #[test]
    fn an_error_names_the_path_and_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        fs::write(&blocked, b"").unwrap();
        let error = io::Error::from(write(&blocked.join("results.json"), b"").unwrap_err());
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("cannot write {}", blocked.display())) && text.contains("help: name"),
            "{text}"
        );
    }
}
