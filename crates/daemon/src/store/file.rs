//! Opens files in the folder of keys, but only regular ones: opening or reading a FIFO may block for ever.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Maximum length of a file, octets: more than this program ever writes.
const BYTES_MAX: u64 = 1 << 20;

/// Opens the file at `path` with `options`, without blocking.
///
/// # Errors
/// If it cannot be opened, or is no regular file.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let irregular = || io::Error::new(ErrorKind::InvalidInput, "not a regular file (perhaps a FIFO): move it away");
    let opened = options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
    // The error for a FIFO without a reader, and for a socket.
    let file =
        opened.map_err(|error| if Errno::from_io_error(&error) == Some(Errno::NXIO) { irregular() } else { error })?;
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(file),
        (_, true) => Err(Errno::ISDIR.into()),
        _ => Err(irregular()),
    }
}

/// Reads the file at `path`, if there is one.
///
/// # Errors
/// If it cannot be read, is no regular file, or is longer than [`BYTES_MAX`].
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if file.metadata()?.len() > BYTES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidData, "larger than any file that this program writes"));
    }
    let mut octets = Vec::new();
    file.read_to_end(&mut octets)?;
    Ok(Some(octets))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        mknodat(CWD, path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        std::os::unix::fs::symlink(path("fifo"), path("link")).unwrap();
        for place in [path("fifo"), path("link"), path("socket"), "/dev/null".into()] {
            let why = read(&place).unwrap_err().to_string();
            assert!(why.contains("not a regular file"), "{place:?}: {why}");
            let why = open(&place, OpenOptions::new().append(true).create(true)).unwrap_err().to_string();
            assert!(why.contains("not a regular file"), "{place:?}: {why}");
        }
        assert_eq!(read(folder.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read(&path("none")).unwrap(), None);
        std::fs::write(path("file"), "text").unwrap();
        assert_eq!(read(&path("file")).unwrap().unwrap(), b"text");
    }
}
