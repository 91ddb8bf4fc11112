//! Takes a sample of both hosts and of the links at the end of every window.

use std::collections::BTreeMap;

use network::{DropCause, Network};
use transport::{ConnectionStats, SubflowStats};
use units::Instant;

use super::topology::Topology;
use crate::results::{Series, SubflowSeries};
use crate::scenario::{Addresses, Scenario};

/// What a path did to the packets towards the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathCounters {
    /// Packets that entered it.
    pub entered: u64,
    /// Packets it dropped.
    pub lost: u64,
    /// Of these, those that found a queue full.
    pub queue_drops: u64,
}

/// The counters of every path.
pub(super) fn path_counters(network: &Network, topology: &Paths) -> Vec<PathCounters> {
    let of_path = |links: &[network::VertexId; 2]| {
        let [first, second] = links.map(|link| network.counters(link));
        let sum = |cause| first.dropped(cause).packets + second.dropped(cause).packets;
        PathCounters {
            entered: first.entered.packets,
            lost: first.dropped_total().packets + second.dropped_total().packets,
            queue_drops: sum(DropCause::QueueFull),
        }
    };
    topology.downlinks.iter().map(of_path).collect()
}

/// The paths: their names, addresses and links.
pub(super) struct Paths {
    names: Vec<String>,
    addresses: Addresses,
    downlinks: Vec<[network::VertexId; 2]>,
}

impl Paths {
    pub fn new(scenario: &Scenario, addresses: Addresses, topology: &Topology) -> Self {
        let names = scenario.relays.iter().map(|relay| relay.name.clone()).collect();
        Self { names, addresses, downlinks: topology.downlinks.clone() }
    }

    /// The number of the path that the destination's subflow takes.
    pub fn of(&self, subflow: &SubflowStats) -> Option<usize> {
        self.addresses.paths.iter().position(|address| *address == subflow.local.ip())
    }

    pub fn name_of(&self, subflow: &SubflowStats) -> String {
        self.of(subflow).map_or_else(|| subflow.local.ip().to_string(), |path| self.names[path].clone())
    }
}

/// The source's view of one of the destination's subflows.
pub(super) fn at_source<'a>(source: &'a ConnectionStats, subflow: &SubflowStats) -> Option<&'a SubflowStats> {
    source.subflows.iter().find(|other| other.local == subflow.remote && other.remote == subflow.local)
}

/// Records windows.
pub(super) struct Recorder {
    paths: Paths,
    series: Series,
    last_at: Instant,
    delivered_bytes: u64,
    /// Octets received so far, by the destination's subflow.
    received_bytes: BTreeMap<u16, u64>,
    counters: Vec<PathCounters>,
}

impl Recorder {
    pub fn new(scenario: &Scenario, paths: Paths) -> Self {
        let series = Series { window_s: scenario.metrics.window.as_secs_f64(), ..Series::default() };
        let counters = vec![PathCounters::default(); paths.downlinks.len()];
        let received_bytes = BTreeMap::new();
        Self { paths, series, last_at: Instant::ZERO, delivered_bytes: 0, received_bytes, counters }
    }

    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    pub fn into_series(self) -> Series {
        self.series
    }

    /// Closes the window that ends `now`.
    pub fn sample(
        &mut self,
        now: Instant,
        delivered_bytes: u64,
        source: &ConnectionStats,
        destination: &ConnectionStats,
        network: &Network,
    ) {
        let span_s = (now - self.last_at).as_secs_f64();
        if span_s == 0.0 {
            return;
        }
        self.last_at = now;
        let losses = self.losses(network);
        let mut arrived_bytes = 0;
        for subflow in &destination.subflows {
            let before = self.received_bytes.insert(subflow.id.0, subflow.received_bytes).unwrap_or(0);
            let arrived = subflow.received_bytes - before;
            arrived_bytes += arrived;
            let loss = self.paths.of(subflow).and_then(|path| losses[path]);
            let sender = at_source(source, subflow);
            let series = self.series_of(subflow);
            series.throughput_bps.push(bps(arrived, span_s));
            series.cwnd_bytes.push(sender.map_or(0, |stats| stats.cwnd_bytes));
            series.srtt_s.push(sender.and_then(|stats| stats.srtt).map(|srtt| srtt.as_secs_f64()));
            series.loss_ratio.push(loss);
        }
        self.series.time_s.push(now.as_secs_f64());
        self.series.aggregate_throughput_bps.push(bps(arrived_bytes, span_s));
        self.series.goodput_in_order_bps.push(bps(delivered_bytes - self.delivered_bytes, span_s));
        self.series.out_of_order_bytes.push(destination.out_of_order_bytes);
        self.delivered_bytes = delivered_bytes;
    }

    /// Each path's share of packets lost since the last sample; `None` where none entered.
    fn losses(&mut self, network: &Network) -> Vec<Option<f64>> {
        let now = path_counters(network, &self.paths);
        let loss = |(now, before): (&PathCounters, &PathCounters)| {
            let (entered, lost) = (now.entered - before.entered, now.lost - before.lost);
            // A packet may be lost in a later window than it entered.
            (entered > 0 || lost > 0).then(|| (lost as f64 / entered.max(1) as f64).min(1.0))
        };
        let losses = now.iter().zip(&self.counters).map(loss).collect();
        self.counters = now;
        losses
    }

    /// The series of a subflow, filled up to now if it is new.
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
}

/// Octets per time as bit/s, rounded: a rate needs no fractions of a bit.
pub(super) fn bps(bytes: u64, span_s: f64) -> f64 {
    if span_s > 0.0 { (bytes as f64 * 8.0 / span_s).round() } else { 0.0 }
}
