//! A relay with a volume limit whose disk accepts no more writes.

use std::fs;

use daemon::join::Wanted;
use daemon::links::RelayChoice;
use daemon::proxy::choice::Tier;
use daemon::relay::{Limit, Period, RelayOptions};
use interop::{Files, carried, wait_for, wait_until};

use super::{BYTES, Bed};

#[test]
fn a_relay_that_cannot_write_down_what_it_lends_lends_nothing_until_it_can() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    let files = Files::new(4 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let volume = Some(Limit { bytes: 1_000_000_000, period: Period::Day });
    let relay = bed.lend_with(0, RelayOptions { volume, ..bed.options(0) });
    let relays = vec![RelayChoice { name: "anna".into(), address: None, tier: Tier::Primary }];
    let joined = bed.join_with(Wanted { relays, ..bed.wanted() });
    let transfer = bed.curl(&files, &joined.ready);
    wait_until("it carries", || carried(&bed.status(), 0) > 1_000_000);
    // Even root cannot write there.
    let path = bed.state("anna").join("volume.json");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    wait_until("it says why it lends nothing", || {
        let relay = bed.relay_status(0)["relay"].clone();
        relay["lends"] == "no-uplink" && relay["lost"].to_string().contains("the volume file cannot be written")
    });
    wait_until("the laptop hears so", || {
        bed.status()["uplinks"][0]["lost"].to_string().contains("cannot lend its link now")
    });
    fs::remove_dir(&path).unwrap();
    wait_for(transfer);
    assert!(files.arrived());
    assert!(bed.relay_status(0)["relay"]["lost"].is_null());
    relay.end().unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("bytes"));
}
