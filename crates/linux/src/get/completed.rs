//! What `-C` notes on a file that it has completed, so that the next `-C` need not download it again.
//!
//! The note is an extended attribute of the file: the URL, and the validator, length and modification time of this
//! version. It goes with the file when that is renamed or removed, and leaves nothing beside it. A file that somebody
//! has changed since has another time, so its note is void. Where a file system has no such attributes, nothing is
//! noted. The length alone would prove nothing: the server may have another version of the same length.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, XattrFlags};

const ATTRIBUTE: &str = "user.anabranch.version";
/// Maximum octets of a note. File systems take less.
const NOTE_BYTES_MAX: usize = 64 << 10;

/// The version of a complete file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its validator.
    pub validator: String,
    /// Its length, octets; not 0.
    pub bytes: u64,
}

/// Notes on a complete file that it is the version of `url` with `validator`, where the file system can.
pub fn note(file: &File, url: &str, validator: &str) {
    if let Ok(metadata) = file.metadata() {
        let note = format!("{url}\n{validator}\n{}", stamp(&metadata));
        let _ = rustix::fs::fsetxattr(file, ATTRIBUTE, note.as_bytes(), XattrFlags::empty());
    }
}

/// Returns the version of `url` that the file at `path` is, completely, if that was noted and the file has not been
/// changed since.
pub fn read(path: &Path, url: &str) -> Option<Completed> {
    let file = open(path)?;
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
    let mut octets = vec![0; NOTE_BYTES_MAX];
    let len = rustix::fs::fgetxattr(&file, ATTRIBUTE, &mut octets[..]).ok()?;
    let text = core::str::from_utf8(octets.get(..len)?).ok()?;
    let (noted_url, rest) = text.split_once('\n')?;
    let (validator, noted_stamp) = rest.split_once('\n')?;
    (noted_url == url && noted_stamp == stamp(&metadata))
        .then(|| Completed { validator: validator.into(), bytes: metadata.len() })
}

/// Removes the note. Returns whether it could: the file may be read-only.
pub fn forget(path: &Path) -> bool {
    open(path).is_some_and(|file| rustix::fs::fremovexattr(&file, ATTRIBUTE).is_ok())
}

fn open(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
}

fn stamp(metadata: &Metadata) -> String {
    format!("{}\n{}.{:09}\n", metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}
