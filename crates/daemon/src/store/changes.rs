//! Notices that paired devices were changed by another program.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;

use linux::Result;

use super::{Peers, Store};

/// The peers of a store, read when they may be others than before.
pub struct Changes {
    store: Store,
    /// What tells one file from the next, which replaces it; `None` inside: there is no file.
    read: Option<Option<(u64, i64, i64)>>,
}

impl Changes {
    /// Nothing was read yet.
    pub const fn of(store: Store) -> Self {
        Self { store, read: None }
    }

    /// The peers, the first time and whenever the file is another one; `None`: it is not.
    pub fn poll(&mut self) -> Option<Result<Peers>> {
        let mark = |metadata: Metadata| (metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        let now = fs::metadata(self.store.path("peers.json")).ok().map(mark);
        (self.read.replace(now) != Some(now)).then(|| self.store.peers())
    }
}
