//! A relay that is elsewhere than it was, named with its place.

use std::net::IpAddr;
use std::path::Path;

use daemon::join::Wanted;
use daemon::links::RelayChoice;
use daemon::proxy::choice::Tier;
use daemon::store::Store;
use interop::USB;

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
    // It is elsewhere now, and somebody knows where.
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
