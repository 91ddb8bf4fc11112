//! Stores the relays' addresses for the next start, from a thread of its own: neither a slow disk nor another program that
//! holds the store's lock may hold up packets.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use cooperation::channel::PublicKey;
use linux::{Error, Result};

use crate::scoped::ScopedAddress;
use crate::store::{Peers, Store};

/// A relay, and the address at which it was last heard.
pub type Move = (PublicKey, ScopedAddress);

/// The end of that thread at which addresses are noted. Dropping it does not wait for the thread, which may be waiting
/// for the lock: what is not stored by then is found anew at the next start.
#[derive(Debug)]
pub struct Places(Sender<Move>);

impl Places {
    /// Starts the thread, with the calling thread's rights.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(store: Store) -> Result<Self> {
        let (notes, moves) = channel();
        let thread = thread::Builder::new().name("places".into());
        thread.spawn(move || keep(&store, &moves)).map_err(Error::system("start a thread"))?;
        Ok(Self(notes))
    }

    /// Notes a relay's address. A later one of the same relay replaces it if it is not stored by then.
    pub fn note(&self, moved: Move) {
        // The thread lives as long as this.
        let _ = self.0.send(moved);
    }
}

fn keep(store: &Store, moves: &Receiver<Move>) {
    while let Ok(first) = moves.recv() {
        let latest: BTreeMap<_, _> = core::iter::once(first).chain(moves.try_iter()).collect();
        let is_at = |peers: &Peers, (key, address): (&PublicKey, &ScopedAddress)| {
            peers.relays.iter().any(|relay| relay.key == *key && relay.address == *address)
        };
        let are_there = |peers: Peers| latest.iter().all(|moved| is_at(&peers, moved));
        if !store.peers().is_ok_and(are_there) {
            // A failure does no harm until the next start.
            let _ = store.change_peers(|peers| {
                latest.iter().for_each(|(key, address)| peers.move_relay(*key, address));
                Ok(())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use cooperation::channel::Identity;
    use linux::clock::Clock;
    use rustix::fs::{FlockOperation, flock};
    use units::{Duration, Instant};

    use super::*;
    use crate::store::Relay;

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let clock = Clock::start();
        while !is_so() {
            assert!(clock.now() < Instant::from_secs(10), "{what}");
            thread::yield_now();
        }
    }

    #[test]
    fn addresses_are_stored_once_the_lock_is_free_and_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let keys = [7, 8].map(|secret| Identity::from_secret([secret; 32]).public());
        let address = |text: &str| text.parse::<ScopedAddress>().unwrap();
        for (name, key) in ["anna", "bert"].into_iter().zip(keys) {
            let relay = Relay { name: name.parse().unwrap(), key, slot: 1, address: address("192.0.2.1") };
            store.change_peers(|peers| Ok(peers.add_relay(relay))).unwrap();
        }
        let now =
            || store.peers().unwrap().relays.into_iter().map(|relay| relay.address.to_string()).collect::<Vec<_>>();
        // Another program holds the lock, and was stopped.
        let lock = std::fs::File::open(store.path("lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let clock = Clock::start();
        let places = Places::start(store.clone()).unwrap();
        for number in 2..100 {
            keys.into_iter().for_each(|key| places.note((key, address(&format!("192.0.2.{number}")))));
        }
        assert!(clock.now() < Instant::ZERO + Duration::from_secs(5) && now() == ["192.0.2.1"; 2]);
        drop(lock);
        wait_until("the last ones are stored", || now() == ["192.0.2.99"; 2]);
        // Nor does the end wait.
        let lock = std::fs::File::open(store.path("lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        places.note((keys[0], address("192.0.2.100")));
        drop(places);
        assert_eq!(now(), ["192.0.2.99"; 2]);
    }
}
