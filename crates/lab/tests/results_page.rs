//! docs/results.md describes every field of the results.

use std::collections::{BTreeMap, BTreeSet};

use lab::measure::results::{
    BottleneckResults, BottleneckSeries, ControlResults, FileDigest, Handover, Hindsight, LatencyResults, Lateness,
    Migration, RelayResults, Results, SelectionPoint, SelectionResults, VideoResults,
};
use lab::present::{Contrast, Side, Summary};
use lab::run::run;
use lab::run::sweep::{Journal, Plan, Record};
use lab::scenario::load;
use serde_json::Value;

/// What the page says: first cells of the tables, by heading.
type Page = BTreeMap<String, BTreeSet<String>>;

/// Videos, short flows, prices, held data, several connections and other clocks, so that every part has contents.
const RICH: &str = r#"
    name = "rich"
    duration = "8 s"
    workload = { kind = "bulk" }
    target = { bit_rate = "2 Mbit/s" }
    metrics = { unit_clocks = true }
    cell = {}
    bottleneck = { rate = "50 Mbit/s", delay = "5 ms" }
    [cooperation]
    selection = { method = "ssrs", energy_weight = 1.0 }
    forwarding = {}
    [[relays]]
    count = 4
    energy_nj_per_bit = 200.0
    local = [
        { kind = "video", rate = "0.3 Mbit/s" },
        { kind = "short-flows", sizes = "10 kB", pauses = "1 s" },
        { kind = "tcp", start = "4 s" },
    ]
    [[variants]]
    name = "plain"
    [[variants]]
    name = "cubic"
    set = { "connection.congestion" = "cubic" }
    [sweep]
    seeds = "1..2"
"#;

fn quoted(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split('`').skip(1).step_by(2).map(String::from)
}

fn page() -> Page {
    let (mut page, mut headings) = (Page::new(), Vec::new());
    for line in include_str!("../../../docs/results.md").lines() {
        if line.starts_with('#') {
            headings = quoted(line).collect();
        } else if let Some(row) = line.strip_prefix("| ") {
            let cell = row.split(" | ").next().unwrap_or_default();
            let fields: Vec<String> = quoted(cell).collect();
            headings.iter().for_each(|heading| page.entry(heading.clone()).or_default().extend(fields.clone()));
        }
    }
    page
}

/// Fields of `value` that `page` lacks below the heading `at`; lists count as their items.
fn lacks(page: &Page, at: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| lacks(page, at, item, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                if !page.get(at).is_some_and(|fields| fields.contains(name)) {
                    found.insert(format!("{name} below the heading `{at}`"));
                }
                let inner = if at == "results" { name.clone() } else { format!("{at}.{name}") };
                // The scenario has a page of its own.
                if inner != "manifest.content" {
                    lacks(page, &inner, value, found);
                }
            }
        }
        _ => {}
    }
}

#[track_caller]
fn assert_nothing(lacking: &BTreeSet<String>) {
    assert!(lacking.is_empty(), "docs/results.md lacks: {lacking:#?}");
}

/// The results with every part that may be missing.
fn whole(mut results: Results) -> Results {
    let totals = &mut results.totals;
    (totals.interrupted, totals.subflows_reset) = (true, Some(1));
    (totals.video, totals.answers) = (Some(VideoResults::default()), Some(LatencyResults::default()));
    (totals.control, totals.lateness) = (Some(ControlResults::default()), Some(Lateness::default()));
    results.subflows.iter_mut().for_each(|subflow| subflow.connection = Some(0));
    results.series.relays.iter_mut().for_each(|relay| relay.hold_queue_bytes = vec![0]);
    results.relays.push(RelayResults {
        local_video: Some(VideoResults::default()),
        local_flows: Some(LatencyResults::default()),
        site: Some(0),
        handovers: vec![Handover { at_s: 1.0, from: 0, to: 1 }],
        ..RelayResults::default()
    });
    results.manifest.world = "--backend linux --source engine".into();
    results.manifest.files = vec![FileDigest { path: String::new(), sha256: None }];
    results.series.bottleneck = Some(BottleneckSeries::default());
    results.bottleneck = Some(BottleneckResults::default());
    results.selection = Some(SelectionResults {
        migrations: vec![Migration::default()],
        points: vec![SelectionPoint::default()],
        hindsight: Some(Hindsight::default()),
        ..SelectionResults::default()
    });
    results
}

#[test]
fn every_field_of_results_is_described() {
    let results = whole(run(&load("rich.toml", RICH, &[]).unwrap(), None, &mut |_| {}).unwrap().results);
    let value = serde_json::to_value(&results).unwrap();
    for part in [
        "/subflows/0",
        "/relays/0",
        "/series/relays/0",
        "/metrics/unit_clocks",
        "/metrics/connections/0",
        "/metrics/delivery_delay/histogram",
    ] {
        assert!(value.pointer(part).is_some_and(Value::is_object), "{part} is missing, so nothing compares it");
    }
    let mut lacking = BTreeSet::new();
    lacks(&page(), "results", &value, &mut lacking);
    assert_nothing(&lacking);
}

#[test]
fn a_field_that_the_page_lacks_is_found() {
    let mut lacking = BTreeSet::new();
    lacks(&page(), "results", &serde_json::json!({ "relays": [{ "name": "amber", "colour": 7 }] }), &mut lacking);
    assert_eq!(lacking.into_iter().collect::<Vec<_>>(), ["colour below the heading `relays`"]);
}

fn swept() -> (Plan, Vec<Record>) {
    let plan = Plan::new(|overrides| load("rich.toml", RICH, overrides), &[], None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("runs.jsonl"), &plan, false).unwrap();
    lab::run::sweep::run(&plan, &mut journal, 2, &mut |_| {}).unwrap();
    let records = journal.records().to_vec();
    (plan, records)
}

/// The parts whose fields are columns under a prefix.
const PREFIXES: [(&str, &str); 13] = [
    ("", "totals"),
    ("video.", "totals.video"),
    ("answers.", "totals.answers"),
    ("control.", "totals.control"),
    ("lateness.", "totals.lateness"),
    ("analysis.", "metrics.summary"),
    ("analysis.", "selection.hindsight"),
    ("whole.", "metrics.totals"),
    ("delivery_delay.", "metrics.delivery_delay"),
    ("blocks.", "metrics.blocks"),
    ("bottleneck.", "bottleneck"),
    ("local_video.", "relays.local_video"),
    ("local_flows.", "relays.local_flows"),
];

#[test]
fn every_column_of_a_sweep_is_described() {
    let (page, (plan, records)) = (page(), swept());
    let own = &page["runs.csv"];
    let is_told = |column: &str| {
        let by_clock = column.strip_prefix("clocks.").and_then(|rest| rest.split_once('.'));
        let path = column.strip_prefix("path.").map(|rest| rest.ends_with(".throughput_bps"));
        let under = |(prefix, part): &(&str, &str)| {
            let is_known = prefix.is_empty() || own.contains(*prefix);
            column.strip_prefix(prefix).is_some_and(|field| is_known && page[*part].contains(field))
        };
        own.contains(column)
            || path == Some(true) && own.contains("path.NAME.throughput_bps")
            || by_clock.is_some_and(|(clock, field)| page[&format!("metrics.unit_clocks.{clock}")].contains(field))
            || PREFIXES.iter().any(under)
    };
    let columns: BTreeSet<&String> = records.iter().flat_map(|record| record.values.keys()).collect();
    let wanted = ["relay_energy_j", "selection.distance_bps", "local_flows.p95_s", "clocks.levelled.mean_s"];
    for wanted in wanted.into_iter().chain(["delivery_delay.p99_s"]) {
        assert!(columns.contains(&wanted.to_owned()), "{wanted} is missing, so nothing compares it");
    }
    let lacking = columns.into_iter().filter(|column| !is_told(column)).map(|column| format!("the column {column}"));
    let mut lacking: BTreeSet<String> = lacking.collect();
    lacks(&page, "runs.jsonl", &one_record(&records[0]), &mut lacking);
    let mut summary: Value = serde_json::from_str(&Summary::new(&plan, &records).to_json()).unwrap();
    summary["cases"].as_array_mut().into_iter().flatten().for_each(only_values);
    summary["comparisons"].as_array_mut().into_iter().flatten().for_each(only_values);
    let rest = ["manifest", "faulty", "seeds"].map(|part| summary.as_object_mut().unwrap().remove(part));
    assert!(rest.iter().all(Option::is_some));
    // The page's headings name parts of this file with a space after its name.
    let parts = |(name, value): (&String, &Value)| (format!("summary.json {name}"), value.clone());
    for (heading, value) in summary.as_object().unwrap().iter().map(parts) {
        lacks(&page, &heading, &value, &mut lacking);
    }
    assert_nothing(&lacking);
}

#[test]
fn every_field_of_a_comparison_is_described() {
    let directory = tempfile::tempdir().unwrap();
    let side = |name: &str, rate: &str| {
        let scenario = load("rich.toml", &RICH.replace("50 Mbit/s", rate), &[]).unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, run(&scenario, None, &mut |_| {}).unwrap().results.to_json()).unwrap();
        Side::read(&path).unwrap()
    };
    let contrast = Contrast::new(side("a.json", "50 Mbit/s"), side("b.json", "5 Mbit/s"));
    let mut value: Value = serde_json::from_str(&contrast.to_json()).unwrap();
    let case = &mut value["cases"][0];
    assert!(case["values"]["goodput_in_order_bps"]["paired"]["difference"].is_object());
    (case["variant_b"], case["point_b"]) = ("x".into(), Value::Null);
    only_values(case);
    assert_eq!(value["settings"][0]["path"], "bottleneck.rate");
    value["only_a"] = serde_json::json!([{ "variant": "x", "point": [], "seeds": [1] }]);
    let mut lacking = BTreeSet::new();
    lacks(&page(), "compare", &value, &mut lacking);
    assert_nothing(&lacking);
}

/// A record whose parts without names of fields are empty.
fn one_record(record: &Record) -> Value {
    let mut value = serde_json::to_value(record).unwrap();
    (value["values"], value["course"]) = (Value::Null, Value::Null);
    value
}

/// Replaces numbers by name by the numbers.
fn only_values(case: &mut Value) {
    let values = case["values"].as_object().into_iter().flatten().map(|(_, value)| value.clone());
    case["values"] = Value::Array(values.collect());
}
