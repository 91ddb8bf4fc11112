//! Whole runs beside those with the built-in radio.

use std::sync::OnceLock;

use lab::measure::results::Results;
use lab::run::{Recordings, Run};
use lab::scenario::{Override, Scenario, load};

use crate::build;

/// Three phones in a cell, each with 2 Mbit/s, part of which their owners use.
const PHONES: &str = "
    name = 'phones'
    duration = '6 s'
    target = { bit_rate = '3 Mbit/s', tolerance = '10 %' }
    workload = { kind = 'bulk' }
    connection = { congestion = 'lia' }
    [metrics]
    period = '2 s'
    [cell]
    scheduler = 'blind-equal-throughput-fd'
    [wlan]
    [[relays]]
    count = 3
    place = { distance_m = [800.0, 1000.0] }
    bit_rate_max = '2 Mbit/s'
    [[relays.local]]
    kind = 'udp'
    rate = '0.5 Mbit/s'
";

/// Returns whether the program for the radio is there, once it is built.
fn is_built() -> bool {
    static BUILT: OnceLock<bool> = OnceLock::new();
    *BUILT.get_or_init(|| build::make(&["radio"]).is_some())
}

fn phones(settings: &[&str]) -> Scenario {
    let overrides: Vec<Override> = settings.iter().map(|text| text.parse().unwrap()).collect();
    load("phones.toml", PHONES, &overrides).unwrap()
}

fn run_there(scenario: &Scenario, recordings: Recordings<'_>) -> Run {
    let run = ns3_radio::run(scenario, recordings, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    run
}

fn there(settings: &[&str]) -> Results {
    run_there(&phones(settings), Recordings::default()).results
}

fn here(settings: &[&str]) -> Results {
    let run = lab::run::run(&phones(settings), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    run.results
}

fn assert_near(what: &str, ours: f64, theirs: f64, tolerance: f64) {
    assert!((theirs / ours - 1.0).abs() < tolerance, "{what}: {ours} here, {theirs} with ns-3");
}

#[test]
fn throughput_and_owners_are_as_with_the_built_in_radio() {
    if !is_built() {
        return;
    }
    let (ours, theirs) = (here(&[]), there(&[]));
    assert_eq!(theirs.manifest.backend, "ns3");
    assert!(theirs.totals.intact);
    assert_near("delivered", ours.totals.delivered_bytes as f64, theirs.totals.delivered_bytes as f64, 0.05);
    for (ours, theirs) in ours.relays.iter().zip(&theirs.relays) {
        assert_near(&ours.name, ours.carried_bytes as f64, theirs.carried_bytes as f64, 0.15);
        let owner = theirs.local_demand_bytes.map(|demand| theirs.local_received_bytes as f64 / demand as f64);
        assert!(owner.is_some_and(|share| share > 0.9), "{}: {owner:?}", theirs.name);
    }
}

#[test]
fn a_run_is_a_function_of_scenario_and_seed() {
    if !is_built() {
        return;
    }
    let outcome = |seed| there(&["duration=2 s", seed]).reproducible().to_json();
    let one = outcome("seed=1");
    assert_eq!(outcome("seed=1"), one);
    assert_ne!(outcome("seed=2").replace("\"seed\": 2", "\"seed\": 1"), one);
}

/// The relays' adverts cross the channel, too.
#[test]
fn the_same_relays_are_selected_for_a_target() {
    if !is_built() {
        return;
    }
    let modules = ["target.tolerance=20 %", "cooperation.selection.method=ssrs", "duration=12 s"];
    let (ours, theirs) = (here(&modules), there(&modules));
    let chosen = |results: &Results| results.subflows.iter().filter(|one| one.received_bytes > 100_000).count();
    assert_eq!(chosen(&theirs), chosen(&ours));
    assert_near("delivered", ours.totals.delivered_bytes as f64, theirs.totals.delivered_bytes as f64, 0.05);
}

#[test]
fn a_relay_that_leaves_takes_its_traffic_along() {
    if !is_built() {
        return;
    }
    let results = there(&["relays[0].leaves=2 s"]);
    let last = |relay: usize| results.series.relays[relay].carried_bps.iter().rev().take(4).sum::<f64>();
    assert_eq!(last(0), 0.0);
    assert!(last(1) > 1e6 && last(2) > 1e6, "{} {}", last(1), last(2));
}

#[test]
fn a_full_queue_loses_packets_that_are_counted_and_repaired() {
    if !is_built() {
        return;
    }
    let results = there(&["cell.queue=10 kB", "workload.kind=generated", "workload.size=2 MB", "duration=60 s"]);
    assert!(results.totals.completed && results.totals.intact);
    assert!(results.subflows.iter().any(|subflow| subflow.lost_packets > 0), "{:?}", results.subflows);
}

#[test]
fn captures_and_logs_are_written() {
    if !is_built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let recordings = Recordings { pcap: Some(dir.path()), qlog: Some(dir.path()) };
    let run = run_there(&phones(&["duration=1 s"]), recordings);
    assert_eq!(run.recordings.len(), 4, "{:?}", run.recordings);
}
