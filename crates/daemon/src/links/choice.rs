//! Which relays are used, and when.

use std::net::IpAddr;
use std::path::Path;

use cooperation::channel::Identity;
use linux::{Error, Result};

use crate::proxy::choice::Tier;
use crate::store::{Relay, Store};

/// A relay that somebody has named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayChoice {
    /// What it is called here.
    pub name: String,
    /// Where it is, if not where it was.
    pub address: Option<IpAddr>,
    /// When it is used.
    pub tier: Tier,
}

/// Relays of a store.
#[derive(Debug)]
pub struct Chosen {
    /// Who this device is to them.
    pub identity: Identity,
    /// What is known of each.
    pub relays: Vec<Relay>,
    /// When each is used.
    pub tiers: Vec<Tier>,
}

/// The relays that are named, of those that the store in `folder` knows; all of them if none is named and `by_default` says so. None
/// chosen is nothing.
///
/// # Errors
/// If there is none of a name, or one is named twice; those of the store.
pub fn choose(folder: &Path, named: &[RelayChoice], by_default: bool) -> Result<Option<Chosen>> {
    let store = Store::at(folder);
    let known = store.peers()?.relays;
    let (mut relays, mut tiers) = (Vec::new(), Vec::new());
    for choice in named {
        let mut relay = known.iter().find(|relay| relay.name.as_str() == choice.name).cloned().ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|relay| relay.name.as_str()).collect();
            let there =
                if names.is_empty() { "none is paired".into() } else { format!("there is {}", names.join(", ")) };
            Error::Usage(format!(
                "--relay {}: no relay of that name is paired with this device ({there}): anabranch join --pair ADDRESS",
                choice.name
            ))
        })?;
        if relays.iter().any(|other: &Relay| other.key == relay.key) {
            return Err(Error::Usage(format!("--relay {} is named twice: name each relay once", choice.name)));
        }
        if let Some(address) = choice.address.filter(|address| *address != relay.address) {
            relay.address = address;
            // Said once is enough.
            store.change_peers(|peers| {
                peers
                    .relays
                    .iter_mut()
                    .filter(|known| known.key == relay.key)
                    .for_each(|known| known.address = address);
                Ok(())
            })?;
        }
        relays.push(relay);
        tiers.push(choice.tier);
    }
    if named.is_empty() && by_default {
        tiers = vec![Tier::Primary; known.len()];
        relays = known;
    }
    if relays.is_empty() {
        return Ok(None);
    }
    Ok(Some(Chosen { identity: store.identity()?, relays, tiers }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relays_are_chosen_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let choice = |name: &str, address: Option<&str>| RelayChoice {
            name: name.into(),
            address: address.map(|it| it.parse().unwrap()),
            tier: Tier::Backup,
        };
        let refusal = |named: &[RelayChoice]| choose(folder.path(), named, true).unwrap_err().to_string();
        assert!(choose(folder.path(), &[], true).unwrap().is_none());
        assert!(refusal(&[choice("anna", None)]).contains("none is paired"));
        let store = Store::at(folder.path());
        for (number, name) in [(1, "anna"), (2, "bert")] {
            let key = Identity::from_secret([number; 32]).public();
            let address = "192.168.7.1".parse().unwrap();
            let relay = Relay { name: name.parse().unwrap(), key, slot: 1, address, ipv6: true };
            store.change_peers(|peers| Ok(peers.add_relay(relay))).unwrap();
        }
        assert_eq!(choose(folder.path(), &[], true).unwrap().unwrap().tiers, [Tier::Primary; 2]);
        assert!(choose(folder.path(), &[], false).unwrap().is_none());
        let chosen = choose(folder.path(), &[choice("bert", Some("10.0.0.7"))], true).unwrap().unwrap();
        assert_eq!((chosen.relays.len(), chosen.tiers[0]), (1, Tier::Backup));
        assert_eq!(chosen.relays[0].address, "10.0.0.7".parse::<IpAddr>().unwrap());
        assert!(refusal(&[choice("cleo", None)]).contains("anna, bert"));
        assert!(refusal(&[choice("anna", None), choice("anna", None)]).contains("twice"));
    }
}
