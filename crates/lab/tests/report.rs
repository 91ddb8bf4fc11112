//! The report and the table for made-up results.

use lab::measure::results::{RelayResults, RelaySeries};
use lab::present::{report, summary};

use crate::support;

#[test]
fn a_report_refers_to_nothing_outside_itself() {
    let html = report::render(&support::results(4, 120));
    for outside in ["http:", "https:", "//cdn", "<link", "@import", "url(", "src="] {
        assert!(!html.contains(outside), "{outside} stands in the report");
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    std::fs::write(path, html).unwrap();
}

#[test]
fn names_from_scenarios_are_text_not_markup() {
    let html = report::render(&support::results(1, 10));
    assert!(html.contains("made-up &lt;results&gt;") && !html.contains("made-up <results>"));
}

#[test]
fn a_report_shows_every_path_and_both_themes() {
    let html = report::render(&support::results(4, 120));
    for needed in ["amber", "birch", "cedar", "dune", "prefers-color-scheme: dark", "@media print", "Mbit/s", "12 s"] {
        assert!(html.contains(needed), "{needed} is missing");
    }
}

#[test]
fn a_report_depends_on_everything_but_the_wall_clock() {
    let mut results = support::results(2, 10);
    let html = report::render(&results);
    results.totals.wall_s = Some(99.0);
    assert_eq!(report::render(&results), html);
}

/// A subflow's own holes are not drawn, and a single subflow has no others to wait for: the figure must not claim to
/// show all waiting data.
#[test]
fn what_waits_is_said_to_wait_for_other_subflows() {
    let html = report::render(&support::results(1, 10));
    assert!(html.contains("Waiting for other subflows") && html.contains("behind a gap in their own"), "{html}");
}

#[test]
fn a_day_of_windows_stays_a_small_report() {
    assert!(report::render(&support::results(4, 100_000)).len() < 1_000_000);
}

#[test]
fn a_run_without_subflows_or_windows_has_a_report() {
    assert!(report::render(&support::results(0, 0)).contains("Throughput"));
}

#[test]
fn hold_queues_are_drawn_where_relays_hold() {
    let mut results = support::results(2, 10);
    let relay =
        |name: &str, hold_queue_bytes| RelaySeries { name: name.into(), hold_queue_bytes, ..RelaySeries::default() };
    results.series.relays = vec![relay("amber", Vec::new()), relay("birch", vec![0; 10])];
    assert!(!report::render(&results).contains("Hold queues"));
    results.series.relays[1].hold_queue_bytes = vec![0, 0, 0, 70_000, 90_000, 50_000, 0, 0, 0, 0];
    let html = report::render(&results);
    assert!(html.contains("<h2>Hold queues</h2>") && html.contains("at the relays because"));
}

#[test]
fn the_table_names_paths_shares_and_totals() {
    let text = summary(&support::results(2, 50));
    for needed in ["amber", "birch", "share", "retransmissions", "0.34 %", "61.2 ms", "SHA-256", "same at both ends"] {
        assert!(text.contains(needed), "{needed} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn whose_metrics_are_shown_is_said() {
    use lab::measure::results::ConnectionGoodput;
    for (connections, said) in [(1, false), (3, true)] {
        let mut results = support::results(2, 10);
        let mut metrics = results.metrics.take().unwrap_or_default();
        (metrics.target_low_bps, metrics.target_high_bps) = (Some(1e6), Some(2e6));
        metrics.target_bps = Some(1.5e6);
        metrics.connections = (0..connections).map(|_| ConnectionGoodput::new(1000, 1.0)).collect();
        results.metrics = Some(metrics);
        assert_eq!(summary(&results).contains("by the first of 3 connections"), said);
        assert_eq!(report::render(&results).contains("over the whole run, of the first of 3 connections"), said);
    }
}

#[test]
fn the_legend_of_relays_has_what_is_drawn() {
    use lab::measure::results::RelayResults;
    let mut results = support::results(1, 2);
    let name = || "amber".to_string();
    let relay = RelayResults { name: name(), chosen: true, local_demand_bytes: Some(9), ..RelayResults::default() };
    let windows = RelaySeries {
        name: name(),
        carried_bps: vec![1e6; 2],
        local_goodput_bps: vec![1e6; 2],
        local_demand_bps: vec![Some(1e6); 2],
        capacity_bps: vec![None; 2],
        ..RelaySeries::default()
    };
    (results.relays, results.series.relays) = (vec![relay], vec![windows]);
    let drawn = |results: &_, names: [&str; 3]| {
        let html = report::render(results);
        names.map(|name| html.contains(&format!("</i>{name}</li>")))
    };
    let names = ["own traffic, got", "own traffic, asked for", "granted by the cell"];
    assert_eq!(drawn(&results, names), [true, true, false]);
    results.series.relays[0].capacity_bps = vec![Some(2e6); 2];
    results.relays[0].local_demand_bytes = None;
    assert_eq!(drawn(&results, names), [true, false, false]);
    assert_eq!(drawn(&results, ["rate of the link"; 3]), [true; 3]);
    results.relays[0].distance_m = Some(900.0);
    results.relays[0].local_demand_bytes = Some(0);
    assert_eq!(drawn(&results, names), [false, false, true]);
}

/// The speed of a slow run is readable, however low it is.
#[test]
fn the_speed_of_a_run_has_two_figures() {
    let mut results = support::results(1, 10);
    for (wall_s, said) in [(66.0, "0.015"), (0.9, "1.1"), (0.1, "10"), (0.001, "1000"), (0.0, "inf")] {
        results.totals.wall_s = Some(wall_s);
        let text = summary(&results);
        assert!(text.contains(&format!("({said} times as fast as real time)")), "{text}");
    }
}

#[test]
fn energy_is_told_where_relays_have_a_price() {
    let mut results = support::results(2, 10);
    let relay = |energy_j| RelayResults { energy_j, ..RelayResults::default() };
    results.relays = vec![relay(None), relay(None)];
    assert!(!summary(&results).contains("energy") && !report::render(&results).contains("energy"));
    results.relays = vec![relay(Some(1.5)), relay(Some(0.75))];
    let text = summary(&results);
    assert!(text.contains("energy      2.25 J by the relays, for the data that they carried\n"), "{text}");
    assert!(report::render(&results).contains("<dd>2.25 J</dd><dt>energy of the relays</dt>"));
}
