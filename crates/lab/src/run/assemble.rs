//! From what was measured to results.

use simulator::Source;
use transport::{ConnectionStats, SubflowStats};

use super::recorder::{PathCounters, Recorder, at_source, bps, path_counters};
use super::{DESTINATION, SOURCE, Stage, digest};
use crate::results::{Manifest, Results, Series, SubflowResults, Totals};
use crate::scenario::{Scenario, WorkloadKind};

/// The results of a run, and what was wrong with it.
pub(super) fn assemble(
    scenario: &Scenario,
    source: &Source,
    stage: &Stage,
    recorder: Recorder,
) -> (Results, Vec<String>) {
    let (at_source, at_destination) = (stage.stats(SOURCE), stage.stats(DESTINATION));
    let counters = path_counters(stage.simulation.network(), recorder.paths());
    let mut totals = totals(scenario, source, stage, &at_source, &at_destination);
    let subflows: Vec<SubflowResults> = at_destination
        .subflows
        .iter()
        .map(|subflow| subflow_results(subflow, &at_source, &recorder, &counters, totals.duration_s))
        .collect();
    let arrived_bytes: u64 = subflows.iter().map(|subflow| subflow.received_bytes).sum();
    totals.aggregate_throughput_bps = bps(arrived_bytes, totals.duration_s);
    let series = recorder.into_series();
    let finish = |subflow: SubflowResults| SubflowResults {
        share_ratio: subflow.received_bytes as f64 / arrived_bytes.max(1) as f64,
        mean_rtt_s: mean_rtt_s(&series, subflow.id),
        ..subflow
    };
    let subflows = subflows.into_iter().map(finish).collect();
    let faults = faults(scenario, stage, &totals);
    (Results { manifest: manifest(scenario), totals, series, subflows }, faults)
}

fn manifest(scenario: &Scenario) -> Manifest {
    Manifest {
        scenario: scenario.name.clone(),
        content: serde_json::to_value(scenario).expect("scenarios have text keys and finite numbers"),
        seed: scenario.seed,
        version: env!("CARGO_PKG_VERSION").into(),
        backend: "simulator".into(),
    }
}

fn totals(
    scenario: &Scenario,
    source: &Source,
    stage: &Stage,
    at_source: &ConnectionStats,
    at_destination: &ConnectionStats,
) -> Totals {
    let delivered = stage.delivered.borrow();
    let bulk = scenario.workload.kind == WorkloadKind::Bulk;
    let source_bytes = if bulk { at_source.written_bytes } else { source.len() };
    // What is under way when a bulk transfer ends is not missing.
    let compared_bytes = if bulk { delivered.bytes } else { source.len() };
    let duration_s = stage.ended_at.as_secs_f64();
    let sha256_source = digest::of_source(source, compared_bytes);
    let sha256_received = digest::of_pieces(&delivered.pieces);
    let sum = |count: fn(&SubflowStats) -> u64| at_source.subflows.iter().map(count).sum();
    Totals {
        completed: delivered.finished || bulk && delivered.failure.is_none(),
        source_bytes,
        delivered_bytes: delivered.bytes,
        sha256_ok: sha256_source == sha256_received,
        sha256_source,
        sha256_received,
        duration_s,
        aggregate_throughput_bps: 0.0,
        goodput_in_order_bps: bps(delivered.bytes, duration_s),
        data_packets: sum(|subflow| subflow.sent_segments),
        retransmitted_packets: sum(|subflow| subflow.retransmitted_segments),
        reinjected_bytes: at_source.reinjected_bytes,
        duplicate_bytes: at_destination.duplicate_bytes,
        out_of_order_peak_bytes: at_destination.out_of_order_peak_bytes,
        wall_s: None,
    }
}

fn subflow_results(
    subflow: &SubflowStats,
    source: &ConnectionStats,
    recorder: &Recorder,
    counters: &[PathCounters],
    duration_s: f64,
) -> SubflowResults {
    let sender = at_source(source, subflow);
    let of_sender = |count: fn(&SubflowStats) -> u64| sender.map_or(0, count);
    let path = recorder.paths().of(subflow).map(|path| counters[path]).unwrap_or_default();
    SubflowResults {
        id: subflow.id.0,
        path: recorder.paths().name_of(subflow),
        source: subflow.remote.to_string(),
        destination: subflow.local.to_string(),
        state: subflow.state.into(),
        established_s: subflow.established_at.map(|at| at.as_secs_f64()),
        received_bytes: subflow.received_bytes,
        share_ratio: 0.0,
        throughput_bps: bps(subflow.received_bytes, duration_s),
        data_packets: of_sender(|stats| stats.sent_segments),
        retransmitted_packets: of_sender(|stats| stats.retransmitted_segments),
        retransmitted_bytes: of_sender(|stats| stats.retransmitted_bytes),
        lost_packets: path.lost,
        queue_drop_packets: path.queue_drops,
        loss_ratio: path.lost as f64 / path.entered.max(1) as f64,
        mean_rtt_s: None,
        min_rtt_s: sender.and_then(|stats| stats.min_rtt).map(|rtt| rtt.as_secs_f64()),
        timeouts: of_sender(|stats| stats.timeouts),
        congestion_events: of_sender(|stats| stats.congestion_events),
    }
}

fn mean_rtt_s(series: &Series, id: u16) -> Option<f64> {
    let subflow = series.subflows.iter().find(|subflow| subflow.id == id)?;
    let samples: Vec<f64> = subflow.srtt_s.iter().flatten().copied().collect();
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

fn faults(scenario: &Scenario, stage: &Stage, totals: &Totals) -> Vec<String> {
    let mut faults = stage.simulation.faults();
    if !totals.completed && faults.is_empty() {
        let (delivered, wanted) = (totals.delivered_bytes, totals.source_bytes);
        let problem = format!("only {delivered} of {wanted} bytes arrived within {}", scenario.duration);
        faults.push(format!("{problem}; a longer duration or faster links would complete it"));
    } else if totals.completed && !totals.sha256_ok {
        faults.push("the SHA-256 of what arrived is not that of what was sent".into());
    }
    faults
}
