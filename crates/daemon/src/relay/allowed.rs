//! Who may use this relay: as the store says, now.

use cooperation::channel::PublicKey;

use crate::store::{Changes, Destination, Store};

/// The destinations of a store, read again when it has changed.
pub struct AllowList {
    changes: Changes,
    /// `None`: it was not read yet.
    destinations: Option<Vec<Destination>>,
    say: Box<dyn Fn(&str) + Send>,
}

impl AllowList {
    /// Nobody, until it is refreshed.
    pub fn new(store: Store, say: impl Fn(&str) + Send + 'static) -> Self {
        Self { changes: Changes::of(store), destinations: None, say: Box::new(say) }
    }

    /// What people should know.
    pub fn say(&self, line: &str) {
        (self.say)(line);
    }

    /// Who may use it, as it was when it was last refreshed.
    pub fn destinations(&self) -> &[Destination] {
        self.destinations.as_deref().unwrap_or_default()
    }

    /// The numbers and keys of all, if they may be others than before.
    pub fn refresh(&mut self) -> Option<Vec<(u8, PublicKey)>> {
        match self.changes.next()? {
            Ok(peers) => self.replace(peers.destinations),
            // Those that are known stay: a broken file is no reason to end what works.
            Err(error) => {
                (self.say)(&format!("going on with the devices paired before: {error}"));
                return None;
            }
        }
        Some(self.destinations().iter().map(|destination| (destination.slot, destination.key)).collect())
    }

    fn replace(&mut self, new: Vec<Destination>) {
        if let Some(before) = &self.destinations {
            let has = |all: &[Destination], key| all.iter().any(|destination| destination.key == key);
            for gone in before.iter().filter(|known| !has(&new, known.key)) {
                (self.say)(&format!("{} is no longer paired", gone.name));
            }
            for come in new.iter().filter(|destination| !has(before, destination.key)) {
                (self.say)(&format!("{} is paired, and may use this link", come.name));
            }
        }
        self.destinations = Some(new);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::channel;

    use cooperation::channel::Identity;

    use super::*;

    #[test]
    fn who_is_paired_or_removed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let (said, heard) = channel();
        let mut allowed = AllowList::new(store.clone(), move |line| said.send(line.to_owned()).unwrap());
        assert_eq!(allowed.refresh(), Some(Vec::new()), "there is no file");
        assert_eq!(allowed.refresh(), None);
        let key = Identity::from_secret([7; 32]).public();
        store.change_peers(|peers| peers.add_destination("anna".parse().unwrap(), key)).unwrap();
        assert_eq!(allowed.refresh(), Some(vec![(1, key)]));
        assert!(heard.try_recv().unwrap().contains("anna is paired"));
        assert_eq!(allowed.refresh(), None);
        fs::write(store.path("peers.json"), "{").unwrap();
        assert_eq!(allowed.refresh(), None);
        assert!(heard.try_recv().unwrap().contains("peers.json"));
        assert_eq!(allowed.destinations().len(), 1, "they stay");
        fs::remove_file(store.path("peers.json")).unwrap();
        assert_eq!(allowed.refresh(), Some(Vec::new()));
        assert!(heard.try_recv().unwrap().contains("anna is no longer paired"));
    }
}
