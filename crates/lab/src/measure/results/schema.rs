//! The result schema. Field names end in their unit: `_bps` bit/s, `_bytes` octets, `_s` seconds, `_ratio` of 1.

use serde::{Deserialize, Serialize};
use units::Duration;

use super::{
    BottleneckResults, BottleneckSeries, LatencyResults, PaperMetrics, RelayResults, RelaySeries, SelectionResults,
    VideoResults,
};
use crate::measure::bps;
use crate::scenario::Scenario;

/// The results of one run.
///
/// Everything but [`Totals::wall_s`] is a function of scenario, seed and version when the backend is the simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// What was run, and how.
    pub manifest: Manifest,
    /// The run as a whole.
    pub totals: Totals,
    /// Measurements per window.
    pub series: Series,
    /// Measurements per subflow, in order of creation.
    pub subflows: Vec<SubflowResults>,
    /// Measurements per relay, in the scenario's order.
    #[serde(default)]
    pub relays: Vec<RelayResults>,
    /// The link that all paths share; absent without a `bottleneck`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<BottleneckResults>,
    /// The papers' metrics; null if the backend does not see enough for them.
    #[serde(default)]
    pub metrics: Option<PaperMetrics>,
    /// Results of relay selection; null where all relays, or fixed ones, carry data.
    #[serde(default)]
    pub selection: Option<SelectionResults>,
}

/// Identifies a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// Its complete content, with overrides and defaults filled in.
    pub content: serde_json::Value,
    /// The seed.
    pub seed: u64,
    /// Version of this program.
    pub version: String,
    /// The backend: `simulator`, `linux` or `ns3`.
    pub backend: String,
    /// The backend with the stacks at its ends, as options of the command; empty for the simulator, and if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub world: String,
    /// Variant of the scenario; null for the scenario as written.
    #[serde(default)]
    pub variant: Option<String>,
    /// Changes from the command line, each in the notation of `--set`; `content` includes them.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// The files that `content` names; absent without any, and where digests are not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDigest>,
}

/// A file that a run depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Its path, as the scenario names it.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal; null for pipes, which can be read only once.
    pub sha256: Option<String>,
}

/// The run as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Whether everything was delivered and both hosts closed their side before the scenario's duration ended. For data
    /// without an end: whether any arrived, and neither the user nor a failure ended the run early.
    pub completed: bool,
    /// Whether the user ended the run early. Absent if not.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub interrupted: bool,
    /// Octets that the source meant to send; for bulk data, those that it handed to the transport.
    pub source_bytes: u64,
    /// Octets delivered in order to the application.
    pub delivered_bytes: u64,
    /// Whether exactly the source's octets were delivered, compared octet for octet. For data without an end: whether
    /// the octets delivered match, if there are any.
    pub intact: bool,
    /// SHA-256 of the source's octets, in hexadecimal. Null where the stream has no end, and in sweeps, which do not
    /// show it.
    pub sha256_source: Option<String>,
    /// SHA-256 of the octets delivered, under the same conditions.
    pub sha256_received: Option<String>,
    /// Time from the start of the run to the last delivery, or to the end of a run that did not complete.
    pub duration_s: f64,
    /// Payload octets that arrived over all subflows, duplicates included, over the duration.
    pub aggregate_throughput_bps: f64,
    /// Octets delivered in order to the application over the duration (G3).
    pub goodput_in_order_bps: f64,
    /// Packets with payload that the source sent, retransmissions included.
    pub data_packets: u64,
    /// Of these, retransmissions by a subflow.
    pub retransmitted_packets: u64,
    /// Octets that the source gave to another subflow, whether or not they had already left the one that failed; null
    /// if the backend does not report them.
    pub reinjected_bytes: Option<u64>,
    /// Octets that arrived in order on their subflow although the destination already had them. It counts octets below
    /// the first hole of the connection, over any subflow, also the same one under other subflow sequence numbers; and
    /// octets waiting beyond that hole, from the same subflow. It excludes octets that a subflow drops by its own
    /// sequence numbers or still holds behind a hole of its own, and octets that wait twice, on two subflows.
    pub duplicate_bytes: u64,
    /// Largest number of octets that waited for data of other subflows, after arriving in order on their own. Octets
    /// that a subflow holds behind a hole of its own do not count, so the value is 0 with one subflow; the metrics'
    /// `receive_buffer_bytes` includes them.
    pub out_of_order_peak_bytes: u64,
    /// Results of the viewers; null without a video.
    #[serde(default)]
    pub video: Option<VideoResults>,
    /// Response times; null without requests.
    #[serde(default)]
    pub answers: Option<LatencyResults>,
    /// Cost of the control plane; null if there is no control traffic.
    #[serde(default)]
    pub control: Option<ControlResults>,
    /// How well the machine kept up with a run in real time; null in the simulator.
    #[serde(default)]
    pub lateness: Option<Lateness>,
    /// Subflows that a kernel as the destination reset before it had acknowledged data over them: its reaction to a
    /// join whose first data are lost (docs/linux.md). Absent where an engine receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subflows_reset: Option<u64>,
    /// Wall-clock time of the run: creating hosts and keys, simulating, and computing the results; for the command
    /// `run`, also digests and files. Null in files, where the same scenario and seed must yield the same bytes.
    pub wall_s: Option<f64>,
}

/// How well a machine kept up with the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Share of the run, of 1, in which something was overdue by more than a millisecond.
    pub behind_ratio: f64,
    /// The largest delay.
    pub max_s: f64,
}

/// Traffic of destination, relays and source on their channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlResults {
    /// Octets of channels that the hosts sent; includes handshakes, but not TCP/IP headers and retransmissions.
    pub sent_bytes: u64,
    /// Channels that were opened, counted at both ends.
    pub channels_opened: u64,
    /// Channels that were closed because of octets that did not come from the peer.
    pub channels_refused: u64,
}

/// Measurements per window. Every list has one entry per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of a window; the last one ends with the run and may be shorter.
    pub window_s: f64,
    /// End of each window.
    pub time_s: Vec<f64>,
    /// Payload octets that arrived over all subflows, duplicates included.
    pub aggregate_throughput_bps: Vec<f64>,
    /// Octets delivered in order to the application (G3).
    pub goodput_in_order_bps: Vec<f64>,
    /// Octets that wait for data of other subflows, as in [`Totals::out_of_order_peak_bytes`], at the end of the window.
    pub out_of_order_bytes: Vec<u64>,
    /// Measurements per subflow, in order of creation.
    pub subflows: Vec<SubflowSeries>,
    /// Measurements per relay, in the scenario's order.
    #[serde(default)]
    pub relays: Vec<RelaySeries>,
    /// Measurements of the link that all paths share; absent without a `bottleneck`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<BottleneckSeries>,
}

/// Measurements of one subflow per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubflowSeries {
    /// Number of the subflow at the destination.
    pub id: u16,
    /// The path it takes: the name of its relay.
    pub path: String,
    /// Payload octets that arrived, duplicates included.
    pub throughput_bps: Vec<f64>,
    /// The source's congestion window at the end of the window.
    pub cwnd_bytes: Vec<u64>,
    /// The source's smoothed round-trip time at the end of the window; null before the first sample.
    pub srtt_s: Vec<Option<f64>>,
    /// Like [`SubflowResults::loss_ratio`], for the packets that entered and were dropped in the window. A packet may
    /// be dropped in a later window than it entered; the ratio is limited to 1. Null if none entered.
    pub loss_ratio: Vec<Option<f64>>,
}

/// One subflow over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubflowResults {
    /// Number of the subflow at the destination.
    pub id: u16,
    /// Its connection, as an index into the metrics' `connections`, from 0. Present only if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<usize>,
    /// The path it takes: the name of its relay.
    pub path: String,
    /// The source's address and port.
    pub source: String,
    /// The destination's address and port.
    pub destination: String,
    /// State at the end (RFC 9293 section 3.3.2).
    pub state: String,
    /// When it was established.
    pub established_s: Option<f64>,
    /// Payload octets that arrived at the destination, duplicates included.
    pub received_bytes: u64,
    /// Its share of all payload octets that arrived.
    pub share_ratio: f64,
    /// Payload octets that arrived, over the run's duration.
    pub throughput_bps: f64,
    /// Packets with payload that the source sent, retransmissions included.
    pub data_packets: u64,
    /// Of these, retransmissions.
    pub retransmitted_packets: u64,
    /// Payload octets of the retransmissions.
    pub retransmitted_bytes: u64,
    /// Packets that the two hops of the path, cellular and Wi-Fi, dropped on the way to the destination, for any reason
    /// and from any sender. Excludes packets dropped elsewhere (at a bottleneck, on a cell's core wire, by the relay
    /// itself) and copies by `duplicate`.
    pub lost_packets: u64,
    /// Of these, packets that found a queue full.
    pub queue_drop_packets: u64,
    /// Probability that a packet that travels all of the path is lost: 1 - product of (1 - dropped / entered) over the
    /// elements of these hops. Each element counts all that entered it, also pieces of packets and packets of other
    /// senders, but no copies.
    pub loss_ratio: f64,
    /// Mean of the smoothed round-trip time at the end of each window, from the window of its first sample on.
    pub mean_rtt_s: Option<f64>,
    /// Smallest round-trip time of its lifetime.
    pub min_rtt_s: Option<f64>,
    /// Retransmission time-outs; null if the backend does not report them.
    pub timeouts: Option<u64>,
    /// Reductions of the congestion window after loss or ECN; null if the backend does not report them.
    pub congestion_events: Option<u64>,
    /// Largest IP packet that the source sends at the end: its path MTU, known or assumed; null if the backend does not
    /// report it.
    #[serde(default)]
    pub path_mtu_bytes: Option<u16>,
}

impl Manifest {
    /// Creates the manifest of a run of `scenario`.
    pub fn new(scenario: &Scenario, backend: &str) -> Self {
        Self {
            scenario: scenario.name.clone(),
            content: serde_json::to_value(scenario).expect("scenarios have text keys and finite numbers"),
            seed: scenario.seed,
            version: env!("CARGO_PKG_VERSION").into(),
            backend: backend.into(),
            world: String::new(),
            variant: scenario.variant.clone(),
            overrides: scenario.overrides.clone(),
            files: Vec::new(),
        }
    }

    /// Returns the backend as options of the command, or `simulator`. Of results that do not state the stacks, as those
    /// of earlier versions, it names none.
    pub fn backend_options(&self) -> String {
        match (self.world.as_str(), self.backend.as_str()) {
            ("", "simulator") => "simulator".into(),
            ("", other) => format!("--backend {other}"),
            (world, _) => world.into(),
        }
    }
}

impl Totals {
    /// Returns whether the run ended before all octets had arrived.
    pub fn is_cut_short(&self) -> bool {
        !self.completed && self.delivered_bytes < self.source_bytes
    }

    /// Describes what is wrong with the data of a transfer that was cut short, if they are not the beginning of what
    /// was sent.
    pub fn damage(&self, is_beginning: impl FnOnce() -> bool) -> Option<String> {
        let damaged = self.is_cut_short() && !is_beginning();
        damaged.then(|| "the data received are not the beginning of the data sent".into())
    }

    /// Describes what is wrong with a run of at most `duration`. `ceased` says since when nothing arrived and why, if
    /// that was long before its end.
    pub fn fault(&self, duration: Duration, ceased: Option<&str>) -> Option<String> {
        if !self.completed {
            let (delivered, wanted) = (self.delivered_bytes, self.source_bytes);
            if let Some(fault) = self.fault_of_the_end(duration) {
                return Some(fault);
            }
            if delivered == 0 && self.out_of_order_peak_bytes > 0 {
                let waiting = self.out_of_order_peak_bytes;
                let why = format!("up to {waiting} bytes that did arrive waited for earlier ones");
                return Some(format!("none of {wanted} bytes arrived in order within {duration}: {why}"));
            }
            if delivered == 0 {
                let why = "no connection was established, or none of its paths delivered data in that time";
                return Some(format!("none of {wanted} bytes arrived within {duration}: {why}"));
            }
            let problem = format!("only {delivered} of {wanted} bytes arrived within {duration}");
            return Some(match ceased {
                Some(since) => format!("{problem}, and none {since}"),
                None => format!("{problem}; a longer duration or faster links would complete it"),
            });
        }
        self.difference()
    }

    /// Describes what is wrong with a transfer of which as much arrived as was sent, or more, but not its end.
    fn fault_of_the_end(&self, duration: Duration) -> Option<String> {
        let (delivered, wanted) = (self.delivered_bytes, self.source_bytes);
        let end = "the end of the stream did not arrive";
        match delivered.checked_sub(wanted)? {
            _ if delivered == 0 => None,
            0 => Some(format!("all {wanted} bytes arrived within {duration}, but {end}")),
            _ => Some(format!("{delivered} bytes arrived within {duration}, more than the {wanted} sent, and {end}")),
        }
    }

    /// Describes what is wrong with the data of a completed run.
    pub fn difference(&self) -> Option<String> {
        let differs = self.completed && !self.intact;
        differs.then(|| "the data received differ from the data sent".into())
    }
}

impl Results {
    /// Creates results and fills in the totals over all subflows: throughput, goodput and packets.
    pub fn new(manifest: Manifest, mut totals: Totals, series: Series, subflows: Vec<SubflowResults>) -> Self {
        let sum = |count: fn(&SubflowResults) -> u64| subflows.iter().map(count).sum();
        totals.aggregate_throughput_bps = bps(sum(|subflow| subflow.received_bytes), totals.duration_s);
        totals.goodput_in_order_bps = bps(totals.delivered_bytes, totals.duration_s);
        totals.data_packets = sum(|subflow| subflow.data_packets);
        totals.retransmitted_packets = sum(|subflow| subflow.retransmitted_packets);
        Self {
            manifest,
            totals,
            series,
            subflows,
            relays: Vec::new(),
            bottleneck: None,
            metrics: None,
            selection: None,
        }
    }

    /// The results as files store them, without values that differ from run to run.
    pub fn reproducible(&self) -> Self {
        let mut results = self.clone();
        results.totals.wall_s = None;
        results
    }

    /// One JSON object, indented, with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("results have text keys and finite numbers");
        text.push('\n');
        text
    }

    /// Returns whether the run includes a connection, instead of only traffic of the relays' owners.
    pub fn has_connection(&self) -> bool {
        self.manifest.content.pointer("/workload/kind").is_none_or(|kind| kind != "none")
    }

    /// Energy that the relays spent together; `None` without prices.
    pub fn energy_j(&self) -> Option<f64> {
        self.relays.iter().filter_map(|relay| relay.energy_j).reduce(|sum, energy_j| sum + energy_j)
    }

    /// Describes over which relay a connection began before any selection; `None` if none did.
    pub fn begun_unchosen(&self) -> Option<String> {
        let Some(first) = self.selection.as_ref()?.migrations.first() else {
            let paths = self.paths().join(", ");
            return (!paths.is_empty())
                .then(|| format!("no relays were chosen: the connection stayed on the relay where it began, {paths}"));
        };
        let began = first.from.join(", ");
        (!began.is_empty())
            .then(|| format!("the connection began over {began}; relays were first chosen at {:.2} s", first.at_s))
    }

    /// The names of all paths that carried a subflow, in order of first use.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = Vec::new();
        for subflow in &self.subflows {
            if !paths.contains(&subflow.path.as_str()) {
                paths.push(&subflow.path);
            }
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_short_is_compared_with_as_much_of_the_source() {
        let cut = Totals { delivered_bytes: 3, source_bytes: 9, ..Totals::default() };
        assert!(cut.is_cut_short());
        assert_eq!(cut.damage(|| true), None);
        assert!(cut.damage(|| false).unwrap().contains("not the beginning"));
        let whole = Totals { completed: true, delivered_bytes: 9, ..cut };
        assert!(!whole.is_cut_short() && whole.damage(|| false).is_none());
    }
}
