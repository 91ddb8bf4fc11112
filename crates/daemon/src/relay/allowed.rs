//! The devices that may use this relay, according to the store.

use cooperation::channel::PublicKey;
use tracing::{error, info};

use crate::store::{Changes, Destination, Store};

/// The destinations of a store, reread when the store changes.
pub struct AllowList {
    changes: Changes,
    /// `None` until the first read.
    destinations: Option<Vec<Destination>>,
    /// The last read failed, and that was logged.
    is_broken: bool,
}

impl AllowList {
    /// Creates a list that is empty until the first refresh.
    pub const fn new(store: Store) -> Self {
        Self { changes: Changes::of(store), destinations: None, is_broken: false }
    }

    /// Returns the destinations as of the last refresh.
    pub fn destinations(&self) -> &[Destination] {
        self.destinations.as_deref().unwrap_or_default()
    }

    /// Rereads the store if it may have changed. Returns the slots and keys of all destinations then.
    pub fn refresh(&mut self) -> Option<Vec<(u8, PublicKey)>> {
        match self.changes.poll()? {
            Ok(peers) => {
                self.is_broken = false;
                self.replace(peers.destinations);
            }
            // Known destinations stay: a broken file must not end what works.
            Err(error) => {
                if !core::mem::replace(&mut self.is_broken, true) {
                    error!("continuing with the devices paired before: {error}");
                }
                return None;
            }
        }
        Some(self.destinations().iter().map(|destination| (destination.slot, destination.key)).collect())
    }

    fn replace(&mut self, new: Vec<Destination>) {
        if let Some(before) = &self.destinations {
            let has = |all: &[Destination], key| all.iter().any(|destination| destination.key == key);
            for gone in before.iter().filter(|known| !has(&new, known.key)) {
                info!(destination = gone.name.as_str(), "{} is no longer paired", gone.name);
            }
            for come in new.iter().filter(|destination| !has(before, destination.key)) {
                info!(destination = come.name.as_str(), "{} is paired, and may use this link", come.name);
            }
        }
        self.destinations = Some(new);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cooperation::channel::Identity;

    use super::*;
    use crate::heard::Heard;

    #[test]
    fn who_is_paired_or_removed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let heard = Heard::default();
        let _listening = heard.listen();
        let mut allowed = AllowList::new(store.clone());
        assert_eq!(allowed.refresh(), Some(Vec::new()), "there is no file");
        assert_eq!(allowed.refresh(), None);
        let key = Identity::from_secret([7; 32]).public();
        store.change_peers(|peers| peers.add_destination("anna".parse().unwrap(), key)).unwrap();
        assert_eq!(allowed.refresh(), Some(vec![(1, key)]));
        assert!(heard.take().contains("anna is paired"));
        assert_eq!(allowed.refresh(), None);
        let whole = fs::read(store.path("peers.json")).unwrap();
        fs::write(store.path("peers.json"), "{").unwrap();
        assert_eq!(allowed.refresh(), None);
        assert!(heard.take().contains("peers.json"));
        assert_eq!(allowed.destinations().len(), 1, "they stay");
        assert_eq!(allowed.refresh(), None);
        assert_eq!(heard.take(), "", "it is told once");
        // Whatever was wrong with it is over, and the file looks as before.
        let file = fs::File::options().write(true).open(store.path("peers.json")).unwrap();
        let before = file.metadata().unwrap().modified().unwrap();
        fs::write(store.path("peers.json"), &whole).unwrap();
        file.set_modified(before).unwrap();
        assert_eq!(allowed.refresh(), Some(vec![(1, key)]));
        assert_eq!(allowed.refresh(), None);
        fs::remove_file(store.path("peers.json")).unwrap();
        assert_eq!(allowed.refresh(), Some(Vec::new()));
        assert!(heard.take().contains("anna is no longer paired"));
    }
}
