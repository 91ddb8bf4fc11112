//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::{Error, Result};

/// Where a file without a name gets one. A bare chroot has none of it.
const DESCRIPTORS: &str = "/proc/self/fd";

/// A file without a name until it is complete (`O_TMPFILE`): when the process ends before that, in whatever way, the
/// kernel frees it.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    path: PathBuf,
    /// Its name until it is complete, on file systems that do not know files without one, or without `/proc`.
    temporary: Option<PathBuf>,
}

impl AtomicFile {
    /// Starts a file that will be at `path`, where another may be until then.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be written to.
    pub fn create(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Err(Error::File { path: path.into(), message: "is a folder: name a file in it".into() });
        }
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mode = Mode::from_raw_mode(0o666);
        match rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
            Ok(fd) if Path::new(DESCRIPTORS).exists() => {
                Ok(Self { file: fd.into(), path: path.into(), temporary: None })
            }
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Self::create_named(path),
            Err(errno) => Err(Error::file(path)(io::Error::from(errno))),
        }
    }

    /// Octets stay in a file with a name of its own, which only dropping removes.
    fn create_named(path: &Path) -> Result<Self> {
        let temporary = temporary_name(path);
        let file = File::create(&temporary).map_err(Error::file(path))?;
        Ok(Self { file, path: path.into(), temporary: Some(temporary) })
    }

    /// Gives the complete file its name, replacing what was there.
    ///
    /// # Errors
    /// If the disk is full or the folder has changed. Nothing stays behind then.
    pub fn commit(mut self) -> Result<()> {
        self.file.sync_data().map_err(Error::file(&self.path))?;
        if self.temporary.is_none() {
            self.name_it().map_err(Error::file(&self.path))?;
        }
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        fs::rename(&temporary, &self.path).map_err(|error| {
            let _ = fs::remove_file(&temporary);
            Error::file(&self.path)(error)
        })
    }

    /// Links the nameless file into its folder: at its place if that is free, else beside it.
    fn name_it(&mut self) -> io::Result<()> {
        let own = format!("{DESCRIPTORS}/{}", self.file.as_fd().as_raw_fd());
        let link = |to: &Path| rustix::fs::linkat(CWD, &own, CWD, to, AtFlags::SYMLINK_FOLLOW);
        match link(&self.path) {
            Err(Errno::EXIST) => {
                let temporary = temporary_name(&self.path);
                link(&temporary)?;
                self.temporary = Some(temporary);
                Ok(())
            }
            done => Ok(done?),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// A hidden name beside `path` that no other process uses.
fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("atomic-file-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn appears_whole_and_replaces() {
        let folder = folder("whole");
        for content in ["first", "second"] {
            let mut file = AtomicFile::create(&folder.join("out")).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file.commit().unwrap();
            assert_eq!(fs::read_to_string(folder.join("out")).unwrap(), content);
            assert_eq!(names(&folder), ["out"]);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn leaves_nothing_when_it_is_given_up() {
        let folder = folder("nothing");
        for make in [AtomicFile::create, AtomicFile::create_named] {
            let mut file = make(&folder.join("out")).unwrap();
            file.write_all(b"half").unwrap();
            drop(file);
            assert!(names(&folder).is_empty());
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn folders_are_refused() {
        assert!(AtomicFile::create(Path::new("/")).unwrap_err().to_string().contains("is a folder"));
        assert!(AtomicFile::create(Path::new("/nowhere/at/all")).is_err());
    }
}
