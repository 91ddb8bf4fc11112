//! The result schema. Field names end in their unit: `_bps` bit/s, `_bytes` octets, `_s` seconds, `_ratio` of 1.

use serde::{Deserialize, Serialize};
use units::Duration;

use super::{LatencyResults, PaperMetrics, RelayResults, RelaySeries, SelectionResults, VideoResults};
use crate::measure::bps;
use crate::scenario::Scenario;

/// The results of one run.
///
/// Everything but [`Totals::wall_s`] is a function of scenario, seed and version when the backend is the simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// What was run.
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
    /// The papers' metrics; null if the backend does not see enough for them.
    #[serde(default)]
    pub metrics: Option<PaperMetrics>,
    /// What relay selection did; null where all relays, or fixed ones, carry data.
    #[serde(default)]
    pub selection: Option<SelectionResults>,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// Its whole content, with overrides and defaults filled in.
    pub content: serde_json::Value,
    /// The seed.
    pub seed: u64,
    /// Version of this program.
    pub version: String,
    /// What ran it: `simulator` or `linux`.
    pub backend: String,
    /// Which variant of the scenario it was; null for the scenario as written.
    #[serde(default)]
    pub variant: Option<String>,
    /// What the command line changed, each as after `--set`; the content above has it already.
    #[serde(default)]
    pub overrides: Vec<String>,
}

/// The run as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Whether everything was delivered and both hosts closed their side before the scenario's duration ended; of data without an end, whether
    /// they came until then; not if nothing ever came.
    pub completed: bool,
    /// Somebody ended the run before it was over. Absent if not.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub interrupted: bool,
    /// Octets the source meant to send; for bulk, those it handed to the transport.
    pub source_bytes: u64,
    /// Octets delivered in order to the application.
    pub delivered_bytes: u64,
    /// Whether exactly the source's octets were delivered, compared octet for octet; for data without an end, as many as were
    /// delivered, if any were.
    pub intact: bool,
    /// SHA-256 of the source's octets, in hexadecimal: null where the stream has no end, and in sweeps, where nobody is
    /// shown it.
    pub sha256_source: Option<String>,
    /// SHA-256 of the octets delivered, likewise.
    pub sha256_received: Option<String>,
    /// Time from the start of the run to the last delivery, or to the end of a run that did not complete.
    pub duration_s: f64,
    /// Payload octets that arrived over all subflows, duplicates included, over the duration.
    pub aggregate_throughput_bps: f64,
    /// Octets delivered in order to the application over the duration (G3).
    pub goodput_in_order_bps: f64,
    /// Packets with payload the source sent, retransmissions included.
    pub data_packets: u64,
    /// Of these, retransmissions by a subflow.
    pub retransmitted_packets: u64,
    /// Octets the source sent again on another subflow; null if the backend does not tell.
    pub reinjected_bytes: Option<u64>,
    /// Octets that came in order on their subflow when the destination had them already: up to the first hole of the connection, over whichever
    /// subflow, the same one under other subflow sequence numbers included; or waiting beyond that hole, from the same subflow. Not in it is what
    /// a subflow drops by its own sequence numbers or still holds behind a hole of its own, nor what waits twice, of two subflows.
    pub duplicate_bytes: u64,
    /// Most octets that ever waited for data of other subflows: they had come in order on their own. What a subflow keeps to itself behind a
    /// hole of its own is not in it, so that it is 0 with one subflow; the metrics' `receive_buffer_bytes` count that, too.
    pub out_of_order_peak_bytes: u64,
    /// What viewers saw; null without a video.
    #[serde(default)]
    pub video: Option<VideoResults>,
    /// How long answers took; null without requests.
    #[serde(default)]
    pub answers: Option<LatencyResults>,
    /// What the control plane cost; null where nobody says anything.
    #[serde(default)]
    pub control: Option<ControlResults>,
    /// How well the machine kept up with a run in real time; null in the simulator.
    #[serde(default)]
    pub lateness: Option<Lateness>,
    /// Subflows that the kernel as the destination reset before it had acknowledged data over them: what it does with a join whose first data
    /// are lost (docs/linux.md). Absent where an engine receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subflows_reset: Option<u64>,
    /// Wall-clock time of the run: hosts and keys made, the simulation, and what is worked out from it; as the command `run` tells it, digests and
    /// files as well. Null where results must be the same bytes for the same scenario and seed: in files.
    pub wall_s: Option<f64>,
}

/// How well a machine kept up with the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Share of the run in which something had been due for more than a millisecond, of 1.
    pub behind_ratio: f64,
    /// The latest that anything was.
    pub max_s: f64,
}

/// What destination, relays and source told each other over their channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlResults {
    /// Octets of channels that the hosts sent, handshakes included, TCP/IP headers and retransmissions not.
    pub sent_bytes: u64,
    /// Channels that were opened, counted at both ends.
    pub channels_opened: u64,
    /// Channels that were given up because of octets that were not the peer's.
    pub channels_refused: u64,
}

/// Measurements per window. All lists have one entry per window.
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
}

/// Measurements of one subflow per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubflowSeries {
    /// Number of the subflow at the destination.
    pub id: u16,
    /// The path it takes: its relay's name.
    pub path: String,
    /// Payload octets that arrived, duplicates included.
    pub throughput_bps: Vec<f64>,
    /// The source's congestion window at the end of the window.
    pub cwnd_bytes: Vec<u64>,
    /// The source's smoothed round-trip time at the end of the window; null before the first sample.
    pub srtt_s: Vec<Option<f64>>,
    /// As [`SubflowResults::loss_ratio`], of what entered and was dropped in the window: a packet may be dropped in a later one than it
    /// entered, which counts as all that entered at most. Null if none entered.
    pub loss_ratio: Vec<Option<f64>>,
}

/// One subflow over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubflowResults {
    /// Number of the subflow at the destination.
    pub id: u16,
    /// Which connection it is of: its place in the metrics' `connections`, from 0. Only there where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<usize>,
    /// The path it takes: its relay's name.
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
    /// Packets with payload the source sent, retransmissions included.
    pub data_packets: u64,
    /// Of these, retransmissions.
    pub retransmitted_packets: u64,
    /// Payload octets of the retransmissions.
    pub retransmitted_bytes: u64,
    /// Packets that the two hops of the path, cellular and Wi-Fi, dropped on the way to the destination, for any reason and whoever sent
    /// them. Not what is dropped elsewhere (at a bottleneck, on a cell's core wire, by the relay itself), nor copies by `duplicate`.
    pub lost_packets: u64,
    /// Of these, those that found a queue full.
    pub queue_drop_packets: u64,
    /// How likely a packet was lost that went all the way: 1 - product of (1 - dropped / entered) over what it passes on these hops. Each
    /// counts what entered it, pieces of packets and what others send there included, but no copies.
    pub loss_ratio: f64,
    /// Mean of the smoothed round-trip time at the end of each window, over the windows from its first sample on.
    pub mean_rtt_s: Option<f64>,
    /// Smallest round-trip time of all its life.
    pub min_rtt_s: Option<f64>,
    /// Retransmission time-outs; null if the backend does not tell.
    pub timeouts: Option<u64>,
    /// Reductions of the congestion window after loss or ECN; null if the backend does not tell.
    pub congestion_events: Option<u64>,
    /// Largest IP packet that the source sent at the end: what it knew or believed the path to carry; null if the backend
    /// does not tell.
    #[serde(default)]
    pub path_mtu_bytes: Option<u16>,
}

impl Manifest {
    /// The manifest of a run of `scenario`.
    pub fn new(scenario: &Scenario, backend: &str) -> Self {
        Self {
            scenario: scenario.name.clone(),
            content: serde_json::to_value(scenario).expect("scenarios have text keys and finite numbers"),
            seed: scenario.seed,
            version: env!("CARGO_PKG_VERSION").into(),
            backend: backend.into(),
            variant: scenario.variant.clone(),
            overrides: scenario.overrides.clone(),
        }
    }
}

impl Totals {
    /// Whether the run ended before all octets had arrived.
    pub fn is_cut_short(&self) -> bool {
        !self.completed && self.delivered_bytes < self.source_bytes
    }

    /// What is wrong with the part that arrived of a transfer that was cut short, if it is not the beginning of what was sent.
    pub fn damage(&self, is_beginning: impl FnOnce() -> bool) -> Option<String> {
        let damaged = self.is_cut_short() && !is_beginning();
        damaged.then(|| "what arrived is not the beginning of what was sent".into())
    }

    /// What is wrong with a run of at most `duration`, in words; `ceased` says since when nothing arrived and why, if that was long before
    /// its end.
    pub fn fault(&self, duration: Duration, ceased: Option<&str>) -> Option<String> {
        if !self.completed {
            let (delivered, wanted) = (self.delivered_bytes, self.source_bytes);
            if delivered == 0 {
                let why = "no connection came about, or none of its paths carries anything in that time";
                return Some(format!("nothing of {wanted} bytes arrived within {duration}: {why}"));
            }
            let problem = format!("only {delivered} of {wanted} bytes arrived within {duration}");
            return Some(match ceased {
                Some(since) => format!("{problem}, and none {since}"),
                None => format!("{problem}; a longer duration or faster links would complete it"),
            });
        }
        self.difference()
    }

    /// What is wrong with what arrived of a run that did all it was to do, in words.
    pub fn difference(&self) -> Option<String> {
        let differs = self.completed && !self.intact;
        differs.then(|| "what arrived is not what was sent".into())
    }
}

impl Results {
    /// Results whose totals over all subflows are filled in: throughput, goodput and packets.
    pub fn new(manifest: Manifest, mut totals: Totals, series: Series, subflows: Vec<SubflowResults>) -> Self {
        let sum = |count: fn(&SubflowResults) -> u64| subflows.iter().map(count).sum();
        totals.aggregate_throughput_bps = bps(sum(|subflow| subflow.received_bytes), totals.duration_s);
        totals.goodput_in_order_bps = bps(totals.delivered_bytes, totals.duration_s);
        totals.data_packets = sum(|subflow| subflow.data_packets);
        totals.retransmitted_packets = sum(|subflow| subflow.retransmitted_packets);
        Self { manifest, totals, series, subflows, relays: Vec::new(), metrics: None, selection: None }
    }

    /// The results as files hold them: without what differs from run to run.
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

    /// Whether there was to be a connection, rather than the traffic of relays' owners alone.
    pub fn has_connection(&self) -> bool {
        self.manifest.content.pointer("/workload/kind").is_none_or(|kind| kind != "none")
    }

    /// That a connection began before any relays were chosen and over which one, in words; `None` if it did not.
    pub fn begun_unchosen(&self) -> Option<String> {
        let Some(first) = self.selection.as_ref()?.migrations.first() else {
            let paths = self.paths().join(", ");
            return (!paths.is_empty()).then(|| {
                format!("no relays were chosen: the connection stayed on the one over which it began, {paths}")
            });
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
