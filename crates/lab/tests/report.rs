//! The report and the table on made-up results.

use lab::measure::results::RelaySeries;
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

/// A subflow's own holes are not drawn, and one subflow has no others to wait for: the figure is not called all that waits.
#[test]
fn what_waits_is_said_to_wait_for_other_subflows() {
    let html = report::render(&support::results(1, 10));
    assert!(html.contains("Waiting for other subflows") && html.contains("behind a hole of its own"), "{html}");
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
