//! Runs in a cell and on a shared channel, and refused settings.

use lab::present::{report, summary};
use lab::run::{Run, run};
use lab::scenario::{LoadError, Override, Scenario, load};

const CELL: &str = include_str!("../../../scenarios/cell.toml");

fn read(text: &str, overrides: &[&str]) -> Result<Scenario, LoadError> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    load("cell.toml", text, &overrides)
}

fn run_cell(overrides: &[&str]) -> Run {
    let run = run(&read(CELL, overrides).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    run
}

#[test]
fn ten_relays_carry_data_beside_their_own_traffic() {
    let results = run_cell(&["duration=12 s"]).results;
    assert_eq!((results.relays.len(), results.paths().len()), (10, 10));
    assert!(results.relays.iter().all(|relay| relay.carried_bytes > 100_000 && relay.capacity_bps.unwrap() > 1e6));
    let carried: u64 = results.relays.iter().map(|relay| relay.carried_bytes).sum();
    let arrived: u64 = results.subflows.iter().map(|subflow| subflow.received_bytes).sum();
    assert!(carried <= arrived && carried > arrived * 9 / 10, "{carried} of {arrived}");
    // The cell grants all UEs equal shares, and those that stream demand less.
    let streams = &results.relays[..4];
    assert!(streams.iter().all(|relay| relay.local_ratio().unwrap() > 0.95), "{streams:?}");
    assert!(results.totals.intact && results.totals.completed);
}

#[test]
fn a_run_in_a_cell_is_a_function_of_scenario_and_seed() {
    let json = |overrides: &[&str]| run_cell(overrides).results.reproducible().to_json();
    let first = json(&["duration=3 s"]);
    assert_eq!(first, json(&["duration=3 s"]));
    assert_ne!(first, json(&["duration=3 s", "seed=2"]));
}

#[test]
fn a_relay_that_leaves_carries_nothing_more_and_loses_nothing() {
    let results = run_cell(&["duration=20 s", "relays[9].leaves=5 s"]).results;
    let series = &results.series;
    let after: f64 = (0..series.time_s.len())
        .filter(|window| series.time_s[*window] > 6.0)
        .map(|window| series.relays[9].carried_bps[window])
        .sum();
    assert_eq!(after, 0.0);
    let windows = series.time_s.iter().zip(&series.relays[9].available_bps).zip(&series.relays[9].capacity_bps);
    for ((time_s, available_bps), capacity_bps) in windows {
        assert_eq!(available_bps.unwrap() > 0.0, *time_s < 5.0, "{available_bps:?} at {time_s} s");
        assert_eq!(capacity_bps.unwrap() > 0.0, *time_s < 5.0, "{capacity_bps:?} at {time_s} s");
    }
    assert!(results.totals.intact && results.totals.goodput_in_order_bps > 5e6, "{:?}", results.totals);
}

#[test]
fn results_tell_of_handovers() {
    let text = include_str!("../../../scenarios/handover.toml");
    let of = |overrides: &[&str]| run(&read(text, overrides).unwrap(), None, &mut |_| {}).unwrap().results;
    let results = of(&[]);
    let [train, house] = &results.relays[..] else { panic!("{:?}", results.relays) };
    // The sites are 3 km apart: the train, at 41.7 m/s from 300 m on, is between them after 30 s.
    let [.., last] = &train.handovers[..] else { panic!("{train:?}") };
    assert!(train.handovers.iter().all(|change| (20.0..45.0).contains(&change.at_s)), "{train:?}");
    assert_eq!((train.handovers[0].from, last.to, train.site), (0, 1, Some(1)));
    assert_eq!((house.handovers.len(), house.site), (0, Some(0)));
    let (table, html) = (summary(&results), report::render(&results));
    let count = train.handovers.len().to_string();
    let row = table.lines().find(|line| line.trim_start().starts_with("train ")).unwrap();
    assert!(table.contains("handovers") && row.split_whitespace().any(|cell| cell == count), "{table}");
    assert!(html.contains("from the first eNB at the start") && html.contains("Upright lines are handovers"));
    assert_eq!(html.matches("V104\"/>").count(), train.handovers.len());
    // On the map and over time, a ring for each handover; over time, a bar for each stay at an eNB.
    assert_eq!(html.matches("<circle class=\"change\"").count(), 2 * train.handovers.len());
    assert_eq!(html.matches("<title>train: eNB ").count(), train.handovers.len() + 1);
    assert!(html.contains("<title>house: eNB 0 from 0.0 to ") && html.contains(">eNB 1</text>"));
    let left = of(&["duration=45 s", "relays[0].leaves=10 s"]);
    assert_eq!((left.relays[0].handovers.len(), left.relays[0].site), (0, Some(0)));
}

#[test]
fn one_site_has_no_handovers() {
    let results = run_cell(&["duration=2 s"]).results;
    let (json, table) = (results.to_json(), summary(&results));
    assert!(!json.contains("\"site\"") && !json.contains("handovers") && !table.contains("handovers"), "{table}");
    assert!(report::render(&results).contains("from the eNB at the start are to scale"));
}

/// The windows end every tenth of a second.
#[test]
fn relays_may_leave_together_at_the_end_of_a_window() {
    let series = run_cell(&["duration=4 s", "relays[7].leaves=3 s", "relays[9].leaves=3 s"]).results.series;
    let at = series.time_s.iter().position(|time_s| (time_s - 3.0).abs() < 1e-9).unwrap();
    let capacity_bps = |relay: usize| [at - 1, at].map(|window| series.relays[relay].capacity_bps[window].unwrap());
    for relay in [7, 9] {
        let [before, then] = capacity_bps(relay);
        assert!(before > 0.0 && then == 0.0, "relay {relay}: {before}, {then}");
    }
}

#[test]
fn all_relays_may_leave() {
    let leave = ["duration=5 s", "relays[*].leaves=1 s"];
    let results = run(&read(CELL, &leave).unwrap(), None, &mut |_| {}).unwrap().results;
    assert!(results.totals.intact && results.totals.delivered_bytes > 0);
}

#[test]
fn a_relay_may_be_gone_from_the_start() {
    let results = run_cell(&["duration=5 s", "relays[9].leaves=0 s"]).results;
    assert_eq!(results.relays[9].carried_bytes, 0);
    assert!(results.totals.delivered_bytes > 1_000_000);
}

#[test]
fn local_traffic_alone_needs_no_connection() {
    let text = "name = \"x\"\nduration = \"10 s\"\nworkload = { kind = \"none\" }\n[cell]\nfading = \"none\"\n\
        [[relays]]\ncount = 4\n[[relays.local]]\nkind = \"udp\"\nrate = \"20 Mbit/s\"\n";
    let results = run(&read(text, &[]).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(results.faults, [""; 0]);
    let got: Vec<u64> = results.results.relays.iter().map(|relay| relay.local_received_bytes).collect();
    // Blind equal throughput (claim C01).
    let (least, most) = (got.iter().min().unwrap(), got.iter().max().unwrap());
    assert!(*least > 1_000_000 && *most as f64 / *least as f64 <= 1.05, "{got:?}");
}

#[test]
fn several_connections_share_the_links() {
    let text = "name = \"x\"\nduration = \"60 s\"\nworkload = { kind = \"generated\", size = \"500 kB\", connections = 5 }\n\
        [[relays]]\ncount = 2\ncellular = { rate = \"4 Mbit/s\", delay = \"20 ms\" }\n";
    let results = run(&read(text, &[]).unwrap(), None, &mut |_| {}).unwrap().results;
    let metrics = results.metrics.unwrap();
    assert_eq!((metrics.connections.len(), results.totals.delivered_bytes), (5, 2_500_000));
    assert!(results.totals.intact && metrics.jain_index.unwrap() > 0.8, "{metrics:?}");
    assert_eq!(results.subflows.len(), 10);
    let of_series: Vec<_> = results.series.subflows.iter().map(|subflow| (subflow.id, &subflow.path)).collect();
    let of_results: Vec<_> = results.subflows.iter().map(|subflow| (subflow.id, &subflow.path)).collect();
    assert_eq!(of_results, of_series);
    for connection in 0..5 {
        let of_it = results.subflows.iter().filter(|subflow| subflow.connection == Some(connection));
        let bytes: u64 = of_it.map(|subflow| subflow.received_bytes).sum();
        assert!((500_000..600_000).contains(&bytes), "{bytes} of connection {connection}");
    }
    assert!(!run_cell(&["duration=2 s"]).results.to_json().contains("\"connection\": 0"));
}

#[test]
fn contradictions_are_named() {
    let mistake = |overrides: &[&str]| read(CELL, overrides).unwrap_err().to_string();
    let expect = |overrides: &[&str], parts: &[&str]| {
        let mistake = mistake(overrides);
        assert!(parts.iter().all(|part| mistake.contains(part)), "{mistake}\n{parts:?}");
    };
    expect(&["cell.scheduler=fairest"], &["cell.scheduler", "known: blind-equal-throughput"]);
    expect(&["cell.resource_blocks=51"], &["no LTE carrier"]);
    expect(&["cell.queue=0 packets"], &["holds no packet"]);
    expect(&["wlan.rate=11 Mbit/s"], &["wlan.rate", "IEEE 802.11a"]);
    expect(&["relays[2].place.distance_m=[900.0, 800.0]"], &["relays[2].place.distance_m", "lower bound first"]);
    expect(&["relays[2].cellular={ rate = \"1 Mbit/s\", delay = \"1 ms\" }"], &["contradicts the section [cell]"]);
    expect(&["relays[2].local[0].rate={ uniform = [\"2 Mbit/s\", \"1 Mbit/s\"] }"], &["lower bound first"]);
    expect(&["relays[2].local[0].congestion=newreno"], &["datagrams have no congestion control"]);
    expect(&["relays[2].local[0].changes=[{ at = \"1 s\" }]"], &["has 0 of raise, lower and to"]);
    expect(&["relays[8].local[0].stop=5 s"], &["is not after its start"]);
    expect(&["cooperation.selection.method=ssrs"], &["none is set", "target"]);
    expect(&["cooperation.selection.fixed=[10]"], &["there is no relay 10"]);
    expect(&["cooperation.selection.method=fixed"], &["is missing"]);
    expect(&["cooperation.forwarding={}"], &["cooperation.forwarding.range_packets", "no default"]);
    expect(&["metrics.analysis={ from = \"9 s\", to = \"3 s\" }"], &["metrics.analysis"]);
    expect(&["target={ bit_rate = \"3 Mbit/s\", tolerance = \"0 %\" }"], &["target.tolerance"]);
    expect(&["workload.connections=0"], &["workload.connections"]);
    let ranges = "cooperation.forwarding={ range_packets = 100 }";
    expect(&["workload.connections=2", ranges], &["cooperation.forwarding", "one connection", "connections = 1"]);
    expect(&["relays[0].count=0"], &["relays[0].count", "not a valid number of relays"]);
    let no_relays = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[cell]\n";
    assert!(read(no_relays, &[]).unwrap_err().to_string().contains("no path from the source"));
}
