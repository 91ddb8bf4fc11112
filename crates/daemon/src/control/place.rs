//! Where the socket of a daemon is.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linux::{Error, Result};

/// On a file system in memory: sockets are gone after a power failure, as their daemons are.
const FOLDER: &str = "/run/anabranch";

/// A folder with a socket for every daemon. Network namespaces are hosts of their own: each sees only its own daemons.
#[derive(Clone, Debug)]
pub struct Place {
    folder: PathBuf,
    namespace: u64,
}

impl Place {
    /// That of the calling thread's network namespace.
    ///
    /// # Errors
    /// If there is no `/proc`.
    pub fn here() -> Result<Self> {
        let own =
            fs::metadata("/proc/thread-self/ns/net").map_err(Error::system("look at /proc/thread-self/ns/net"))?;
        Ok(Self { folder: FOLDER.into(), namespace: own.ino() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket of the daemon whose engine is behind `device`.
    pub fn socket(&self, device: &str) -> PathBuf {
        self.folder.join(format!("{}-{device}.sock", self.namespace))
    }

    /// The sockets there are, of all network namespaces.
    pub fn all_sockets(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "sock")).collect()
    }

    /// The sockets there are, with the devices of their daemons; also those of daemons that were killed.
    pub fn sockets(&self) -> Vec<(String, PathBuf)> {
        let prefix = format!("{}-", self.namespace);
        let found = fs::read_dir(&self.folder).into_iter().flatten().filter_map(|entry| {
            let path = entry.ok()?.path();
            let device = path.file_name()?.to_str()?.strip_prefix(&prefix)?.strip_suffix(".sock")?.to_owned();
            Some((device, path))
        });
        let mut found: Vec<_> = found.collect();
        found.sort();
        found
    }
}
