//! docs/statistics.md describes every field of a connection's statistics, and no others.

use std::collections::BTreeSet;

use serde_json::Value;
use transport::{ConnectionStats, SubflowId, SubflowStats};
use units::{Duration, Instant};

const PAGE: &str = include_str!("../../../docs/statistics.md");

fn described(heading: &str) -> BTreeSet<String> {
    described_in(PAGE, &format!("## {heading}"))
}

/// Names in the first cells of the table below `heading` of a page.
pub fn described_in(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split(&format!("\n{heading}\n")).nth(1).expect(heading);
    let section = section.split("\n#").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    rows.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`').to_owned()).collect()
}

fn fields(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

fn stats() -> ConnectionStats {
    let [local, remote] = ["10.0.0.1:40000", "10.0.0.2:80"].map(|text| text.parse().unwrap());
    let mut subflow = SubflowStats::unheard(SubflowId(0), local, remote, Instant::ZERO);
    subflow.ssthresh_bytes = u64::MAX;
    ConnectionStats { subflows: vec![subflow], ..ConnectionStats::default() }
}

#[test]
fn every_field_is_described() {
    let connection = serde_json::to_value(stats()).unwrap();
    assert_eq!(fields(&connection), described("Connections"));
    assert_eq!(fields(&connection["subflows"][0]), described("Subflows"));
}

#[test]
fn every_field_of_a_download_is_described() {
    let report = linux::get::GetReport {
        bytes: 1,
        resumed_bytes: 0,
        was_complete: false,
        begun_anew: None,
        duration: Duration::ZERO,
        connection: stats(),
    };
    let report = serde_json::to_value(report).unwrap();
    assert!(fields(&report).iter().all(|field| PAGE.contains(&format!("`{field}`"))), "{report}");
}

#[test]
fn a_threshold_that_is_not_set_is_null() {
    assert_eq!(serde_json::to_value(stats()).unwrap()["subflows"][0]["ssthresh_bytes"], Value::Null);
}
