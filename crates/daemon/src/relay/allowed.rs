//! Who may use this relay: as the store says, now.

use cooperation::channel::PublicKey;
use tracing::{error, info};

use crate::store::{Changes, Destination, Store};

/// The destinations of a store, read again when it has changed.
pub struct AllowList {
    changes: Changes,
    /// `None`: it was not read yet.
    destinations: Option<Vec<Destination>>,
}

impl AllowList {
    /// Nobody, until it is refreshed.
    pub const fn new(store: Store) -> Self {
        Self { changes: Changes::of(store), destinations: None }
    }

    /// Who may use it, as it was when it was last refreshed.
    pub fn destinations(&self) -> &[Destination] {
        self.destinations.as_deref().unwrap_or_default()
    }

    /// The numbers and keys of all, if they may be others than before.
    pub fn refresh(&mut self) -> Option<Vec<(u8, PublicKey)>> {
        match self.changes.poll()? {
            Ok(peers) => self.replace(peers.destinations),
            // Those that are known stay: a broken file is no reason to end what works.
            Err(error) => {
                error!("going on with the devices paired before: {error}");
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
        fs::write(store.path("peers.json"), "{").unwrap();
        assert_eq!(allowed.refresh(), None);
        assert!(heard.take().contains("peers.json"));
        assert_eq!(allowed.destinations().len(), 1, "they stay");
        fs::remove_file(store.path("peers.json")).unwrap();
        assert_eq!(allowed.refresh(), Some(Vec::new()));
        assert!(heard.take().contains("anna is no longer paired"));
    }
}
