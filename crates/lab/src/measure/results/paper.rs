//! The papers' metrics of a run, as results.

use serde::{Deserialize, Serialize};

use crate::measure::metrics::{
    BlockSummary, Collector, DeliveryDelay, Settings, Summary, Totals, UnitClocks, WindowValues, jain_index,
};
use crate::measure::statistics::mean;

/// The metrics of `docs/algorithms/metrics.md`. With several connections, they are those of the first, except
/// `connections` and `jain_index`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PaperMetrics {
    /// Target bit rate; null without one.
    pub target_bps: Option<f64>,
    /// Lowest rate within the range around the target.
    pub target_low_bps: Option<f64>,
    /// Highest rate within that range.
    pub target_high_bps: Option<f64>,
    /// Time between monitor points (F).
    pub period_s: f64,
    /// Unit of G1, octets.
    pub unit_bytes: u64,
    /// Over the monitor points in the window of analysis.
    pub summary: Summary,
    /// Over the whole run.
    pub totals: Totals,
    /// At every monitor point.
    pub points: Points,
    /// Over the first blocks of 100 packets.
    #[serde(default)]
    pub blocks: BlockSummary,
    /// Units of G1 by other clocks; only with `metrics.unit_clocks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_clocks: Option<UnitClocks>,
    /// How long after its first transmission each octet was delivered in order, over the whole run; null if none was.
    #[serde(default)]
    pub delivery_delay: Option<DeliveryDelay>,
    /// Every connection.
    pub connections: Vec<ConnectionGoodput>,
    /// Mean goodput, over the run, of the relays' own flows that take all they can get; null if there are none.
    #[serde(default)]
    pub greedy_goodput_bps: Option<f64>,
    /// Jain's fairness index over the goodputs of the connections (G4: a finished one over its own time) and of each of
    /// the relays' own flows that take all they can get, over the run.
    pub jain_index: Option<f64>,
}

/// The metrics at the monitor points; every list has one entry per point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Points {
    /// Times of the monitor points.
    pub time_s: Vec<f64>,
    /// Payload that arrived in the period before, duplicates included.
    pub aggregate_throughput_bps: Vec<f64>,
    /// G1; null where no unit was completed.
    pub unit_goodput_bps: Vec<Option<f64>>,
    /// G2; null where no block was completed.
    pub block_goodput_bps: Vec<Option<f64>>,
    /// G3.
    pub in_order_goodput_bps: Vec<f64>,
    /// Size of the active set.
    pub subflows: Vec<u64>,
    /// Largest number of octets stored in the period.
    pub receive_buffer_bytes: Vec<u64>,
    /// O3-DSN: the offset with the largest absolute value.
    pub reordering_bytes: Vec<i64>,
    /// Mean delay.
    pub delay_s: Vec<Option<f64>>,
    /// Jitter.
    pub jitter_s: Vec<Option<f64>>,
    /// eta: delay of the slowest path over that of the fastest.
    pub delay_ratio: Vec<Option<f64>>,
}

/// One connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionGoodput {
    /// Octets delivered in order.
    pub delivered_bytes: u64,
    /// When the last of them was delivered; the end of the run if the connection did not finish before.
    pub ended_s: f64,
    /// Octets over this time (G4).
    pub goodput_bps: f64,
}

impl ConnectionGoodput {
    /// Goodput of a connection that delivered `bytes` until `ended_s`.
    pub fn new(delivered_bytes: u64, ended_s: f64) -> Self {
        Self { delivered_bytes, ended_s, goodput_bps: crate::measure::bps(delivered_bytes, ended_s) }
    }
}

impl PaperMetrics {
    /// Metrics that `collector` gathered until its last window was closed. `summary` is that of the window of analysis,
    /// `greedy_bps` the goodput of each flow that takes all it can get.
    pub fn new(
        collector: &Collector,
        summary: Summary,
        totals: Totals,
        connections: Vec<ConnectionGoodput>,
        greedy_bps: &[f64],
    ) -> Self {
        let Settings { window, tbr, theta, unit_bytes, .. } = *collector.settings();
        let target_bps = (tbr.as_bps() > 0).then(|| tbr.as_bps() as f64);
        let goodputs = connections.iter().map(|connection| connection.goodput_bps);
        let goodputs: Vec<f64> = goodputs.chain(greedy_bps.iter().copied()).collect();
        Self {
            target_bps,
            target_low_bps: target_bps.map(|target| target * (1.0 - theta)),
            target_high_bps: target_bps.map(|target| target * (1.0 + theta)),
            period_s: window.as_secs_f64(),
            unit_bytes,
            summary,
            totals,
            points: Points::new(collector.values()),
            blocks: BlockSummary::of(collector.goodput_blocks(), collector.buffer_blocks()),
            unit_clocks: collector.unit_clocks(),
            delivery_delay: collector.delivery_delay(),
            jain_index: jain_index(&goodputs),
            connections,
            greedy_goodput_bps: mean(greedy_bps),
        }
    }
}

impl Points {
    fn new(values: &[WindowValues]) -> Self {
        let each = |value: fn(&WindowValues) -> f64| values.iter().map(value).collect();
        let each_option = |value: fn(&WindowValues) -> Option<f64>| values.iter().map(value).collect();
        Self {
            time_s: each(|point| point.at.as_secs_f64()),
            aggregate_throughput_bps: each(|point| point.aggregate_throughput_bps.round()),
            unit_goodput_bps: each_option(|point| point.unit_goodput_bps.map(f64::round)),
            block_goodput_bps: each_option(|point| point.block_goodput_bps.map(f64::round)),
            in_order_goodput_bps: each(|point| point.in_order_goodput_bps.round()),
            subflows: values.iter().map(|point| point.subflows).collect(),
            receive_buffer_bytes: values.iter().map(|point| point.receive_buffer_bytes).collect(),
            reordering_bytes: values.iter().map(|point| point.reordering_bytes).collect(),
            delay_s: each_option(|point| point.delay_s),
            jitter_s: each_option(|point| point.jitter_s),
            delay_ratio: each_option(|point| point.delay_ratio),
        }
    }
}
