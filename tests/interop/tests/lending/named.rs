//! A relay that has moved, named with its new place.

use std::net::IpAddr;
use std::path::Path;

use daemon::control::Request;
use daemon::join::Wanted;
use daemon::links::RelayChoice;
use daemon::proxy::choice::Tier;
use daemon::store::Store;
use interop::{USB, ask};

use super::Bed;

#[test]
fn a_relay_is_named_with_its_tier_and_its_place() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    bed.pair(0);
    let choice = |name: &str, address: Option<IpAddr>| RelayChoice {
        name: name.into(),
        address: address.map(Into::into),
        tier: Tier::Backup,
    };
    // It has moved, and the user knows where to.
    let store = Store::at(&bed.state("laptop"));
    store
        .change_peers(|peers| {
            peers.relays[0].address = "192.168.42.77".parse().unwrap();
            Ok(())
        })
        .unwrap();
    let _relay = bed.lend(0);
    let wanted = Wanted {
        interfaces: vec![(USB[1].into(), Tier::Primary)],
        relays: vec![choice("anna", Some(bed.address(0)))],
        state: bed.state("laptop"),
    };
    let _joined = bed.join_with(wanted);
    let status = bed.status();
    let shown =
        [0, 1].map(|index| (status["uplinks"][index]["interface"].clone(), status["uplinks"][index]["tier"].clone()));
    assert_eq!(shown, [("usb1".into(), "primary".into()), ("via-anna".into(), "backup".into())]);
    assert!(status["uplinks"][1]["lost"].is_null(), "{status:#}");
    assert!(Path::new(&bed.state("laptop").join("identity")).exists());
}

/// IPv4 refuses two default routes with the same metric.
#[test]
fn two_joins_have_a_relay_each_and_what_is_taken_is_done_without() {
    let Some(bed) = Bed::with_phones(&[0, 1]) else { return };
    (0..2).for_each(|number| bed.pair(number));
    let _relays = [0, 1].map(|number| bed.lend(number));
    let choice = |name: &str| RelayChoice { name: name.into(), address: None, tier: Tier::Primary };
    let wanted = |relays: &[&str]| Wanted {
        interfaces: Vec::new(),
        relays: relays.iter().copied().map(choice).collect(),
        state: bed.state("laptop"),
    };
    let _first = bed.join_with(wanted(&["anna"]));
    // It is ready only when an uplink can be used.
    let second = bed.join_with(wanted(&["anna", "bert"]));
    let status = ask(&bed.net, "anabranch1", &Request::Status).unwrap();
    let uplinks = status["uplinks"].as_array().unwrap();
    assert_eq!(uplinks.iter().map(|uplink| uplink["interface"].as_str().unwrap()).collect::<Vec<_>>(), ["via-bert"]);
    assert!(uplinks[0]["lost"].is_null(), "{status:#}");
    second.end().unwrap();
}
