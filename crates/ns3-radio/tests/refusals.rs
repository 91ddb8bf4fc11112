//! What ns-3's models cannot do is refused by name.

use lab::run::{Recordings, RunError};
use lab::scenario::{Scenario, load};

fn scenario(text: &str) -> Scenario {
    let head = "name = 'refused'\nduration = '1 s'\nworkload = { kind = 'bulk' }\n";
    load("refused.toml", &format!("{head}{text}"), &[]).unwrap()
}

fn refused(text: &str) -> Vec<&'static str> {
    match ns3_radio::check(&scenario(text)) {
        Err(RunError::Unsupported(refused)) => refused.into_iter().map(|one| one.field).collect(),
        other => panic!("{text}: {other:?}"),
    }
}

const LINKS: &str = "[[relays]]\ncellular = { rate = '8 Mbit/s', delay = '20 ms' }\n";
const PLACE: &str = "[[relays]]\nplace = { distance_m = 900.0 }\n";

#[test]
fn every_field_that_cannot_be_had_is_named() {
    let wifi = "wifi = { rate = '50 Mbit/s', delay = '1 ms' }\n";
    assert_eq!(refused(&format!("{LINKS}{wifi}")), ["cell"]);
    assert_eq!(refused(&format!("[cell]\n[wlan]\n{PLACE}")), ["cell.scheduler"]);
    let odd = "[cell]\nscheduler = 'maximum-throughput'\nshadowing_db = 3.0\npath_loss = 'macro'\nearly_drop_above = '10 kB'\n\
        [wlan]\nframe_loss = '1 %'\n";
    let fields = ["cell.scheduler", "cell.shadowing_db", "cell.early_drop_above", "cell.path_loss", "wlan.frame_loss"];
    assert_eq!(refused(&format!("{odd}{PLACE}")), fields);
    let walk = "[[relays]]\nplace = { distance_m = 900.0, walk = { to_m = [0.0, 100.0], speed_kmh = 3.0 } }\n";
    assert_eq!(refused(&format!("[cell]\nscheduler = 'round-robin'\n[wlan]\n{walk}")), ["relays.place.walk"]);
}

#[test]
fn a_run_refuses_before_it_starts_anything() {
    let error = ns3_radio::run(&scenario(&format!("[cell]\n[wlan]\n{PLACE}")), Recordings::default(), &mut |_| {});
    assert!(error.unwrap_err().to_string().contains("--set cell.scheduler=blind-equal-throughput-fd"));
}
