//! Files that are whole or absent.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tempfile::NamedTempFile;

/// What a plain file gets: the process's umask applies.
const MODE: u32 = 0o666;
const BUFFER_BYTES: usize = 1 << 16;
/// Where a file without a name gets one. A bare chroot has none of it.
const DESCRIPTORS: &str = "/proc/self/fd";
/// The remedy for nearly all reasons why a file cannot be written.
const WHERE: &str = "name a place in a directory that you may write to, on a disk with room";

/// A file that is being written. It has no name until [`Self::commit`], so a process that ends before, in whatever way,
/// leaves nothing behind.
pub struct AtomicFile {
    writer: BufWriter<Backing>,
    path: PathBuf,
}

enum Backing {
    /// Without a name: the kernel frees it when it is closed.
    Nameless(File),
    /// On file systems that know no files without a name, or without `/proc`: dropping removes it.
    Named(NamedTempFile),
}

impl AtomicFile {
    /// Starts a file that will stand at `path`; makes the directories above it.
    ///
    /// # Errors
    /// Those of the file system, with the path in the message.
    pub fn create(path: &Path) -> io::Result<Self> {
        let directory = directory_of(path);
        std::fs::create_dir_all(directory).map_err(|error| named(directory, &error))?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let backing = match rustix::fs::open(directory, flags, Mode::from_raw_mode(MODE)) {
            Ok(file) if Path::new(DESCRIPTORS).exists() => Ok(Backing::Nameless(file.into())),
            _ => builder().tempfile_in(directory).map(Backing::Named),
        };
        let backing = backing.map_err(|error| named(path, &error))?;
        Ok(Self { writer: BufWriter::with_capacity(BUFFER_BYTES, backing), path: path.into() })
    }

    /// Puts the file into its place, over one that stands there.
    ///
    /// # Errors
    /// Those of the file system, with the path in the message.
    pub fn commit(self) -> io::Result<()> {
        let Self { writer, path } = self;
        let place = || {
            match writer.into_inner().map_err(|error| error.into_error())? {
                Backing::Named(file) => file.persist(&path)?,
                Backing::Nameless(file) => give_name(&file, &path)?.persist(&path).map(|()| file)?,
            };
            Ok(())
        };
        place().map_err(|error: io::Error| named(&path, &error))
    }
}

/// Links `file` beside `path`: only a rename replaces what may stand there in one step.
fn give_name(file: &File, path: &Path) -> io::Result<NamedTempFile<()>> {
    let own = format!("{DESCRIPTORS}/{}", file.as_raw_fd());
    let link = |beside: &Path| Ok(rustix::fs::linkat(CWD, &own, CWD, beside, AtFlags::SYMLINK_FOLLOW)?);
    builder().make_in(directory_of(path), link)
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".anabranch-").permissions(Permissions::from_mode(MODE));
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

/// Writes `content` to `path`, whole or not at all.
///
/// # Errors
/// Those of the file system, with the path in the message.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content).map_err(|error| named(path, &error))?;
    file.commit()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {}: {error}\n  help: {WHERE}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_appears_whole_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/results.json");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(names(path.parent().unwrap()), ["results.json"]);
    }

    #[test]
    fn a_file_given_up_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(&directory.path().join("x")).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        drop(file);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn an_error_names_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let blocked = directory.path().join("file");
        std::fs::write(&blocked, b"").unwrap();
        let error = write_atomically(&blocked.join("results.json"), b"").unwrap_err();
        assert!(error.to_string().contains(&blocked.display().to_string()), "{error}");
    }
}
