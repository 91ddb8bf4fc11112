//! Detects changes of the paired devices by other programs.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;

use linux::Result;

use super::{Peers, Store};

/// The peers of a store, reread when the file may have changed.
pub struct Changes {
    store: Store,
    /// Identifies the file read last, which is replaced on every change; inner `None`: there was no file.
    read: Option<Option<(u64, i64, i64)>>,
}

impl Changes {
    /// Creates a watcher that has read nothing yet.
    pub const fn of(store: Store) -> Self {
        Self { store, read: None }
    }

    /// Returns the peers at the first call, after every change of the file and after an error, otherwise `None`.
    pub fn poll(&mut self) -> Option<Result<Peers>> {
        let mark = |metadata: Metadata| (metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        let now = fs::metadata(self.store.path("peers.json")).ok().map(mark);
        if self.read == Some(now) {
            return None;
        }
        let peers = self.store.peers();
        // A file that could not be read is read again, although it has not changed.
        self.read = peers.is_ok().then_some(now);
        Some(peers)
    }
}
