//! Who may use this relay: as the store says, now.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;

use cooperation::channel::PublicKey;

use crate::store::{Destination, Store};

/// The destinations of a store, read again when it has changed.
pub struct Roll {
    store: Store,
    destinations: Vec<Destination>,
    /// What tells one file from the next: each replaces the one before.
    read: Option<(u64, i64, i64)>,
    is_called: bool,
    say: Box<dyn Fn(&str) + Send>,
}

impl Roll {
    /// Nobody, until it is called.
    pub fn new(store: Store, say: impl Fn(&str) + Send + 'static) -> Self {
        Self { store, destinations: Vec::new(), read: None, is_called: false, say: Box::new(say) }
    }

    /// What people should know.
    pub fn say(&self, line: &str) {
        (self.say)(line);
    }

    /// Who may use it, as it was when it was last called.
    pub fn destinations(&self) -> &[Destination] {
        &self.destinations
    }

    /// The numbers and keys of all, if they may be others than before.
    pub fn call(&mut self) -> Option<Vec<(u8, PublicKey)>> {
        let mark = |metadata: Metadata| (metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        let now = fs::metadata(self.store.path("peers.json")).ok().map(mark);
        let is_first = !core::mem::replace(&mut self.is_called, true);
        if now == self.read {
            return None;
        }
        self.read = now;
        match self.store.peers() {
            Ok(peers) => self.replace(peers.destinations, is_first),
            // Those that are known stay: a broken file is no reason to end what works.
            Err(error) => {
                (self.say)(&format!("going on with the devices paired before: {error}"));
                return None;
            }
        }
        Some(self.destinations.iter().map(|destination| (destination.slot, destination.key)).collect())
    }

    fn replace(&mut self, new: Vec<Destination>, is_first: bool) {
        let has = |all: &[Destination], key| all.iter().any(|destination| destination.key == key);
        for gone in self.destinations.iter().filter(|known| !has(&new, known.key)) {
            (self.say)(&format!("{} is no longer paired", gone.name));
        }
        if !is_first {
            for come in new.iter().filter(|destination| !has(&self.destinations, destination.key)) {
                (self.say)(&format!("{} is paired, and may use this link", come.name));
            }
        }
        self.destinations = new;
    }
}

#[cfg(test)]
mod tests {
    use cooperation::channel::Identity;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn who_is_paired_or_removed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let (said, heard) = channel();
        let mut roll = Roll::new(store.clone(), move |line| said.send(line.to_owned()).unwrap());
        assert_eq!(roll.call(), None, "there is no file");
        let key = Identity::from_secret([7; 32]).public();
        store.change_peers(|peers| peers.add_destination("anna".parse().unwrap(), key)).unwrap();
        assert_eq!(roll.call(), Some(vec![(1, key)]));
        assert!(heard.try_recv().unwrap().contains("anna is paired"));
        assert_eq!(roll.call(), None);
        fs::write(store.path("peers.json"), "{").unwrap();
        assert_eq!(roll.call(), None);
        assert!(heard.try_recv().unwrap().contains("peers.json"));
        assert_eq!(roll.destinations().len(), 1, "they stay");
        fs::remove_file(store.path("peers.json")).unwrap();
        assert_eq!(roll.call(), Some(Vec::new()));
        assert!(heard.try_recv().unwrap().contains("anna is no longer paired"));
    }
}
