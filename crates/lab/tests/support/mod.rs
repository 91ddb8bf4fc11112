//! Made-up results for tests of tables and reports.

pub mod captured;
pub mod held;

use lab::measure::results::{Manifest, Results, Series, SubflowResults, SubflowSeries, Totals};
use units::Prng;

/// Results of a run with `paths` paths and `windows` windows of 100 ms.
pub fn results(paths: u16, windows: usize) -> Results {
    let series: Vec<SubflowSeries> = (0..paths).map(|id| subflow_series(id, windows)).collect();
    let aggregate: Vec<f64> =
        (0..windows).map(|window| series.iter().map(|subflow| subflow.throughput_bps[window]).sum()).collect();
    let sums: Vec<u64> = series.iter().map(|s| (s.throughput_bps.iter().sum::<f64>() / 80.0) as u64).collect();
    let total: u64 = sums.iter().sum();
    let subflows = (0..paths).map(|id| subflow_results(id, sums[id as usize], total)).collect();
    Results {
        manifest: Manifest {
            scenario: "made-up <results>".into(),
            content: serde_json::json!({ "description": "A file over unequal links", "seed": 7 }),
            seed: 7,
            version: "0.1.0".into(),
            backend: "simulator".into(),
            world: String::new(),
            variant: None,
            overrides: Vec::new(),
            files: Vec::new(),
        },
        totals: Totals {
            completed: true,
            source_bytes: total,
            delivered_bytes: total,
            intact: true,
            sha256_source: Some("ab".repeat(32)),
            sha256_received: Some("ab".repeat(32)),
            duration_s: windows as f64 / 10.0,
            aggregate_throughput_bps: aggregate.iter().sum::<f64>() / windows as f64,
            goodput_in_order_bps: aggregate.iter().sum::<f64>() / windows as f64,
            data_packets: total / 1400,
            retransmitted_packets: 71,
            reinjected_bytes: Some(2800),
            duplicate_bytes: 1400,
            out_of_order_peak_bytes: 123_456,
            wall_s: Some(0.125),
            ..Totals::default()
        },
        series: Series {
            window_s: 0.1,
            time_s: (1..=windows).map(|window| window as f64 / 10.0).collect(),
            goodput_in_order_bps: aggregate.iter().map(|bps| bps * 0.97).collect(),
            aggregate_throughput_bps: aggregate,
            out_of_order_bytes: (0..windows as u64).map(|window| window * 7919 % 90_000).collect(),
            subflows: series,
            relays: Vec::new(),
            bottleneck: None,
        },
        subflows,
        relays: Vec::new(),
        bottleneck: None,
        metrics: None,
        selection: None,
    }
}

fn name(id: u16) -> String {
    ["amber", "birch", "cedar", "dune"].get(id as usize).map_or_else(|| format!("relay-{id}"), |name| (*name).into())
}

fn subflow_series(id: u16, windows: usize) -> SubflowSeries {
    let mut prng = Prng::new(id.into());
    let mut wander = 0.0;
    let mut series = SubflowSeries { id, path: name(id), ..SubflowSeries::default() };
    for window in 0..windows {
        wander = 0.9 * wander + prng.unit() - 0.5;
        let rate_bps = (3.2e6 / f64::from(id + 1) * (1.0 + 0.4 * wander)).max(0.0);
        series.throughput_bps.push(if window < 2 { 0.0 } else { rate_bps });
        series.cwnd_bytes.push((rate_bps / 60.0) as u64 + 14_000);
        series.srtt_s.push((window > 1).then_some(0.05 * f64::from(id + 1) + 0.02 * wander.abs()));
        series.loss_ratio.push(Some(if prng.chance(0.06) { prng.unit() * 0.2 } else { 0.0 }));
    }
    series
}

fn subflow_results(id: u16, bytes: u64, total: u64) -> SubflowResults {
    SubflowResults {
        id,
        connection: None,
        path: name(id),
        source: "10.0.0.1:5001".into(),
        destination: format!("10.{}.0.2:49152", id + 1),
        state: "TIME-WAIT".into(),
        established_s: Some(0.06),
        received_bytes: bytes,
        share_ratio: bytes as f64 / total as f64,
        throughput_bps: bytes as f64 / 2.0,
        data_packets: bytes / 1400,
        retransmitted_packets: 12,
        retransmitted_bytes: 12 * 1400,
        lost_packets: 12,
        queue_drop_packets: 3,
        loss_ratio: 0.0034,
        mean_rtt_s: Some(0.0612),
        min_rtt_s: Some(0.05),
        timeouts: Some(1),
        congestion_events: Some(7),
        path_mtu_bytes: Some(1500),
    }
}
