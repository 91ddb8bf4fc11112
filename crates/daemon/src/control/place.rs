//! Path of a daemon's control socket.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linux::run_folder::RUN_FOLDER;
use linux::{Error, Result};

/// A folder with one socket per daemon. A network namespace counts as a host of its own: it sees only its own daemons.
#[derive(Clone, Debug)]
pub struct Place {
    folder: PathBuf,
    namespace: u64,
}

impl Place {
    /// Returns the place for the calling thread's network namespace.
    ///
    /// # Errors
    /// If there is no `/proc`.
    pub fn here() -> Result<Self> {
        let own =
            fs::metadata("/proc/thread-self/ns/net").map_err(Error::system("look at /proc/thread-self/ns/net"))?;
        Ok(Self { folder: RUN_FOLDER.into(), namespace: own.ino() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket of the daemon whose engine is behind `device`.
    pub fn socket(&self, device: &str) -> PathBuf {
        self.folder.join(format!("{}-{device}.sock", self.namespace))
    }

    /// Returns the existing sockets of all network namespaces.
    pub fn all_sockets(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "sock")).collect()
    }

    /// Returns the existing sockets of this network namespace, with their daemons' devices, sorted by device. Sockets
    /// of killed daemons are included.
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
