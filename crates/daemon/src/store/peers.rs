//! The devices that this one is paired with.

use cooperation::channel::PublicKey;
use cooperation::link::Name;
use linux::uplink::SLOTS_MAX;
use linux::{Error, Result};
use serde::{Deserialize, Serialize};

use super::text;
use crate::scoped::ScopedAddress;

// The slots of pairing are the slots of the plumbing.
const _: () = assert!(SLOTS_MAX == cooperation::link::pairing::SLOTS_MAX);
/// Format version of the file.
const VERSION: u32 = 1;

/// All paired devices. No two have the same name.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    version: u32,
    /// Devices whose links this one may use.
    #[serde(default)]
    pub relays: Vec<Relay>,
    /// Devices that may use the link of this one.
    #[serde(default)]
    pub destinations: Vec<Destination>,
}

/// A device whose link this one may use.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(from = "WrittenRelay")]
pub struct Relay {
    /// Its local name.
    #[serde(with = "text")]
    pub name: Name,
    /// Its public key.
    #[serde(with = "text")]
    pub key: PublicKey,
    /// This device's slot at the relay, from 1 to [`SLOTS_MAX`].
    pub slot: u8,
    /// Its last known address.
    #[serde(with = "text")]
    pub address: ScopedAddress,
}

/// A relay as read from the file. Earlier releases also stored whether it carried IPv6 at pairing; now its terms tell.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRelay {
    #[serde(with = "text")]
    name: Name,
    #[serde(with = "text")]
    key: PublicKey,
    slot: u8,
    #[serde(with = "text")]
    address: ScopedAddress,
    #[serde(default, rename = "ipv6")]
    _ipv6: Option<bool>,
}

impl From<WrittenRelay> for Relay {
    fn from(WrittenRelay { name, key, slot, address, .. }: WrittenRelay) -> Self {
        Self { name, key, slot, address }
    }
}

/// A device that may use the link of this one.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// Its local name.
    #[serde(with = "text")]
    pub name: Name,
    /// Its public key.
    #[serde(with = "text")]
    pub key: PublicKey,
    /// Its slot, from 1 to [`SLOTS_MAX`].
    pub slot: u8,
}

impl Default for Peers {
    fn default() -> Self {
        Self { version: VERSION, relays: Vec::new(), destinations: Vec::new() }
    }
}

impl Peers {
    /// Parses the file.
    ///
    /// # Errors
    /// If the file is broken; says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let peers: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if peers.version != VERSION {
            return Err(format!("it has version {}; this release reads version {VERSION}", peers.version));
        }
        let slots: Vec<u8> = peers.destinations.iter().map(|destination| destination.slot).collect();
        let all = slots.iter().chain(peers.relays.iter().map(|relay| &relay.slot));
        if let Some(slot) = all.clone().find(|slot| !(1..=SLOTS_MAX).contains(slot)) {
            return Err(format!("slot {slot} is not between 1 and {SLOTS_MAX}"));
        }
        if let Some(slot) = twice(&slots) {
            return Err(format!("two destinations have slot {slot}"));
        }
        if let Some(name) = twice(&peers.names()) {
            return Err(format!("two devices are called {name}"));
        }
        Ok(peers)
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("all keys are field names") + "\n"
    }

    fn names(&self) -> Vec<&Name> {
        let relays = self.relays.iter().map(|relay| &relay.name);
        relays.chain(self.destinations.iter().map(|destination| &destination.name)).collect()
    }

    /// Adds a device that may use this one's link. Returns its local name and its slot. A known device keeps its slot,
    /// which it may be using now.
    ///
    /// # Errors
    /// If there is no slot left.
    pub fn add_destination(&mut self, name: Name, key: PublicKey) -> Result<(Name, u8)> {
        let known = self.destinations.iter().position(|destination| destination.key == key);
        let slot = match known {
            Some(index) => self.destinations.remove(index).slot,
            None => self.free_slot()?,
        };
        let name = self.free_name(name);
        self.destinations.push(Destination { name: name.clone(), key, slot });
        self.destinations.sort_by_key(|destination| destination.slot);
        Ok((name, slot))
    }

    /// Returns the slot for the next device.
    ///
    /// # Errors
    /// If there is none left.
    pub fn free_slot(&self) -> Result<u8> {
        let is_free = |slot: &u8| self.destinations.iter().all(|destination| destination.slot != *slot);
        (1..=SLOTS_MAX).find(is_free).ok_or_else(|| {
            Error::Usage(format!(
                "{SLOTS_MAX} devices are already paired, the most that one relay serves: remove one (anabranch peers \
                 remove NAME)"
            ))
        })
    }

    /// Adds or updates a device whose link this one may use. Returns its local name. A known device keeps its position,
    /// on which the names of interfaces depend.
    pub fn add_relay(&mut self, relay: Relay) -> Name {
        let known = self.relays.iter().position(|known| known.key == relay.key);
        known.into_iter().for_each(|index| drop(self.relays.remove(index)));
        let name = self.free_name(relay.name.clone());
        self.relays.insert(known.unwrap_or(self.relays.len()), Relay { name: name.clone(), ..relay });
        name
    }

    /// Changes the address of a relay.
    pub fn move_relay(&mut self, key: PublicKey, address: &ScopedAddress) {
        self.relays.iter_mut().filter(|relay| relay.key == key).for_each(|relay| relay.address = address.clone());
    }

    /// Returns the name, or a similar one that is free.
    fn free_name(&self, name: Name) -> Name {
        let taken = self.names();
        let numbered = |number: u32| {
            let end = format!("-{number}");
            let begin: String = name.as_str().chars().take(Name::BYTES_MAX - end.len()).collect();
            (begin + &end).parse::<Name>().ok()
        };
        if !taken.contains(&&name) {
            return name;
        }
        (2..).filter_map(numbered).find(|name| !taken.contains(&name)).unwrap_or(name)
    }

    /// Removes the device of that name, whether relay or destination.
    ///
    /// # Errors
    /// If there is none.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        let before = self.names().len();
        self.relays.retain(|relay| relay.name.as_str() != name);
        self.destinations.retain(|destination| destination.name.as_str() != name);
        if self.names().len() < before {
            return Ok(());
        }
        let names: Vec<String> = self.names().iter().map(ToString::to_string).collect();
        let there = if names.is_empty() { "none is paired".into() } else { format!("paired: {}", names.join(", ")) };
        Err(Error::Usage(format!("no paired device is called {name:?} ({there})")))
    }
}

fn twice<T: PartialEq + Copy>(all: &[T]) -> Option<T> {
    all.iter().enumerate().find(|(position, one)| all[..*position].contains(one)).map(|(_, one)| *one)
}

#[cfg(test)]
mod tests {
    use cooperation::channel::Identity;

    use super::*;

    fn key(number: u8) -> PublicKey {
        Identity::from_secret([number; 32]).public()
    }

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn slots_are_given_away_and_come_back() {
        let mut peers = Peers::default();
        for number in 1..=SLOTS_MAX {
            assert_eq!(peers.add_destination(name("laptop"), key(number)).unwrap().1, number);
        }
        assert_eq!(peers.destinations[1].name, name("laptop-2"));
        assert!(peers.free_slot().unwrap_err().to_string().contains("peers remove"));
        assert!(peers.add_destination(name("x"), key(99)).is_err());
        assert_eq!(peers.add_destination(name("other"), key(3)).unwrap(), (name("other"), 3), "known already");
        peers.remove("laptop-5").unwrap();
        assert_eq!(peers.free_slot().unwrap(), 5);
        assert_eq!(Peers::parse(&peers.text()).unwrap(), peers);
    }

    #[test]
    fn a_relay_that_is_paired_again_is_one_relay() {
        let relay = |text: &str, number: u8, slot: u8| Relay {
            name: name(text),
            key: key(number),
            slot,
            address: "192.168.7.1".parse().unwrap(),
        };
        let mut peers = Peers::default();
        assert_eq!(peers.add_relay(relay("anna", 1, 1)), name("anna"));
        assert_eq!(peers.add_relay(relay("anna", 2, 1)), name("anna-2"));
        assert_eq!(peers.add_relay(relay("anna", 1, 4)), name("anna"));
        assert_eq!(peers.relays.len(), 2);
        let slots: Vec<u8> = peers.relays.iter().map(|relay| relay.slot).collect();
        assert_eq!(slots, [4, 1], "in place: the names of their devices go by it");
    }

    #[test]
    fn files_of_earlier_releases_are_read() {
        let key = key(1);
        let file = |more: &str| {
            format!(
                r#"{{"version":1,"relays":[{{"name":"anna","key":"{key}","slot":2,"address":"192.168.7.1"{more}}}]}}"#
            )
        };
        let old = Peers::parse(&file(r#","ipv6":true"#)).unwrap();
        assert_eq!(old, Peers::parse(&file("")).unwrap());
        assert!(!old.text().contains("ipv6") && old.text().contains("192.168.7.1"));
        assert!(Peers::parse(&file(r#","colour":1"#)).unwrap_err().contains("colour"));
    }

    #[test]
    fn what_contradicts_itself_is_not_read() {
        let key = key(1);
        let destination = |name: &str, slot: u8| format!(r#"{{"name":"{name}","key":"{key}","slot":{slot}}}"#);
        let file = |destinations: &[String]| format!(r#"{{"version":1,"destinations":[{}]}}"#, destinations.join(","));
        assert!(Peers::parse(&file(&[destination("a", 1), destination("b", 2)])).is_ok());
        for (broken, why) in [
            (file(&[destination("a", 0)]), "slot 0"),
            (file(&[destination("a", 9)]), "slot 9"),
            (file(&[destination("a", 1), destination("b", 1)]), "slot 1"),
            (file(&[destination("a", 1), destination("a", 2)]), "called a"),
            (file(&[destination("../x", 1)]), "name"),
            (r#"{"version":7}"#.into(), "version 7"),
        ] {
            let said = Peers::parse(&broken).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
