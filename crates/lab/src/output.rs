//! Files that are whole or absent: written beside their place, then renamed into it.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that is being written. Dropped before [`Self::commit`] it leaves nothing behind.
pub struct AtomicFile {
    writer: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will stand at `path`; makes the directories above it.
    ///
    /// # Errors
    /// Those of the file system, with the path in the message.
    pub fn create(path: &Path) -> io::Result<Self> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(|error| named(directory, &error))?;
        let file = temporary(directory).map_err(|error| named(path, &error))?;
        Ok(Self { writer: BufWriter::with_capacity(1 << 16, file), path: path.into() })
    }

    /// Puts the file into its place, over one that stands there.
    ///
    /// # Errors
    /// Those of the file system, with the path in the message.
    pub fn commit(self) -> io::Result<()> {
        let file = self.writer.into_inner().map_err(|error| named(&self.path, error.error()))?;
        file.persist(&self.path).map_err(|error| named(&self.path, &error.error))?;
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

fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".anabranch-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What a plain file would get: the process's umask applies.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
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
