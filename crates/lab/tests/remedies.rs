//! Messages lead on: to the field that a reader can change, in the file or on the command line.

use lab::run::{Run, run};
use lab::scenario::{Layer, Override, Scenario, load, load_layers};

const CELL: &str = "name = 'cell'\nduration = '2 s'\nworkload = { kind = 'bulk' }\ncell = {}\n[[relays]]\n";
const TWO: &str = "name = 'two'\nduration = '5 s'\nworkload = { kind = 'bulk' }\n\
    [[relays]]\nname = 'amber'\ncellular = { rate = '5 Mbit/s', delay = '20 ms' }\n\
    [[relays]]\nname = 'birch'\ncellular = { rate = '5 Mbit/s', delay = '20 ms' }\n";

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

#[test]
fn paths_of_the_grid_are_written_in_quotes() {
    let grid = |line: &str| read(&format!("{TWO}[sweep.grid]\n{line}\n"), &[]);
    for (wrong, right) in [
        ("connection.congestion = ['lia']", "\"connection.congestion\" = [\"lia\"]"),
        ("connection.mtu = '1400 B'", "\"connection.mtu\" = [\"1400 B\"]"),
        ("relays.0.cellular.loss = ['1 %']", "\"relays.0.cellular.loss\" = [\"1 %\"]"),
    ] {
        let message = grid(wrong).unwrap_err();
        assert!(message.contains(&format!("help: write paths in quotes: {right}")), "{message}");
        grid(right).unwrap();
    }
}

#[test]
fn a_list_that_replaces_another_is_where_its_mistakes_are() {
    let top = "extends = 'base.toml'\nname = 'top'\n[[relays]]\nname = 'only'\n";
    let layer = |name: &str, text: &str| Layer { name: name.into(), text: text.into() };
    let found = load_layers(layer("top.toml", top), &|_, name| Ok(layer(name, TWO)), &[]);
    let message = found.unwrap_err().to_string();
    assert!(message.starts_with("top.toml:3:1: relays[0].cellular: is missing"), "{message}");
}

#[test]
fn a_default_that_contradicts_a_change_is_named_with_the_change() {
    let message = |changes: &[&str]| read(TWO, changes).unwrap_err();
    let told = message(&["seed=2", "metrics.window=3 s", "connection.mtu=1400 B"]);
    let wanted = "--set metrics.window=3 s: metrics.period (default): 2 s is shorter than the window of 3 s";
    assert!(told.starts_with(wanted), "{told}");
    let told = message(&["cooperation.selection.method=ssrs"]);
    assert!(told.starts_with("--set cooperation.selection.method=ssrs: cooperation.selection.method: "), "{told}");
    let told = message(&["cooperation.selection.method=fixed"]);
    let wanted = "--set cooperation.selection.method=fixed: cooperation.selection.fixed: is missing";
    assert!(told.starts_with(wanted), "{told}");
    // What is wrong without the change stays where it is.
    let text = format!("{TWO}[metrics]\nwindow = '3 s'\n");
    assert!(read(&text, &["seed=2"]).unwrap_err().starts_with("x.toml:"), "{:?}", read(&text, &["seed=2"]));
}

#[test]
fn the_least_number_that_is_advised_is_taken() {
    let message = read(TWO, &["metrics.unit_packets=-1"]).unwrap_err();
    assert!(message.contains("write a whole number from 1 to 4294967295"), "{message}");
    read(TWO, &["metrics.unit_packets=0"]).unwrap_err();
    read(TWO, &["metrics.unit_packets=1"]).unwrap();
}
