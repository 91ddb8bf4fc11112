//! Files of which a part has arrived, and whose download can be continued.
//!
//! The part is in `FILE.part`. Beside it, `FILE.part.version` says which version it is a part of: the URL, and the
//! validator and length of the version if the server gave them. This program did not leave a part without that file,
//! and does not touch it. Only the server can tell whether it still has this version (If-Range, RFC 9110 section
//! 13.1.5); if not, it sends the complete file. A file that is complete bears its version itself (completed.rs), and is
//! asked for in the same way: from its last octet on.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use atomic_file::Standing;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::completed::{self, Completed};
use crate::{Error, Result};

/// An incomplete file, which is kept when the download ends early.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    path: PathBuf,
    part: PathBuf,
    version: PathBuf,
    /// Mode and owner of the file that is replaced.
    standing: Standing,
    /// Position at which to continue: that of the last octet there, so there is always something to ask for.
    resume_at: u64,
    validator: Option<String>,
    /// Octets of the complete file in this version, if the server has announced them.
    whole_bytes: Option<u64>,
    url: String,
    /// The version of the part has a validator, so it can be asked for again, even if it belongs to another URL.
    is_named: bool,
    is_of_url: bool,
    /// The version of the complete file at `path`, if nothing has arrived of another one.
    completed: Option<Completed>,
}

/// Whether a server sends parts of files (RFC 9110 section 14), as far as its answers show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// It has not been heard, or it sends them.
    #[default]
    Expected,
    /// It has not announced that it does.
    Unannounced,
    /// It does not.
    Refused,
}

/// Explains why nothing is kept of a version without a validator.
const UNNAMED: &str = "nothing is kept for -C: the server does not identify the version of the file reliably (such as \
    by a strong ETag), so the rest could be that of another version";

impl PartialFile {
    /// Opens what an earlier download of `url` to `path` has left, or starts a new part.
    ///
    /// # Errors
    /// If the folder cannot be written to, or another download is writing; if something that is not ours has the part's
    /// name.
    pub fn open(path: &Path, url: &str) -> Result<Self> {
        if path.is_dir() {
            return Err(Error::File { path: path.into(), message: "is a folder: name a file in it".into() });
        }
        let (part, version) = (beside(path, ".part"), beside(path, ".part.version"));
        super::place::check(&part)?;
        super::place::check(&version)?;
        // Error messages name the part only if it exists.
        let known = if fs::symlink_metadata(&part).is_ok() { part.as_path() } else { path };
        let standing = Standing::at(path);
        let file = loop {
            let file = open_own(&part, standing.writable().mode_at_first()).map_err(Error::output(known))?;
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
                .map_err(|errno| unlocked(&part, errno))?;
            if is_still_at(&file, &part).map_err(Error::output(known))? {
                break file;
            }
        };
        let len = file.metadata().map_err(Error::output(&part))?.len();
        // A download that ended between making the part and writing its version has left an empty part.
        if len > 0 && fs::symlink_metadata(&version).is_err() {
            return Err(not_ours(part, &version));
        }
        // The part must be writable: continuing a download opens it again.
        standing.writable().pass_to(&file);
        let known = fs::read_to_string(&version).unwrap_or_default();
        let mut lines = known.lines();
        let is_of_url = lines.next() == Some(url);
        let named = lines.next().filter(|validator| !validator.is_empty() && len > 0);
        let (is_named, validator) = (named.is_some(), named.filter(|_| is_of_url).map(str::to_owned));
        let whole_bytes = lines.next().and_then(|len| len.parse().ok());
        let completed = if len == 0 { completed::read(path, url) } else { None };
        let (path, url, resume_at) = (path.into(), url.into(), len.saturating_sub(1));
        Ok(Self {
            file,
            path,
            part,
            version,
            standing,
            resume_at,
            validator,
            whole_bytes,
            url,
            is_named,
            is_of_url,
            completed,
        })
    }

    /// Returns the path of the part.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Returns where to continue, and the validator of the version that is there.
    pub fn resumption(&self) -> Option<(u64, String)> {
        match &self.completed {
            Some(completed) => Some((completed.bytes - 1, completed.validator.clone())),
            None => Some((self.resume_at, self.validator.clone()?)),
        }
    }

    /// Returns whether the complete file is there, as far as is known here: the server may have another version by now.
    pub fn is_complete(&self) -> bool {
        self.completed.is_some()
    }

    /// Returns the octets of the complete file in this version, if the server has announced them.
    pub fn whole_bytes(&self) -> Option<u64> {
        self.completed.as_ref().map(|completed| completed.bytes).or(self.whole_bytes)
    }

    /// Starts from the beginning. The version is written once nothing of another one is left. It marks the part as
    /// ours, so even a version without a validator is written.
    pub fn restart(&mut self, validator: Option<&str>, whole_bytes: Option<u64>) -> Result<()> {
        // A power failure must not leave octets of another version beside the name of this one.
        self.cut(0).and_then(|()| self.file.sync_data()).map_err(Error::output(&self.part))?;
        let _ = fs::remove_file(&self.version);
        self.completed = None;
        (self.is_named, self.validator) = (validator.is_some(), validator.map(str::to_owned));
        (self.is_of_url, self.whole_bytes) = (true, whole_bytes);
        self.write_version()
    }

    fn write_version(&self) -> Result<()> {
        let whole = self.whole_bytes.map_or(String::new(), |bytes| bytes.to_string());
        let version = format!("{}\n{}\n{whole}\n", self.url, self.validator.as_deref().unwrap_or_default());
        atomic_file::write(&self.version, version.as_bytes())
            .map_err(|error| Error::output(&self.version)(error.source))
    }

    /// Makes the next download begin anew, because the server has another version. Returns whether it could: a complete
    /// file may be read-only.
    pub fn drop_kept(&mut self) -> bool {
        if self.completed.is_some() {
            return completed::forget(&self.path);
        }
        // Without a validator it is not continued.
        let _ = self.restart(None, None);
        true
    }

    /// Continues with a version of `whole_bytes` octets, if known. Of a file that is complete nothing is missing: what
    /// arrives is its last octet.
    pub fn go_on(&mut self, whole_bytes: Option<u64>) -> Result<()> {
        if self.is_complete() {
            return Ok(());
        }
        if whole_bytes != self.whole_bytes {
            self.whole_bytes = whole_bytes;
            self.write_version()?;
        }
        self.cut(self.resume_at).map_err(Error::output(&self.part))
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.file.seek(SeekFrom::Start(len)).map(drop)
    }

    /// Gives the complete file its name, replacing an existing file, unless it has it. Both are on the disk when this
    /// returns, where the file system can sync a folder.
    ///
    /// # Errors
    /// If the disk is full or the folder has changed.
    pub fn commit(self) -> Result<()> {
        if self.is_complete() {
            self.remove();
            return Ok(());
        }
        // In this order: afterwards the file may be read-only, or another user's.
        if let Some(validator) = &self.validator {
            completed::note(&self.file, &self.url, validator);
        }
        self.standing.pass_to(&self.file);
        self.file.sync_data().map_err(Error::output(&self.part))?;
        fs::rename(&self.part, &self.path).map_err(Error::output(&self.path))?;
        let _ = fs::remove_file(&self.version);
        atomic_file::sync_name(&self.path).map_err(Error::output(&self.path))
    }

    /// Keeps the part if it can be continued, from a server that sends `parts`. Returns a message that says so, or why
    /// not.
    pub fn keep(self, parts: Parts) -> Option<String> {
        let len = self.file.metadata().map_or(0, |metadata| metadata.len());
        let sync = || self.file.sync_data().and_then(|()| atomic_file::sync_name(&self.part));
        if len > 0 && self.is_named && sync().is_ok() {
            let then = match parts {
                _ if !self.is_of_url => ": they are of another URL, and -C continues only with that one",
                Parts::Expected => ": -C continues from there",
                Parts::Unannounced => {
                    ": -C continues from there if the server sends parts of files, which it does not announce"
                }
                Parts::Refused => ", but the server does not send parts of files (ranges): -C begins anew",
            };
            return Some(format!("{len} bytes are kept in {}{then}", self.part.display()));
        }
        self.remove();
        (len > 0 && !self.is_named).then(|| UNNAMED.to_owned())
    }

    /// Removes the part and its version.
    fn remove(&self) {
        let _ = fs::remove_file(&self.part);
        let _ = fs::remove_file(&self.version);
    }
}

impl Write for PartialFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.is_complete() { Ok(octets.len()) } else { self.file.write(octets) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The error for a part that could not be locked.
fn unlocked(part: &Path, errno: Errno) -> Error {
    match errno {
        Errno::WOULDBLOCK => {
            Error::Unready(format!("{}: another download is writing it: wait until that ends", part.display()))
        }
        errno => Error::File {
            path: part.into(),
            message: format!("cannot be locked: {errno}: choose another folder, or leave out -C"),
        },
    }
}

/// The error for a part that no download of ours has left.
fn not_ours(part: PathBuf, version: &Path) -> Error {
    let message = format!(
        "does not come from a download (there is no {}), and -C would overwrite it: move it away, or name another \
         file with -o",
        version.display()
    );
    Error::File { path: part, message }
}

/// Opens a part without following links: in a folder that all users may write to, another user may have put one there.
fn open_own(path: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::from_raw_mode(mode))?.into())
}

/// Returns whether `file` is still at `path`: between open and lock another download may have ended and renamed it.
fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    let there = fs::symlink_metadata(path);
    Ok(there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::fs::inotify::{self, ReadFlags, WatchFlags};

    use super::*;

    const URL: &str = "http://h/x";

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("partial-file-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A download that got `octets` of a version and then stopped.
    fn interrupted(path: &Path, validator: Option<&str>, octets: &[u8]) -> Option<String> {
        let mut file = PartialFile::open(path, URL).unwrap();
        file.restart(validator, None).unwrap();
        file.write_all(octets).unwrap();
        file.keep(Parts::Expected)
    }

    #[test]
    fn a_part_is_gone_on_with() {
        let folder = folder("part");
        let path = folder.join("out");
        assert!(interrupted(&path, Some("\"v1\""), b"hel").unwrap().contains("3 bytes are kept"));
        assert!(!path.exists());
        let mut file = PartialFile::open(&path, URL).unwrap();
        assert_eq!(file.resumption(), Some((2, "\"v1\"".into())));
        file.go_on(None).unwrap();
        file.write_all(b"llo").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "hello");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_part_of_another_url_is_named_as_such() {
        let folder = folder("other-url");
        let path = folder.join("out");
        interrupted(&path, Some("\"v1\""), b"hel").unwrap();
        let other = PartialFile::open(&path, "http://h/y").unwrap().keep(Parts::Expected).unwrap();
        assert!(other.contains("3 bytes are kept") && other.contains("of another URL"), "{other}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_a_lock_is_another_download() {
        let why = |errno| unlocked(Path::new("x.part"), errno).to_string();
        assert!(why(Errno::WOULDBLOCK).contains("another download"));
        assert!(!why(Errno::NOLCK).contains("another download"), "{}", why(Errno::NOLCK));
    }

    /// Returns whether the folder is opened, to be synced, after the last change of a name in it during `work`.
    fn syncs(folder: &Path, work: impl FnOnce()) -> bool {
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        let names = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE;
        inotify::add_watch(&watch, folder, names | WatchFlags::OPEN).unwrap();
        work();
        let mut room = [core::mem::MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(watch, &mut room);
        let seen: Vec<ReadFlags> = core::iter::from_fn(|| events.next().ok().map(|event| event.events())).collect();
        let names = ReadFlags::CREATE | ReadFlags::MOVED_TO | ReadFlags::DELETE;
        let named = seen.iter().rposition(|event| event.intersects(names));
        let opened = seen.iter().rposition(|event| event.contains(ReadFlags::OPEN | ReadFlags::ISDIR));
        named < opened
    }

    /// Whether the disk then keeps the names cannot be seen here.
    #[test]
    fn the_folder_is_synced_whenever_something_is_to_last() {
        let folder = folder("synced");
        let path = folder.join("out");
        let mut file = PartialFile::open(&path, URL).unwrap();
        assert!(syncs(&folder, || file.restart(Some("\"v1\""), None).unwrap()), "the version");
        file.write_all(b"hel").unwrap();
        assert!(syncs(&folder, || drop(file.keep(Parts::Expected))), "the part");
        let file = PartialFile::open(&path, URL).unwrap();
        assert!(syncs(&folder, || file.commit().unwrap()), "the file");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_replaced_passes_its_mode_on() {
        let folder = folder("mode");
        let path = folder.join("out");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
        let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().mode() & 0o777;
        // The owner can write the part, which continuing the download needs.
        let mut file = PartialFile::open(&path, URL).unwrap();
        assert_eq!(mode("out.part"), 0o640);
        file.restart(None, None).unwrap();
        file.commit().unwrap();
        assert_eq!((mode("out"), fs::read(&path).unwrap().len()), (0o440, 0));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_gone_on_with_is_not_kept() {
        let folder = folder("useless");
        let path = folder.join("out");
        assert_eq!(interrupted(&path, None, b"hel").as_deref(), Some(UNNAMED));
        assert_eq!(interrupted(&path, None, b""), None);
        assert_eq!(interrupted(&path, Some("\"v1\""), b""), None);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_only_bears_the_name_is_refused_and_stays() {
        let folder = folder("foreign");
        let (path, part) = (folder.join("out"), folder.join("out.part"));
        fs::write(&part, "foreign").unwrap();
        let why = PartialFile::open(&path, URL).unwrap_err().to_string();
        assert!(why.starts_with(&format!("{}: does not come from a download", part.display())), "{why}");
        assert!(why.contains("move it away") && !why.contains('\n'), "{why}");
        assert_eq!(fs::read_to_string(&part).unwrap(), "foreign");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    /// As after a kill, of a version without a validator: it cannot be continued, but it is ours.
    #[test]
    fn what_a_kill_has_left_is_begun_anew() {
        let folder = folder("killed");
        let path = folder.join("out");
        let mut file = PartialFile::open(&path, URL).unwrap();
        file.restart(None, None).unwrap();
        file.write_all(b"hel").unwrap();
        drop(file);
        let file = PartialFile::open(&path, URL).unwrap();
        assert_eq!(file.resumption(), None);
        assert_eq!(file.keep(Parts::Expected).as_deref(), Some(UNNAMED));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_named_as_it_was_asked_for() {
        let why = PartialFile::open(Path::new("/no/such/folder/out"), URL).unwrap_err().to_string();
        assert!(why.starts_with("/no/such/folder/out: "), "{why}");
    }

    #[test]
    fn links_are_not_written_through() {
        let folder = folder("link");
        fs::write(folder.join("victim"), "precious").unwrap();
        let link = |name: &str| std::os::unix::fs::symlink("victim", folder.join(name)).unwrap();
        link("out.part.version");
        interrupted(&folder.join("out"), Some("\"v1\""), b"hel").unwrap();
        fs::remove_file(folder.join("out.part")).unwrap();
        link("out.part");
        assert!(PartialFile::open(&folder.join("out"), URL).is_err());
        assert_eq!(fs::read_to_string(folder.join("victim")).unwrap(), "precious");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn another_url_and_another_download_are_told_apart() {
        let folder = folder("other");
        let path = folder.join("out");
        interrupted(&path, Some("\"v1\""), b"hel");
        assert_eq!(PartialFile::open(&path, "http://h/xy").unwrap().resumption(), None);
        let first = PartialFile::open(&path, URL).unwrap();
        let refused = PartialFile::open(&path, URL);
        assert!(matches!(refused, Err(Error::Unready(why)) if why.contains("another download")), "it may work later");
        drop(first);
        // The version of a restarted part replaces the one before.
        let mut again = PartialFile::open(&path, URL).unwrap();
        again.restart(Some("\"v2\""), None).unwrap();
        drop(again);
        assert_eq!(PartialFile::open(&path, URL).unwrap().resumption(), None, "nothing is there");
        fs::remove_dir_all(folder).unwrap();
    }
}
