//! The values of a run that people compare.

use crate::present::quantity;
use crate::present::wording::milliseconds;
use crate::run::sweep::Plan;
use crate::scenario::{Scenario, WorkloadKind};

/// A value that tables and reports show; others appear only in files.
#[derive(Debug)]
pub(crate) struct Metric {
    /// Its name in [`crate::run::sweep::Record::values`].
    pub name: &'static str,
    /// Its name in headings.
    pub title: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// The unit of its number.
    pub kind: Kind,
    /// Which direction is better.
    pub better: Better,
    /// Its column in the table on the terminal, if it has one.
    pub column: Option<&'static str>,
    /// Whether a column of zeros is informative, too: the value exists only where there was something to count.
    pub tells_zero: bool,
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bit/s.
    Rate,
    /// Seconds.
    Time,
    /// Octets.
    Amount,
    /// A count, or a number without unit.
    Number,
    /// A ratio, of 1.
    Ratio,
    /// A percentage, of 100.
    Percent,
    /// Joule.
    Energy,
}

/// Which direction of a value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Larger.
    More,
    /// Smaller.
    Less,
    /// Neither is better.
    Neither,
}

/// The index over a single share, which is always 1.
const JAIN_INDEX: &str = "jain_index";

/// The flows whose shares Jain's index compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Connections of the workload.
    pub connections: u64,
    /// Flows of relays' owners that take all they can get.
    pub own_flows: u64,
}

impl Shares {
    /// Those of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let workload = &scenario.workload;
        let local = scenario.relays.iter().flat_map(|relay| &relay.local);
        Self {
            connections: if workload.kind == WorkloadKind::None { 0 } else { u64::from(workload.connections) },
            own_flows: local.filter(|local| local.is_greedy()).map(|local| u64::from(local.count)).sum(),
        }
    }

    /// Number of shares.
    pub fn count(self) -> u64 {
        self.connections + self.own_flows
    }
}

impl Metric {
    /// Creates an entry of [`METRICS`] without a column; [`Self::column`] adds one.
    const fn new(name: &'static str, title: &'static str, kind: Kind, better: Better, about: &'static str) -> Self {
        Self { name, title, about, kind, better, column: None, tells_zero: false }
    }

    const fn column(self, title: &'static str) -> Self {
        Self { column: Some(title), ..self }
    }

    const fn tells_zero(self) -> Self {
        Self { tells_zero: true, ..self }
    }

    /// Returns whether it can say something about any of the cases of `plan`.
    pub fn concerns(&self, plan: &Plan) -> bool {
        self.name != JAIN_INDEX || plan.cases.iter().any(|case| Shares::of(&case.scenario).count() > 1)
    }

    /// Returns whether these means come of themselves: a single share is always all of it.
    pub fn is_trivial(&self, means: &[f64]) -> bool {
        self.name == JAIN_INDEX && means.iter().all(|mean| *mean == 1.0)
    }

    /// Formats `value` with its unit.
    pub fn show(&self, value: f64) -> String {
        match self.kind {
            Kind::Rate => quantity(value, "bit/s"),
            Kind::Amount => quantity(value, "B"),
            Kind::Time => time(value, value),
            Kind::Number => format!("{value:.2}"),
            Kind::Ratio => format!("{:.1} %", value * 100.0),
            Kind::Percent => format!("{value:.1} %"),
            Kind::Energy => quantity(value, "J"),
        }
    }

    /// Formats `half` the width of an interval around `mean`; times use the mean's unit.
    pub fn show_half(&self, half: f64, mean: f64) -> String {
        if self.kind == Kind::Time { time(half, mean) } else { self.show(half) }
    }
}

/// Formats `seconds` in a unit that suits `size_s`.
pub(super) fn time(seconds: f64, size_s: f64) -> String {
    if size_s != 0.0 && size_s.abs() < 0.9995 { milliseconds(seconds) } else { format!("{seconds:.2} s") }
}

/// In display order: values that people notice come first where the workload concerns them.
#[rustfmt::skip]
pub(crate) const METRICS: [Metric; 35] = [
    Metric::new("answers.median_s", "Answers, median", Kind::Time, Better::Less,
        "Median time until an answer is complete; a missing answer counts with the time spent waiting for it.")
        .column("median answer"),
    Metric::new("answers.p95_s", "Answers, 95th percentile", Kind::Time, Better::Less,
        "Time within which 95 % of the answers are complete; a missing answer counts with the time spent waiting for it.")
        .column("95th-percentile answer"),
    Metric::new("answers.completed", "Answers", Kind::Number, Better::More,
        "Number of complete answers.").column("answers").tells_zero(),
    Metric::new("answers.unfinished", "Missing answers", Kind::Number, Better::Less,
        "Answers not complete at the end, after a longer wait than the others took on average."),
    Metric::new("video.stalls", "Stalls", Kind::Number, Better::Less,
        "How often playback stopped after it had started; total of all viewers.").column("stalls").tells_zero(),
    Metric::new("video.stalled_s", "Time stalled", Kind::Time, Better::Less,
        "How long playback was stopped, total of all viewers; the whole time for a viewer whose video never started.")
        .column("time stalled").tells_zero(),
    Metric::new("video.started_s", "Start-up delay", Kind::Time, Better::Less,
        "Time until playback started, for the last viewer; the whole time if a video never started.")
        .column("start-up delay"),
    Metric::new("video.frames", "Frames", Kind::Number, Better::More,
        "Frames that arrived completely; total of all viewers."),
    Metric::new("goodput_in_order_bps", "Goodput in order", Kind::Rate, Better::More,
        "Octets delivered in order to the application, over the run (G3).").column("goodput"),
    Metric::new("aggregate_throughput_bps", "Aggregate throughput", Kind::Rate, Better::More,
        "Payload that arrived over all subflows, duplicates included, over the run.").column("throughput"),
    Metric::new("analysis.unit_goodput_bps", "Goodput of units, G1", Kind::Rate, Better::More,
        "A unit of consecutive data over the time from its first arrival to its last; mean over the monitor points.")
        .column("G1"),
    Metric::new("analysis.outages", "Outages", Kind::Number, Better::Less,
        "Monitor points with the aggregate throughput outside the range around the target.").column("outages"),
    Metric::new("analysis.avoidable_outages", "Avoidable outages", Kind::Number, Better::Less,
        "Outages in periods in which some relays together were within the range around the target."),
    Metric::new("analysis.variation_mean_percent", "Variation around the target", Kind::Percent, Better::Less,
        "Distance of the aggregate throughput from the target, over the target; mean over the monitor points."),
    Metric::new("analysis.subflows_mean", "Active subflows", Kind::Number, Better::Neither,
        "Size of the active set; mean over the monitor points.").column("subflows"),
    Metric::new("relay_energy_j", "Relays' energy", Kind::Energy, Better::Less,
        "What the relays spent on the data that they carried, at their prices for a bit; sum of all relays.")
        .column("energy"),
    Metric::new("local_ratio_mean", "Relays' own traffic", Kind::Ratio, Better::More,
        "Share of its demand that the relays' own traffic got; mean over the relays.").column("local traffic"),
    Metric::new("local_video.stalls", "Owners' stalls", Kind::Number, Better::Less,
        "How often playback stopped for a relay's owner; mean over the relays whose owners watch a video."),
    Metric::new("local_video.stalled_s", "Owners' time stalled", Kind::Time, Better::Less,
        "How long playback was stopped, the whole time if it never started; mean over the relays whose owners watch a video.")
        .column("owners' time stalled").tells_zero(),
    Metric::new("local_video.started_s", "Owners' start-up delay", Kind::Time, Better::Less,
        "Time until playback started, the whole time if it never did; mean over the relays whose owners watch a video."),
    Metric::new("local_flows.median_s", "Owners' short flows, median", Kind::Time, Better::Less,
        "Median time that a flow takes; a missing flow counts with the time spent waiting for it. Mean over the relays whose owners wait for flows.")
        .column("owners' median flow"),
    Metric::new("local_flows.p95_s", "Owners' short flows, 95th percentile", Kind::Time, Better::Less,
        "Time within which 95 % of the flows are complete; a missing flow counts with the time spent waiting for it. Mean over the relays whose owners wait for flows."),
    Metric::new("local_flows.completed", "Owners' short flows", Kind::Number, Better::More,
        "Number of complete flows; mean over the relays whose owners wait for flows."),
    Metric::new("local_flows.unfinished", "Owners' missing short flows", Kind::Number, Better::Less,
        "Flows broken off or not complete at the end; mean over the relays whose owners wait for flows."),
    Metric::new(JAIN_INDEX, "Jain's fairness index", Kind::Number, Better::More,
        "Over the goodputs of the connections and of owners' flows that take as much as they can; 1 if all get the same.").column("Jain index"),
    Metric::new("duration_s", "Time to the last delivery", Kind::Time, Better::Less,
        "Or to the end of a run that did not complete."),
    Metric::new("analysis.delay_s", "Delay", Kind::Time, Better::Less,
        "From the first transmission of a packet to its arrival; mean over the monitor points."),
    Metric::new("delivery_delay.median_s", "Delay until delivery, median", Kind::Time, Better::Less,
        "Time within which half of the octets were delivered in order to the application, from their first transmission at the source on.")
        .column("median delay"),
    Metric::new("delivery_delay.p95_s", "Delay until delivery, 95th percentile", Kind::Time, Better::Less,
        "Time within which 95 % of the octets were delivered in order to the application, from their first transmission at the source on.")
        .column("p95 delay"),
    Metric::new("delivery_delay.p99_s", "Delay until delivery, 99th percentile", Kind::Time, Better::Less,
        "Time within which 99 % of the octets were delivered in order to the application, from their first transmission at the source on."),
    Metric::new("analysis.jitter_s", "Jitter", Kind::Time, Better::Less,
        "Mean difference of the delays of packets that arrive one after the other."),
    Metric::new("analysis.receive_buffer_bytes", "Receive buffer, peak", Kind::Amount, Better::Less,
        "Most octets stored at the destination at any time."),
    Metric::new("analysis.reordering_peak_bytes", "Reordering O3-DSN, peak", Kind::Amount, Better::Less,
        "Largest step between the data sequence numbers of chunks that arrive one after the other."),
    Metric::new("retransmitted_packets", "Retransmissions", Kind::Number, Better::Less,
        "Packets that a subflow sent again."),
    Metric::new("duplicate_bytes", "Duplicates", Kind::Amount, Better::Less,
        "Octets that arrived in order on their subflow when the connection already had them from any subflow. Octets that a subflow drops \
         or still holds by its own sequence numbers, or that wait twice, count as throughput only."),
];

/// Returns an entry of [`METRICS`].
#[cfg(test)]
pub(crate) fn named(name: &str) -> &'static Metric {
    METRICS.iter().find(|metric| metric.name == name).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_the_unit_of_their_kind() {
        let shown = |name: &str, value: f64| named(name).show(value);
        assert_eq!(shown("goodput_in_order_bps", 3_210_000.0), "3.21 Mbit/s");
        assert_eq!((shown("duration_s", 0.0425), shown("duration_s", 12.5)), ("42.5 ms".into(), "12.50 s".into()));
        let half = |half, mean| named("answers.median_s").show_half(half, mean);
        assert_eq!([half(0.0, 0.5), half(1.25, 0.5), half(0.5, 2.0)], ["0.0 ms", "1250.0 ms", "0.50 s"]);
        assert_eq!(shown("local_ratio_mean", 0.975), "97.5 %");
        assert_eq!(shown("analysis.variation_mean_percent", 12.25), "12.2 %");
        assert_eq!(shown("analysis.receive_buffer_bytes", 64_000.0), "64.0 kB");
        assert_eq!(shown("relay_energy_j", 4.5678), "4.57 J");
    }
}
