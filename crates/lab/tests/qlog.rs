//! Logs of what the engines decided: their format, and that they agree with the results.

use std::collections::BTreeSet;
use std::path::Path;

use lab::run::{Recordings, Run, VirtualTime, run_on};
use lab::scenario::{Override, Scenario, load};
use serde_json::Value;

fn scenario(changes: &[&str]) -> Scenario {
    let overrides: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    load("demo.toml", include_str!("../../../scenarios/demo.toml"), &overrides).unwrap()
}

fn run(scenario: &Scenario, folder: Option<&Path>) -> Run {
    let recordings = Recordings { qlog: folder, ..Recordings::default() };
    let run = run_on(&mut VirtualTime, scenario, recordings, &mut |_| {}).unwrap();
    assert!(run.faults.is_empty(), "{:?}", run.faults);
    run
}

/// Reads JSON text sequences (RFC 7464).
fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let records: Vec<_> = text.split_terminator('\n').map(|line| line.strip_prefix('\x1e').expect(line)).collect();
    records.into_iter().map(|record| serde_json::from_str(record).unwrap()).collect()
}

fn sum(records: &[Value], name: &str, field: &str) -> u64 {
    let named = records.iter().filter(|record| record["name"] == name);
    named.map(|record| record["data"][field].as_u64().unwrap()).sum()
}

#[test]
fn a_log_agrees_with_the_results_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(&["workload.size=3 MB"]);
    let logged = run(&scenario, Some(folder.path()));
    let names: Vec<_> = logged.recordings.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["source.sqlog", "destination.sqlog"]);
    let results = |run: &Run| run.results.reproducible().to_json();
    assert_eq!(results(&logged), results(&run(&scenario, None)));

    let records = records(&folder.path().join("source.sqlog"));
    assert_eq!(records[0]["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(records[0]["title"], "demo");
    assert_eq!(records[0]["description"], "--set workload.size=3 MB");
    assert_eq!(records[0]["trace"]["vantage_point"]["name"], "source");
    let times: Vec<f64> = records[1..].iter().map(|record| record["time"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && times.last().is_some_and(|last| *last > 3000.0));

    let totals = &logged.results.totals;
    let reinjected_bytes = totals.reinjected_bytes.unwrap();
    assert!(reinjected_bytes > 0 && totals.retransmitted_packets > 0, "there is something to log");
    assert_eq!(sum(&records, "mptcp:data_reinjected", "length"), reinjected_bytes);
    let metrics = records.iter().filter(|record| record["name"] == "recovery:metrics_updated");
    let subflows: BTreeSet<u64> = metrics.map(|record| record["data"]["subflow"].as_u64().unwrap()).collect();
    assert_eq!(subflows.len(), scenario.relays.len());
}

/// With MPTCP-rec, data are also sent again to measure paths.
#[test]
fn probes_are_logged_as_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let rec = "connection.receiver_centric={}";
    let logged = run(&scenario(&["workload.size=8 MB", rec]), Some(folder.path()));
    let records = records(&folder.path().join("source.sqlog"));
    assert!(records.iter().any(|record| record["data"]["trigger"] == "probe"));
    assert_eq!(Some(sum(&records, "mptcp:data_reinjected", "length")), logged.results.totals.reinjected_bytes);
}

/// The same scenario and seed give the same octets.
#[test]
fn a_log_is_a_function_of_scenario_and_seed() {
    let octets = || {
        let folder = tempfile::tempdir().unwrap();
        run(&scenario(&["workload.size=500 kB"]), Some(folder.path()));
        ["source.sqlog", "destination.sqlog"].map(|name| std::fs::read(folder.path().join(name)).unwrap())
    };
    assert!(octets() == octets());
}

#[test]
fn relays_that_splice_have_logs_of_their_legs() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(&["workload.size=500 kB", "cooperation.relays=fast-ack"]);
    let logged = run(&scenario, Some(folder.path()));
    assert_eq!(logged.recordings.len(), 2 + scenario.relays.len());
    let records = records(&folder.path().join("relay-1.sqlog"));
    assert_eq!(records[0]["trace"]["vantage_point"]["name"], scenario.relays[0].name.as_str());
    for leg in ["source", "destination"] {
        let of_leg = |record: &&Value| record["data"]["leg"] == leg;
        let names: BTreeSet<_> = records.iter().filter(of_leg).map(|record| record["name"].as_str().unwrap()).collect();
        assert!(names.contains("mptcp:subflow_begun") && names.contains("tcp:state_updated"), "{leg} {names:?}");
    }
    // Data go from the source to the destination.
    assert!(records.iter().any(|record| record["name"] == "recovery:metrics_updated"));
}

/// The documentation lists every event.
#[test]
fn every_event_is_documented() {
    let (source, page) = (include_str!("../../qlog/src/lib.rs"), include_str!("../../../docs/qlog.md"));
    let quoted = source.split('"').filter(|word| {
        ["mptcp:", "tcp:", "recovery:"]
            .iter()
            .any(|space| word.strip_prefix(space).is_some_and(|name| !name.is_empty()))
    });
    let names: BTreeSet<&str> =
        quoted.filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || "_:".contains(c))).collect();
    assert!(names.len() > 15, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/qlog.md lacks {missing:?}");
}
