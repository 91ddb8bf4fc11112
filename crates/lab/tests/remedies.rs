//! Messages lead on: to the field that a reader can change, in the file or on the command line.

use lab::run::{Run, run};
use lab::scenario::{Override, Scenario, load};

const CELL: &str = "name = 'cell'\nduration = '2 s'\nworkload = { kind = 'bulk' }\ncell = {}\n[[relays]]\n";
fn read(text: &str, changes: &[&str]) -> Result<Scenario, String> {
    let changes: Vec<Override> = changes.iter().map(|text| text.parse().unwrap()).collect();
    load("x.toml", text, &changes).map_err(|error| error.to_string())
}

fn run_with(text: &str, changes: &[&str]) -> Run {
    let scenario = read(text, changes).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    run(&scenario, None, &mut |_| {}).unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

/// Values that the check accepts must not fail in the radio models, whose fields have other names.
#[test]
fn the_check_of_a_cell_is_no_more_lenient_than_the_cell() {
    for (refused, accepted) in [
        ("relays[0].bit_rate_max=999 bit/s", "relays[0].bit_rate_max=1 kbit/s"),
        ("cell.uplink_delay=1001 ms", "cell.uplink_delay=1 s"),
        ("cell.core_delay=10001 ms", "cell.core_delay=10 s"),
    ] {
        let (field, value) = accepted.split_once('=').unwrap();
        let message = read(CELL, &[refused]).unwrap_err();
        assert!(message.contains(field) && message.contains(&format!("\"{value}\"")), "{refused}: {message}");
        run_with(CELL, &[accepted]);
    }
}
