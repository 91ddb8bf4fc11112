//! Destination of a download.

use std::io::{self, Write as _};
use std::path::PathBuf;

use atomic_file::AtomicFile;

use super::partial::{PartialFile, Parts};
use super::place;
use super::stream::{Stream, Wake};
use crate::{Error, Result};

/// Destination of a download, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A file, which appears once it is complete.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// Takes the octets of a download.
pub enum Sink {
    /// A failure leaves nothing behind.
    Whole(AtomicFile),
    /// A failure leaves what has arrived, and a later download continues it.
    Partial(PartialFile),
    /// A pipe or a device, which may be slow.
    Stream(Stream),
}

impl Sink {
    /// Opens `output`. With `resume` it continues what an earlier download of `url` has left.
    pub fn open(output: &Output, url: &str, resume: bool, wake: Wake) -> Result<Self> {
        match output {
            Output::Stdout if resume => Err(Error::Usage("--continue needs an output file: name one with -o".into())),
            Output::Stdout => Stream::to_stdout(wake).map(Self::Stream),
            Output::File(path) => {
                let path = &place::resolve(path)?;
                match atomic_file::is_special(path) {
                    true if resume => Err(Error::File {
                        path: path.clone(),
                        message: "is not a regular file: leave out --continue".into(),
                    }),
                    // A device like /dev/null must not be replaced by a file.
                    true => Stream::to_path(path, wake).map(Self::Stream),
                    false if resume => PartialFile::open(path, url).map(Self::Partial),
                    false => Ok(Self::Whole(AtomicFile::create(path)?)),
                }
            }
        }
    }

    /// Returns where to continue, and the validator of the version that is there.
    pub fn resumption(&self) -> Option<(u64, String)> {
        match self {
            Self::Partial(file) => file.resumption(),
            Self::Whole(_) | Self::Stream(_) => None,
        }
    }

    /// Returns the octets of the complete file in this version, if the server has announced them.
    pub fn whole_bytes(&self) -> Option<u64> {
        match self {
            Self::Partial(file) => file.whole_bytes(),
            Self::Whole(_) | Self::Stream(_) => None,
        }
    }

    /// Returns whether the complete file is there, in the version of [`Self::resumption`].
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Partial(file) => file.is_complete(),
            Self::Whole(_) | Self::Stream(_) => false,
        }
    }

    /// Makes the next download begin anew, because the server has another version. Returns whether it could.
    pub fn drop_kept(&mut self) -> bool {
        match self {
            Self::Partial(file) => file.drop_kept(),
            Self::Whole(_) | Self::Stream(_) => true,
        }
    }

    /// Prepares for the complete file, of the version with `validator` and `whole_bytes` octets, if these are known.
    pub fn restart(&mut self, validator: Option<&str>, whole_bytes: Option<u64>) -> Result<()> {
        match self {
            Self::Partial(file) => file.restart(validator, whole_bytes),
            Self::Whole(_) | Self::Stream(_) => Ok(()),
        }
    }

    /// Prepares for the rest, from the position that [`Self::resumption`] returned, of a version with `whole_bytes`
    /// octets, if these are known.
    pub fn go_on(&mut self, whole_bytes: Option<u64>) -> Result<()> {
        match self {
            Self::Partial(file) => file.go_on(whole_bytes),
            Self::Whole(_) | Self::Stream(_) => Ok(()),
        }
    }

    /// Takes octets.
    pub fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Self::Whole(file) => file.write_all(octets),
            Self::Partial(file) => file.write_all(octets),
            Self::Stream(stream) => stream.write(octets),
        }
    }

    /// Converts a failure to write, of [`Self::write`] or later, to an error. `whole_bytes` are the octets of the
    /// complete file, if known.
    pub fn failure(&self, source: io::Error, whole_bytes: Option<u64>) -> Error {
        let place = match self {
            Self::Stream(stream) if source.kind() == io::ErrorKind::BrokenPipe => {
                let (place, written_bytes) = (stream.place().into(), stream.written_bytes());
                return Error::NobodyReads { place, written_bytes, whole_bytes };
            }
            Self::Whole(file) => file.path().display().to_string(),
            Self::Partial(file) => file.part().display().to_string(),
            Self::Stream(stream) => stream.place().into(),
        };
        Error::System { what: format!("write {place}"), source }
    }

    /// Returns whether the sink takes more octets; if not, the driver is woken once it does.
    pub fn has_room(&self) -> bool {
        match self {
            Self::Whole(_) | Self::Partial(_) => true,
            Self::Stream(stream) => stream.has_room(),
        }
    }

    /// Returns whether nothing waits to be written.
    pub fn is_drained(&self) -> bool {
        match self {
            Self::Whole(_) | Self::Partial(_) => true,
            Self::Stream(stream) => stream.is_drained(),
        }
    }

    /// Completes the download of `whole_bytes`.
    pub fn commit(self, whole_bytes: u64) -> Result<()> {
        match self {
            Self::Whole(file) => Ok(file.commit()?),
            Self::Partial(file) => file.commit(),
            Self::Stream(ref stream) => stream.outcome().map_err(|source| self.failure(source, Some(whole_bytes))),
        }
    }

    /// Ends a failed download from a server that sends `parts`. Returns a message on what is kept, or why nothing is kept
    /// that should have been.
    pub fn give_up(self, parts: Parts) -> Option<String> {
        match self {
            Self::Partial(file) => file.keep(parts),
            Self::Whole(_) | Self::Stream(_) => None,
        }
    }
}
