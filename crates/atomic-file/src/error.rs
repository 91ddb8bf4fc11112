//! The error of an operation on a file.

use std::io;
use std::path::{Path, PathBuf};

/// The result of an operation on a file.
pub type Result<T> = std::result::Result<T, Error>;

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}\n  help: {}", path.display(), self.remedy())]
pub struct Error {
    /// The file, or a folder above it.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl Error {
    /// Returns a function for `map_err` that names `path` as the place of the error.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { path: path.into(), source }
    }

    /// Returns what the user can do about the error.
    pub fn remedy(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::IsADirectory => "name a file in it",
            io::ErrorKind::AlreadyExists => "name a regular file",
            io::ErrorKind::NotFound => "create its folder first (mkdir -p), or name a file in an existing one",
            // The remedy for nearly all causes.
            _ => "name a file in a directory that you may write to, on a disk with free space",
        }
    }
}

/// Keeps the path and the remedy in the message.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.source.kind(), error.to_string())
    }
}
