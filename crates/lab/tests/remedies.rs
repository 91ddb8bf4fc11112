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
