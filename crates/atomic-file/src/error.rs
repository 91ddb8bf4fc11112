//! The error of an operation on a file.

use std::io;
use std::path::{Path, PathBuf};

/// The result of an operation on a file.
pub type Result<T> = std::result::Result<T, Error>;

/// What the user named: it decides what to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The file.
    File,
    /// A folder; the program has named the files in it.
    Folder,
}

/// A file or folder cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}\n  help: {}", path.display(), self.remedy())]
pub struct Error {
    /// The file, or a folder above it.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
    /// What the user named.
    pub named: Named,
}

impl Error {
    /// Returns a function for `map_err` that names the file at `path`, which the user named, as the place of the error.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::of(path, Named::File)
    }

    pub(crate) fn of(path: &Path, named: Named) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { path: path.into(), source, named }
    }

    /// Returns what the user can do about the error.
    pub fn remedy(&self) -> &'static str {
        match (self.named, self.source.kind()) {
            (Named::File, io::ErrorKind::IsADirectory) => "name a file in it",
            (Named::File, io::ErrorKind::AlreadyExists) => "name a regular file",
            (Named::File, io::ErrorKind::NotFound) => {
                "create its folder first (mkdir -p), or name a file in an existing one"
            }
            // The remedy for nearly all causes.
            (Named::File, _) => "name a file in a directory that you may write to, on a disk with free space",
            (Named::Folder, io::ErrorKind::NotADirectory) => "name a folder, or one that does not exist yet",
            (Named::Folder, _) => "name a folder that you may write to, on a disk with free space",
        }
    }

    /// Returns whether nothing can ever be written to the place that the user named, as long as it is as it is: not
    /// because the disk is full or fails.
    pub fn is_misplaced(&self) -> bool {
        is_misplaced(&self.source)
    }
}

/// Returns whether `error` says that a file cannot stand at the named place, and not that the disk is full or fails.
pub fn is_misplaced(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    is_too_long(error)
        || matches!(
            error.kind(),
            Kind::NotFound
                | Kind::PermissionDenied
                | Kind::AlreadyExists
                | Kind::NotADirectory
                | Kind::IsADirectory
                | Kind::ReadOnlyFilesystem
                | Kind::InvalidInput
        )
}

/// The kind of this error cannot be named before Rust 1.87.
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error())
}

/// Keeps the path and the remedy in the message.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = if is_too_long(&error.source) { io::ErrorKind::InvalidInput } else { error.source.kind() };
        Self::new(kind, error.to_string())
    }
}
