//! Samples both hosts and the paths at the end of every window.

use core::net::IpAddr;
use std::collections::BTreeMap;

use transport::{ConnectionStats, SubflowId, SubflowStats};
use units::{Duration, Instant};

use super::{PathCounters, Sender};
use crate::measure::results::{Series, SubflowResults, SubflowSeries};

/// The paths: their names, and the destination's address on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    names: Vec<String>,
    addresses: Vec<IpAddr>,
}

impl Paths {
    /// Creates paths from names and addresses.
    pub fn new(paths: impl IntoIterator<Item = (String, IpAddr)>) -> Self {
        let (names, addresses) = paths.into_iter().unzip();
        Self { names, addresses }
    }

    /// Number of the path of the destination's subflow.
    fn of(&self, subflow: &SubflowStats) -> Option<usize> {
        self.addresses.iter().position(|address| *address == subflow.local.ip())
    }

    fn name_of(&self, subflow: &SubflowStats) -> String {
        self.of(subflow).map_or_else(|| subflow.local.ip().to_string(), |path| self.names[path].clone())
    }
}

/// Records windows.
pub struct Recorder {
    paths: Paths,
    series: Series,
    last_at: Instant,
    delivered_bytes: u64,
    /// Octets received so far, by number of the destination's subflow.
    received_bytes: BTreeMap<u16, u64>,
    counters: Option<Vec<PathCounters>>,
}

impl Recorder {
    /// Records windows of length `window`.
    pub fn new(window: Duration, paths: Paths) -> Self {
        let series = Series { window_s: window.as_secs_f64(), ..Series::default() };
        let received_bytes = BTreeMap::new();
        Self { paths, series, last_at: Instant::ZERO, delivered_bytes: 0, received_bytes, counters: None }
    }

    /// The series so far.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Closes the window that ends `now`. `sender` returns the source's view of one of the destination's subflows;
    /// `counters`, where known, are in the order of the paths.
    pub fn sample(
        &mut self,
        now: Instant,
        delivered_bytes: u64,
        destination: &ConnectionStats,
        sender: impl Fn(&SubflowStats) -> Option<Sender>,
        counters: Option<Vec<PathCounters>>,
    ) {
        let span_s = now.saturating_since(self.last_at).as_secs_f64();
        if span_s == 0.0 {
            return;
        }
        self.last_at = now;
        let losses = self.losses(counters);
        let mut arrived_bytes = 0;
        for subflow in &destination.subflows {
            let before = self.received_bytes.insert(subflow.id.0, subflow.received_bytes).unwrap_or(0);
            let arrived = subflow.received_bytes - before;
            arrived_bytes += arrived;
            let loss = self.paths.of(subflow).and_then(|path| *losses.get(path)?);
            let sender = sender(subflow);
            let series = self.series_of(subflow);
            series.throughput_bps.push(bps(arrived, span_s));
            series.cwnd_bytes.push(sender.map_or(0, |sender| sender.cwnd_bytes));
            series.srtt_s.push(sender.and_then(|sender| sender.srtt).map(Duration::as_secs_f64));
            series.loss_ratio.push(loss);
        }
        self.series.time_s.push(now.as_secs_f64());
        self.series.aggregate_throughput_bps.push(bps(arrived_bytes, span_s));
        self.series.goodput_in_order_bps.push(bps(delivered_bytes - self.delivered_bytes, span_s));
        self.series.out_of_order_bytes.push(destination.out_of_order_bytes);
        self.delivered_bytes = delivered_bytes;
    }

    /// Each path's packet loss ratio since the last sample.
    fn losses(&mut self, counters: Option<Vec<PathCounters>>) -> Vec<Option<f64>> {
        let now = counters.unwrap_or_default();
        let before = self.counters.take().unwrap_or_else(|| vec![PathCounters::default(); now.len()]);
        let losses = now.iter().zip(&before).map(|(now, before)| now.loss_since(before)).collect();
        self.counters = Some(now);
        losses
    }

    /// Returns the series of a subflow, filled up to now if the subflow is new.
    fn series_of(&mut self, subflow: &SubflowStats) -> &mut SubflowSeries {
        let windows = self.series.time_s.len();
        let position = self.series.subflows.iter().position(|series| series.id == subflow.id.0);
        let position = position.unwrap_or_else(|| {
            self.series.subflows.push(SubflowSeries {
                id: subflow.id.0,
                path: self.paths.name_of(subflow),
                throughput_bps: vec![0.0; windows],
                cwnd_bytes: vec![0; windows],
                srtt_s: vec![None; windows],
                loss_ratio: vec![None; windows],
            });
            self.series.subflows.len() - 1
        });
        &mut self.series.subflows[position]
    }

    /// Returns the series, and the results of each subflow at the end of the run after `duration_s`. `senders` are the
    /// source's views of the destination's subflows.
    pub fn finish(
        self,
        destination: &ConnectionStats,
        senders: &BTreeMap<SubflowId, Sender>,
        counters: &[PathCounters],
        duration_s: f64,
    ) -> (Series, Vec<SubflowResults>) {
        let arrived_bytes: u64 = destination.subflows.iter().map(|subflow| subflow.received_bytes).sum();
        let results = |subflow: &SubflowStats| {
            let sender = senders.get(&subflow.id).copied().unwrap_or_default();
            let path = self.paths.of(subflow).and_then(|path| counters.get(path)).cloned().unwrap_or_default();
            SubflowResults {
                id: subflow.id.0,
                connection: None,
                path: self.paths.name_of(subflow),
                source: subflow.remote.to_string(),
                destination: subflow.local.to_string(),
                state: subflow.state.into(),
                established_s: subflow.established_at.map(Instant::as_secs_f64),
                received_bytes: subflow.received_bytes,
                share_ratio: subflow.received_bytes as f64 / arrived_bytes.max(1) as f64,
                throughput_bps: bps(subflow.received_bytes, duration_s),
                data_packets: sender.data_packets,
                retransmitted_packets: sender.retransmitted_packets,
                retransmitted_bytes: sender.retransmitted_bytes,
                lost_packets: path.lost(),
                queue_drop_packets: path.queue_drops(),
                loss_ratio: path.loss_ratio(),
                mean_rtt_s: mean_rtt_s(&self.series, subflow.id.0),
                min_rtt_s: sender.min_rtt.map(Duration::as_secs_f64),
                timeouts: sender.timeouts,
                congestion_events: sender.congestion_events,
                path_mtu_bytes: sender.path_mtu_bytes,
            }
        };
        let mut subflows: Vec<SubflowResults> = destination.subflows.iter().map(results).collect();
        // Subflows of several connections come in another order here than in the windows, which list them as they
        // appeared.
        subflows.sort_by_key(|subflow| subflow.id);
        let mut series = self.series;
        series.subflows.sort_by_key(|subflow| subflow.id);
        (series, subflows)
    }
}

fn mean_rtt_s(series: &Series, id: u16) -> Option<f64> {
    let subflow = series.subflows.iter().find(|subflow| subflow.id == id)?;
    let samples: Vec<f64> = subflow.srtt_s.iter().flatten().copied().collect();
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// Octets over time as bit/s, rounded: a rate needs no fractions of a bit.
pub(crate) fn bps(bytes: u64, span_s: f64) -> f64 {
    if span_s > 0.0 { (bytes as f64 * 8.0 / span_s).round() } else { 0.0 }
}
