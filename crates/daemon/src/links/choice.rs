//! Which relays are used, and in which tier.

use std::path::Path;

use linux::uplink::lent;
use linux::{Error, Result};

use crate::proxy::choice::Tier;
use crate::scoped::ScopedAddress;
use crate::store::{Relay, Store};

/// A relay that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayChoice {
    /// Its local name.
    pub name: String,
    /// Its address, if the user gave one; otherwise the stored address applies.
    pub address: Option<ScopedAddress>,
    /// Its tier.
    pub tier: Tier,
}

/// A relay to use.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The store's entry.
    pub relay: Relay,
    /// The name of its device.
    pub interface: String,
    /// Its tier.
    pub tier: Tier,
}

/// Returns the named relays of the store in `folder`, or all of them if none is named and `by_default` is set. Changes
/// nothing.
///
/// # Errors
/// If there is no relay of a name, or one is named twice; errors of the store.
pub fn choose(folder: &Path, named: &[RelayChoice], by_default: bool) -> Result<Vec<Chosen>> {
    let known = Store::at(folder).peers()?.relays;
    // Of all relays: another `join` that uses others of them must call each device the same.
    let interfaces = lent::names(known.iter().map(|relay| relay.name.as_str()));
    let mut chosen: Vec<(Relay, Tier)> = Vec::new();
    for choice in named {
        let relay =
            known.iter().find(|relay| relay.name.as_str() == choice.name).ok_or_else(|| unknown(choice, &known))?;
        if chosen.iter().any(|(other, _)| other.key == relay.key) {
            return Err(Error::Usage(format!("--relay {} is named twice: name each relay once", choice.name)));
        }
        chosen.push((
            Relay { address: choice.address.clone().unwrap_or_else(|| relay.address.clone()), ..relay.clone() },
            choice.tier,
        ));
    }
    if named.is_empty() && by_default {
        chosen = known.iter().map(|relay| (relay.clone(), Tier::Primary)).collect();
    }
    let interface_of = |relay: &Relay| {
        let of_all = known.iter().zip(&interfaces);
        of_all.filter(|(other, _)| other.key == relay.key).map(|(_, interface)| interface.clone()).next()
    };
    let with_interface =
        chosen.into_iter().filter_map(|(relay, tier)| Some(Chosen { interface: interface_of(&relay)?, relay, tier }));
    Ok(with_interface.collect())
}

fn unknown(choice: &RelayChoice, known: &[Relay]) -> Error {
    let names: Vec<&str> = known.iter().map(|relay| relay.name.as_str()).collect();
    let there = if names.is_empty() { "none is paired".into() } else { format!("paired: {}", names.join(", ")) };
    Error::Usage(format!(
        "--relay {}: no relay of that name is paired with this device ({there}): pair it with anabranch join --pair",
        choice.name
    ))
}

#[cfg(test)]
mod tests {
    use cooperation::channel::Identity;

    use super::*;

    #[test]
    fn a_relay_has_the_same_device_whichever_others_are_chosen() {
        let folder = tempfile::tempdir().unwrap();
        for (number, name) in [(1, "raspberrypi"), (2, "raspberrypi-2")] {
            let key = Identity::from_secret([number; 32]).public();
            let relay = Relay { name: name.parse().unwrap(), key, slot: 1, address: "192.168.7.1".parse().unwrap() };
            Store::at(folder.path()).change_peers(|peers| Ok(peers.add_relay(relay))).unwrap();
        }
        let devices = |names: &[&str]| -> Vec<String> {
            let named: Vec<RelayChoice> = names
                .iter()
                .map(|name| RelayChoice { name: (*name).into(), address: None, tier: Tier::Primary })
                .collect();
            let chosen = choose(folder.path(), &named, true).unwrap();
            chosen.into_iter().map(|chosen| chosen.interface).collect()
        };
        assert_eq!(devices(&[]), ["via-raspberrypi", "via-raspberry-2"]);
        assert_eq!(devices(&["raspberrypi-2"]), ["via-raspberry-2"]);
        assert_eq!(devices(&["raspberrypi-2", "raspberrypi"]), ["via-raspberry-2", "via-raspberrypi"]);
    }

    #[test]
    fn relays_are_chosen_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let choice = |name: &str, address: Option<&str>| RelayChoice {
            name: name.into(),
            address: address.map(|it| it.parse().unwrap()),
            tier: Tier::Backup,
        };
        let refusal = |named: &[RelayChoice]| choose(folder.path(), named, true).unwrap_err().to_string();
        assert!(choose(folder.path(), &[], true).unwrap().is_empty());
        assert!(refusal(&[choice("anna", None)]).contains("none is paired"));
        let store = Store::at(folder.path());
        for (number, name) in [(1, "anna"), (2, "bert")] {
            let key = Identity::from_secret([number; 32]).public();
            let address = "192.168.7.1".parse().unwrap();
            let relay = Relay { name: name.parse().unwrap(), key, slot: 1, address };
            store.change_peers(|peers| Ok(peers.add_relay(relay))).unwrap();
        }
        let all = choose(folder.path(), &[], true).unwrap();
        assert!(all.len() == 2 && all.iter().all(|chosen| chosen.tier == Tier::Primary));
        assert!(choose(folder.path(), &[], false).unwrap().is_empty());
        let chosen = choose(folder.path(), &[choice("bert", Some("10.0.0.7"))], true).unwrap();
        assert_eq!((chosen.len(), chosen[0].tier, chosen[0].interface.as_str()), (1, Tier::Backup, "via-bert"));
        assert_eq!(chosen[0].relay.address, "10.0.0.7".parse().unwrap());
        assert!(refusal(&[choice("cleo", None)]).contains("anna, bert"));
        assert!(refusal(&[choice("anna", None), choice("anna", None)]).contains("twice"));
    }
}
