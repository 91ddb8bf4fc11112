//! Errors of the machine, with their remedies.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::lack::{Lack, Lacks};

/// An error of the machine around the engine. Each says what was attempted and, if there is one, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted, after "cannot".
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The machine lacks something needed, or does not let this process use it.
    #[error("{0}")]
    Lacking(Lacks),
    /// A program that was run failed.
    #[error("{command}: {message}")]
    Command {
        /// The command line.
        command: String,
        /// The program's message.
        message: String,
    },
    /// A file that the user named cannot be used.
    #[error("{}: {message}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong, with the line number if there is one.
        message: String,
    },
    /// An argument or a setting cannot be used.
    #[error("{0}")]
    Usage(String),
    /// The request is valid, but this device is not ready for it now.
    #[error("{0}")]
    Unready(String),
    /// The peer, or the path to it, failed.
    #[error("{0}")]
    Peer(String),
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// Something failed, but what was done until then is kept.
    #[error("{cause}; {kept}")]
    Kept {
        /// What failed.
        cause: Box<Error>,
        /// What is kept, and how to use it.
        kept: String,
    },
    /// The reader of the output has closed the pipe.
    #[error("the reader of {place} closed it after {written_bytes} {}bytes", of(*.whole_bytes))]
    NobodyReads {
        /// Which pipe, in words for the user.
        place: String,
        /// Octets that the pipe took.
        written_bytes: u64,
        /// Octets of the complete output, if known.
        whole_bytes: Option<u64>,
    },
}

fn of(whole_bytes: Option<u64>) -> String {
    whole_bytes.map_or(String::new(), |whole| format!("of {whole} "))
}

impl From<Lacks> for Error {
    fn from(lacks: Lacks) -> Self {
        Self::Lacking(lacks)
    }
}

impl From<atomic_file::Error> for Error {
    fn from(error: atomic_file::Error) -> Self {
        let message = format!("{}: {}", error.source, error.remedy());
        match error.is_misplaced() {
            true => Self::File { path: error.path, message },
            false => {
                let source = io::Error::new(error.source.kind(), message);
                Self::System { what: format!("write {}", error.path.display()), source }
            }
        }
    }
}

impl From<Lack> for Error {
    fn from(lack: Lack) -> Self {
        Self::Lacking(lack.into())
    }
}

impl Error {
    /// For `map_err`: a system call failed to do `what`.
    pub fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what: what.into(), source: source.into() }
    }

    /// The engine's TUN device can no longer be used for `what`.
    pub(crate) fn device(what: &str, source: io::Error) -> Self {
        // EIO: it is down. EBADFD: it has been removed.
        let remedy = match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::IO | Errno::BADFD) => ", which another program has brought down or removed: start again",
            _ => "",
        };
        Self::System { what: format!("{what} the TUN device{remedy}"), source }
    }

    /// For `map_err`: the file at `path`, which the user named, cannot be written.
    pub fn output(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.into();
            match atomic_file::is_misplaced(&source) {
                true => Self::File { path, message: source.to_string() },
                false => Self::System { what: format!("write {}", path.display()), source },
            }
        }
    }

    /// For `map_err`: something wrong with the file at `path`.
    pub fn file<E: std::fmt::Display>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        move |source| Self::File { path: path.into(), message: source.to_string() }
    }
}
