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
    let layer = |name: &str, text: &str| Layer { name: name.into(), text: text.into(), ships: false };
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

#[test]
fn a_beginning_over_a_dead_path_is_noted_and_named() {
    for (change, field) in [
        ("relays[0].cellular.loss=100 %", "relays[0].cellular.loss"),
        ("relays[0].cellular.loss={ mean = '100 %' }", "relays[0].cellular.loss"),
        ("relays[0].cellular.uplink.loss=100 %", "relays[0].cellular.uplink.loss"),
        ("relays[0].wifi.loss=100 %", "relays[0].wifi.loss"),
        ("relays[0].cellular.rate=90 bit/s", "relays[0].cellular.rate"),
        ("relays[0].cellular.uplink.rate=1 bit/s", "relays[0].cellular.uplink.rate"),
        ("relays[0].cellular.outages=[{ from = '0 s', until = '5 s' }]", "relays[0].cellular.outages"),
    ] {
        let notes = read(TWO, &[change]).unwrap().notes();
        assert!(notes.len() == 1 && notes[0].starts_with(&format!("{field}: ")), "{change}: {notes:?}");
        assert!(notes[0].contains("over the first relay, amber"), "{notes:?}");
        let faults = run_with(TWO, &[change]).faults;
        let told =
            "nothing arrived within 5 s: a connection begins over the first relay, amber, where nothing gets through";
        assert!(faults.len() == 1 && faults[0].starts_with(&format!("{told} ({field}: ")), "{change}: {faults:?}");
    }
    let bottleneck = "bottleneck={ rate = '5 Mbit/s', delay = '1 ms', loss = '100 %' }";
    let faults = run_with(TWO, &[bottleneck]).faults;
    assert_eq!(faults, ["nothing arrived within 5 s: nothing gets through the bottleneck (bottleneck.loss: 100 %)"]);
}

#[test]
fn a_beginning_that_may_succeed_is_not_noted() {
    for change in [
        "relays[1].cellular.loss=100 %",
        "relays[0].cellular.loss=99 %",
        "relays[0].cellular.outages=[{ from = '0 s', until = '4 s' }]",
        "workload={ kind = 'none' }",
    ] {
        let dead = ["relays[0].cellular.loss=100 %", change];
        let changes = if change.starts_with("workload") { &dead[..] } else { &dead[1..] };
        assert_eq!(read(TWO, changes).unwrap().notes(), [""; 0], "{change}");
    }
    assert_eq!(run_with(TWO, &["relays[1].cellular.loss=100 %"]).faults, [""; 0]);
    let gridded = format!("{TWO}[sweep.grid]\n\"relays[0].cellular.loss\" = ['0 %', '100 %']\n");
    assert_eq!(read(&gridded, &["relays[0].cellular.loss=100 %"]).unwrap().notes(), [""; 0]);
}

#[test]
fn a_rate_that_is_lowered_by_more_than_there_is_is_noted() {
    let flow = |changes: &str| {
        let change = format!("relays[0].local=[{{ kind = 'udp', rate = '1 Mbit/s', changes = [{changes}] }}]");
        read(TWO, &[&change]).unwrap().notes()
    };
    let notes = flow("{ at = '1 s', lower = '2 Mbit/s' }");
    let told = "relays[0].local[0].changes[0].lower: 2 Mbit/s is more than the 1 Mbit/s that are asked for before 1 s";
    assert!(notes.len() == 1 && notes[0].starts_with(told), "{notes:?}");
    assert_eq!(flow("{ at = '1 s', raise = '1 Mbit/s' }, { at = '2 s', lower = '2 Mbit/s' }"), [""; 0]);
    assert_eq!(flow("{ at = '1 s', to = '3 Mbit/s' }, { at = '2 s', lower = '2 Mbit/s' }"), [""; 0]);
}

/// Settings of modules that need another setting.
#[test]
fn settings_of_modules_without_effect_are_noted() {
    let notes = |changes: &[&str]| read(TWO, changes).unwrap().notes();
    let by_rate = "cooperation.forwarding={ range_packets = 10, shares = \"by-rate\" }";
    let told = notes(&[by_rate]);
    assert!(
        told.len() == 1 && told[0].starts_with("cooperation.forwarding.shares: \"by-rate\" does nothing"),
        "{told:?}"
    );
    let ssrs = ["cooperation.selection.method=ssrs", "target={ bit_rate = \"1 Mbit/s\" }"];
    assert_eq!(notes(&[&[by_rate], &ssrs[..]].concat()), [""; 0]);
    let often = [
        "cooperation.selection.period=1 s",
        "cooperation.selection.advert_period=250 ms",
        "cooperation.selection.estimator=measured-delivery",
    ];
    let told = notes(&often);
    let beginning = "cooperation.selection: period, advert_period, estimator do nothing with method = \"all\"";
    assert!(told.len() == 1 && told[0].starts_with(beginning), "{told:?}");
    assert_eq!(notes(&[&often[..], &ssrs].concat()), [""; 0]);
    let delays = "cooperation.adaptive_congestion.relay_delays=true";
    let told = notes(&[delays]);
    let beginning = "cooperation.adaptive_congestion.relay_delays: does nothing";
    assert!(told.len() == 1 && told[0].starts_with(beginning), "{told:?}");
    assert_eq!(notes(&[delays, "cooperation.relays=fast-ack"]), [""; 0]);
    let sharing = |more: &str| notes(&[&format!("cooperation.bandwidth_sharing={{ {more} }}")]);
    let rest = "nothing beside fixed, which gives the signal of every relay";
    assert_eq!(
        sharing("rho = 'eq7.3', fixed = [2.0, 1.0]"),
        [format!("cooperation.bandwidth_sharing: rho does {rest}")]
    );
    assert_eq!(
        sharing("rho = 'eq7.3', demands = 'estimated', fixed = [2.0, 1.0]"),
        [format!("cooperation.bandwidth_sharing: rho and demands do {rest}")]
    );
    assert_eq!(sharing("fixed = [2.0, 1.0]"), [""; 0]);
    assert_eq!(sharing("rho = 'eq7.3', demands = 'estimated'"), [""; 0]);
}

/// Whoever lets a scenario run longer expects to see more of the rate, not the same minute again.
#[test]
fn a_generated_rate_that_repeats_within_the_run_is_noted() {
    let notes = |changes: &[&str]| read(TWO, changes).unwrap().notes();
    let rate = |more: &str| format!("relays[1].cellular.rate={{ mean = \"2 Mbit/s\"{more} }}");
    let long = "duration=61 s";
    let told = "relays[1].cellular.rate.period: the rate repeats every 60 s, and the run lasts 61 s";
    assert_eq!(notes(&[&rate(", variation = \"50 %\""), long]), [told]);
    assert_eq!(notes(&[&rate(", variation = \"50 %\", period = \"61 s\""), long]), [""; 0]);
    assert_eq!(notes(&[&rate(", variation = \"50 %\""), "duration=60 s"]), [""; 0]);
    assert_eq!(notes(&[&rate(""), long, "relays[1].cellular.rate.variation=0 %"]), [""; 0], "it is constant");
    let ends = "workload={ kind = \"generated\", size = \"1 MB\" }";
    assert_eq!(notes(&[&rate(", variation = \"50 %\""), long, ends]), [""; 0], "the run ends with its data");
}
