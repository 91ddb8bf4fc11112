//! Numbers of a run by name.

use std::collections::BTreeMap;

use units::Instant;

use crate::measure::metrics::{Analysis, LocalShare, max_over_min, mean_distance_bps};
use crate::measure::results::{PaperMetrics, RelayResults, Results, SelectionResults, Series, VideoResults};
use crate::measure::statistics::mean;
use crate::scenario::Scenario;

/// Numbers by name.
type Values = BTreeMap<String, f64>;

/// Returns every number in the `results` of a run of `scenario` that is not part of a series.
pub(crate) fn values(scenario: &Scenario, results: &Results) -> Values {
    let mut values = Values::new();
    add(&mut values, "", &serde_json::to_value(&results.totals).expect("totals are finite"));
    if !results.totals.completed {
        // A transfer that broke off did not finish sooner than one that continued.
        values.insert("duration_s".into(), results.totals.duration_s.max(scenario.duration.as_secs_f64()));
    }
    if let Some(video) = &results.totals.video {
        add_video(&mut values, "video.", video);
    }
    if let Some(bottleneck) = &results.bottleneck {
        add(&mut values, "bottleneck.", &serde_json::to_value(bottleneck).expect("a link's results are finite"));
    }
    add_owners(&mut values, &results.relays);
    if let Some(metrics) = &results.metrics {
        add_metrics(&mut values, metrics);
        if let Some(selection) = &results.selection {
            add_selection(&mut values, selection, metrics.summary.points);
        }
        if let Some((selection, target_bps)) = results.selection.as_ref().zip(metrics.target_bps) {
            add_decisions(&mut values, selection, target_bps);
        }
    }
    add_local(&mut values, "", results.relays.iter().filter_map(|relay| relay.local_ratio()));
    add_analysed_local(&mut values, &results.series, analysis(scenario));
    insert(&mut values, "local_max_over_min", local_max_over_min(&results.relays));
    insert(&mut values, "relay_energy_j", results.energy_j());
    if !results.subflows.is_empty() {
        // A relay without a subflow carried nothing: a missing number would be left out of means over runs.
        values.extend(results.series.relays.iter().map(|relay| (throughput_of(&relay.name), 0.0)));
    }
    for subflow in &results.subflows {
        *values.entry(throughput_of(&subflow.path)).or_default() += subflow.throughput_bps;
    }
    values
}

/// Name of the throughput over a relay.
fn throughput_of(relay: &str) -> String {
    format!("path.{relay}.throughput_bps")
}

/// The points of G1 that belong to the window of analysis.
pub(crate) fn goodput_points_bps(scenario: &Scenario, results: &Results) -> Vec<Option<f64>> {
    let (analysis, points) = (analysis(scenario), results.metrics.as_ref().map(|metrics| &metrics.points));
    let times = points.into_iter().flat_map(|points| points.time_s.iter().zip(&points.unit_goodput_bps));
    times.filter(|(time_s, _)| analysis.has_point(at(**time_s))).map(|(_, goodput_bps)| *goodput_bps).collect()
}

fn analysis(scenario: &Scenario) -> Analysis {
    let part = scenario.metrics.analysis;
    part.map_or(Analysis::WHOLE, |part| Analysis { from: Instant::ZERO + part.from, to: Instant::ZERO + part.to })
}

fn at(seconds: f64) -> Instant {
    Instant::from_nanos((seconds * 1e9).round() as u64)
}

/// Adds the viewers' results. A viewer whose playback never began waited for the whole available time.
fn add_video(values: &mut Values, prefix: &str, video: &VideoResults) {
    let seen = VideoResults { started_s: video.started_s.or(video.waited_s), waited_s: None, ..*video };
    add(values, prefix, &serde_json::to_value(seen).expect("what viewers saw is finite"));
    // Those of the destination are among the totals, too.
    values.remove(&format!("{prefix}waited_s"));
    // Results of earlier versions do not say how long somebody waited in vain, and count no stall for it.
    if seen.started_s.is_none() {
        values.remove(&format!("{prefix}stalled_s"));
    }
}

/// Adds what owners notice: for each number, the mean over the relays whose owners watch videos or wait for short
/// flows.
fn add_owners(values: &mut Values, relays: &[RelayResults]) {
    let noticed = |relay: &RelayResults| {
        let mut noticed = Values::new();
        if let Some(video) = &relay.local_video {
            add_video(&mut noticed, "local_video.", video);
        }
        if let Some(flows) = &relay.local_flows {
            add(&mut noticed, "local_flows.", &serde_json::to_value(flows).expect("waits are finite"));
        }
        noticed
    };
    let mut by_name: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in relays.iter().flat_map(noticed) {
        by_name.entry(name).or_default().push(value);
    }
    for (name, all) in by_name {
        insert(values, &name, mean(&all));
    }
}

fn add_metrics(values: &mut Values, metrics: &PaperMetrics) {
    add(values, "analysis.", &serde_json::to_value(&metrics.summary).expect("metrics are finite"));
    if metrics.summary.points == 0 {
        // Without monitor points, counts and peaks have no value, as means have none; they are not zero.
        values.retain(|name, _| !name.starts_with("analysis.") || name == "analysis.points");
    }
    add(values, "whole.", &serde_json::to_value(&metrics.totals).expect("metrics are finite"));
    add(values, "clocks.", &serde_json::to_value(metrics.unit_clocks).expect("metrics are finite"));
    add(values, "delivery_delay.", &serde_json::to_value(&metrics.delivery_delay).expect("metrics are finite"));
    add(values, "blocks.", &serde_json::to_value(metrics.blocks).expect("metrics are finite"));
    insert(values, "jain_index", metrics.jain_index);
    insert(values, "greedy_goodput_bps", metrics.greedy_goodput_bps);
    let goodputs: Vec<f64> = metrics.connections.iter().map(|connection| connection.goodput_bps).collect();
    insert(values, "connection_goodput_bps", mean(&goodputs));
}

/// Adds the number of migrations, and the outages that selection could have avoided at the `points` of the window of
/// analysis: without any, nothing was judged.
fn add_selection(values: &mut Values, selection: &SelectionResults, points: u64) {
    values.insert("migrations".into(), selection.migrations.len() as f64);
    values.insert("play_stalled_s".into(), selection.play_stalled_s);
    if let Some(hindsight) = selection.hindsight.as_ref().filter(|_| points > 0) {
        add(values, "analysis.", &serde_json::to_value(hindsight).expect("judgements are finite"));
    }
}

/// Adds the distances to the target of the selected sets and of the next sets.
fn add_decisions(values: &mut Values, selection: &SelectionResults, target_bps: f64) {
    let active = || selection.migrations.iter().map(|migration| migration.offered_bps);
    let backup = || selection.points.iter().filter_map(|point| point.backup_bps);
    insert(values, "selection.active_distance_bps", mean_distance_bps(active(), target_bps));
    insert(values, "selection.backup_distance_bps", mean_distance_bps(backup(), target_bps));
    insert(values, "selection.distance_bps", mean_distance_bps(active().chain(backup()), target_bps));
}

fn add_analysed_local(values: &mut Values, series: &Series, analysis: Analysis) {
    let shares = series
        .relays
        .iter()
        .map(|relay| LocalShare::over(&series.time_s, &relay.local_demand_bps, &relay.local_goodput_bps, analysis));
    let shares: Vec<LocalShare> = shares.collect();
    add_local(values, "analysis.", shares.iter().filter_map(LocalShare::ratio));
    let goodput_bps = shares.iter().filter_map(LocalShare::goodput_bps);
    insert(values, "analysis.local_goodput_max_bps", goodput_bps.reduce(f64::max));
}

fn add_local(values: &mut Values, prefix: &str, ratios: impl Iterator<Item = f64>) {
    let ratios: Vec<f64> = ratios.collect();
    insert(values, &format!("{prefix}local_ratio_mean"), mean(&ratios));
    insert(values, &format!("{prefix}local_ratio_min"), ratios.iter().copied().reduce(f64::min));
    insert(values, &format!("{prefix}local_ratio_max"), ratios.into_iter().reduce(f64::max));
}

/// The largest over the smallest amount of own traffic, of the relays that have any.
fn local_max_over_min(relays: &[RelayResults]) -> Option<f64> {
    let with_traffic = relays.iter().filter(|relay| relay.has_local_traffic());
    max_over_min(&with_traffic.map(|relay| relay.local_received_bytes as f64).collect::<Vec<_>>())
}

fn insert(values: &mut Values, name: &str, value: Option<f64>) {
    values.extend(value.map(|value| (name.to_owned(), value)));
}

fn add(values: &mut Values, prefix: &str, object: &serde_json::Value) {
    for (name, value) in object.as_object().into_iter().flatten() {
        let number = value.as_f64().or_else(|| value.as_bool().map(|flag| f64::from(u8::from(flag))));
        values.extend(number.map(|number| (format!("{prefix}{name}"), number)));
        add(values, &format!("{prefix}{name}."), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::metrics::Summary;
    use crate::measure::results::{
        Hindsight, LatencyResults, Manifest, Migration, RelaySeries, SelectionPoint, Totals,
    };

    /// Sets of 2.75 and 3.5 Mbit/s were used, one of 3.25 Mbit/s was kept as the next: 0.25, 0.5 and 0.25 from the
    /// target.
    #[test]
    fn decisions_are_sets_used_and_sets_kept() {
        let migration = |offered_bps| Migration { offered_bps, ..Migration::default() };
        let point = |backup_bps| SelectionPoint { backup_bps, ..SelectionPoint::default() };
        let selection = SelectionResults {
            migrations: vec![migration(2.75e6), migration(3.5e6)],
            points: vec![point(None), point(Some(3.25e6))],
            ..SelectionResults::default()
        };
        let mut values = Values::new();
        add_decisions(&mut values, &selection, 3e6);
        assert_eq!(values["selection.active_distance_bps"], 0.375e6);
        assert_eq!(values["selection.backup_distance_bps"], 0.25e6);
        assert_eq!(values["selection.distance_bps"], 1e6 / 3.0);
    }

    /// The first owner's video began after 2 s and stalled for 4; the second's never began in 30 s. Only the third
    /// waits for flows.
    #[test]
    fn owners_are_those_who_watch_and_those_who_wait() {
        let video = |started_s: Option<f64>, stalled_s| RelayResults {
            local_video: Some(VideoResults {
                viewers: 1,
                started_s,
                waited_s: started_s.is_none().then_some(30.0),
                stalled_s,
                ..VideoResults::default()
            }),
            ..RelayResults::default()
        };
        let flows = LatencyResults { completed: 7, median_s: Some(0.5), ..LatencyResults::default() };
        let waits = RelayResults { local_flows: Some(flows), ..RelayResults::default() };
        let mut values = Values::new();
        add_owners(&mut values, &[video(Some(2.0), 4.0), video(None, 30.0), waits, RelayResults::default()]);
        assert_eq!((values["local_video.started_s"], values["local_video.stalled_s"]), (16.0, 17.0));
        assert_eq!((values["local_flows.median_s"], values["local_flows.completed"]), (0.5, 7.0));
        assert_eq!((values.get("local_flows.p95_s"), values.get("local_video.waited_s")), (None, None));
        let mut values = Values::new();
        add_owners(&mut values, &[RelayResults::default()]);
        assert_eq!(values, Values::new());
    }

    #[test]
    fn a_viewer_who_waited_in_vain_began_after_that_time() {
        let text = "name = \"x\"\nduration = \"30 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
                    cellular = { rate = \"1 Mbit/s\", delay = \"5 ms\" }\n";
        let scenario = crate::scenario::load("x.toml", text, &[]).unwrap();
        let video = VideoResults { viewers: 1, waited_s: Some(30.0), stalled_s: 30.0, ..VideoResults::default() };
        let totals = Totals { video: Some(video), ..Totals::default() };
        let results = Results::new(Manifest::new(&scenario, "simulator"), totals, Series::default(), Vec::new());
        let values = values(&scenario, &results);
        assert_eq!((values["video.started_s"], values["video.stalled_s"]), (30.0, 30.0));
        assert_eq!(values.get("video.waited_s"), None);
    }

    #[test]
    fn relays_without_traffic_of_their_own_are_not_the_smallest() {
        let relay = |demand, local_received_bytes| RelayResults {
            local_demand_bytes: demand,
            local_received_bytes,
            ..RelayResults::default()
        };
        let two = [relay(Some(9), 8), relay(None, 2), relay(Some(0), 0)];
        assert_eq!(local_max_over_min(&two), Some(4.0));
        assert_eq!(local_max_over_min(&two[2..]), None);
    }

    /// Without points, a mean has no value, and neither have the number of outages and the peaks.
    #[test]
    fn a_run_without_a_monitor_point_has_nothing_to_analyse() {
        let values = |points| {
            let mut values = Values::new();
            let summary = Summary { points, receive_buffer_bytes: 7, ..Summary::default() };
            add_metrics(&mut values, &PaperMetrics { summary, ..PaperMetrics::default() });
            let hindsight = Some(Hindsight::default());
            add_selection(&mut values, &SelectionResults { hindsight, ..SelectionResults::default() }, points);
            values.into_iter().filter(|(name, _)| name.starts_with("analysis.")).collect::<Values>()
        };
        assert_eq!(values(0), Values::from([("analysis.points".into(), 0.0)]));
        let one = values(1);
        assert_eq!((one["analysis.receive_buffer_bytes"], one["analysis.outages"]), (7.0, 0.0));
        assert_eq!(one["analysis.avoidable_outages"], 0.0);
    }

    /// From 1 s on, the first relay got 3 of 4; the second, which takes all it can get, 5.
    #[test]
    fn local_traffic_counts_in_the_window_of_analysis() {
        let relay = |demand, got: f64| RelaySeries {
            local_demand_bps: vec![Some(100.0), demand],
            local_goodput_bps: vec![0.0, got],
            ..RelaySeries::default()
        };
        let relays = vec![relay(Some(4.0), 3.0), relay(None, 5.0)];
        let series = Series { time_s: vec![1.0, 2.0], relays, ..Series::default() };
        let mut values = Values::new();
        add_analysed_local(&mut values, &series, Analysis { from: Instant::from_secs(1), to: Instant::from_secs(2) });
        assert_eq!((values["analysis.local_ratio_mean"], values["analysis.local_ratio_min"]), (0.75, 0.75));
        assert_eq!(values["analysis.local_goodput_max_bps"], 5.0);
    }
}
