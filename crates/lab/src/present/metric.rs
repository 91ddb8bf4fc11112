//! The values of a run that people compare.

use crate::present::quantity;

/// A value that tables and reports show; all others are in the files only.
#[derive(Debug)]
pub(crate) struct Metric {
    /// Its name in [`crate::run::sweep::Record::values`].
    pub name: &'static str,
    /// What a heading calls it.
    pub title: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// What its number counts.
    pub kind: Kind,
    /// Which way one wants it.
    pub better: Better,
    /// Its column in the table on the terminal, if it has one.
    pub column: Option<&'static str>,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bit/s.
    Rate,
    /// Seconds.
    Time,
    /// Octets.
    Amount,
    /// Things, or nothing.
    Number,
    /// Of 1.
    Ratio,
    /// Of 100.
    Percent,
}

/// Which way one wants a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Larger.
    More,
    /// Smaller.
    Less,
    /// Neither as such.
    Neither,
}

impl Metric {
    /// One of [`METRICS`], without a column; [`Self::column`] gives it one.
    const fn new(name: &'static str, title: &'static str, kind: Kind, better: Better, about: &'static str) -> Self {
        Self { name, title, about, kind, better, column: None }
    }

    const fn column(self, title: &'static str) -> Self {
        Self { column: Some(title), ..self }
    }

    /// `value` with its unit, for people.
    pub fn show(&self, value: f64) -> String {
        match self.kind {
            Kind::Rate => quantity(value, "bit/s"),
            Kind::Amount => quantity(value, "B"),
            Kind::Time if value != 0.0 && value.abs() < 0.9995 => format!("{:.1} ms", value * 1000.0),
            Kind::Time => format!("{value:.2} s"),
            Kind::Number => format!("{value:.2}"),
            Kind::Ratio => format!("{:.1} %", value * 100.0),
            Kind::Percent => format!("{value:.1} %"),
        }
    }
}

/// In the order in which they are shown.
#[rustfmt::skip]
pub(crate) const METRICS: [Metric; 16] = [
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
    Metric::new("local_ratio_mean", "Relays' own traffic", Kind::Ratio, Better::More,
        "What the relays' own traffic got of what it asked for; mean over the relays.").column("local traffic"),
    Metric::new("jain_index", "Jain's fairness index", Kind::Number, Better::More,
        "Over the goodputs of the connections and of owners' flows that take all they can get; 1 if all get the same.").column("Jain index"),
    Metric::new("duration_s", "Time to the last delivery", Kind::Time, Better::Less,
        "Or to the end of a run that did not complete."),
    Metric::new("analysis.delay_s", "Delay", Kind::Time, Better::Less,
        "From the first transmission of a packet to its arrival; mean over the monitor points."),
    Metric::new("analysis.jitter_s", "Jitter", Kind::Time, Better::Less,
        "Mean difference of the delays of packets that arrive one after the other."),
    Metric::new("analysis.receive_buffer_bytes", "Receive buffer, peak", Kind::Amount, Better::Less,
        "Most octets stored at the destination at any time."),
    Metric::new("analysis.reordering_peak_bytes", "Reordering O3-DSN, peak", Kind::Amount, Better::Less,
        "Largest step between the data sequence numbers of chunks that arrive one after the other."),
    Metric::new("retransmitted_packets", "Retransmissions", Kind::Number, Better::Less,
        "Packets that a subflow sent again."),
    Metric::new("duplicate_bytes", "Duplicates", Kind::Amount, Better::Less,
        "Octets that arrived on more than one subflow; what one subflow brought twice counts as throughput only."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_the_unit_of_their_kind() {
        let shown = |name: &str, value: f64| METRICS.iter().find(|metric| metric.name == name).unwrap().show(value);
        assert_eq!(shown("goodput_in_order_bps", 3_210_000.0), "3.21 Mbit/s");
        assert_eq!((shown("duration_s", 0.0425), shown("duration_s", 12.5)), ("42.5 ms".into(), "12.50 s".into()));
        assert_eq!(shown("local_ratio_mean", 0.975), "97.5 %");
        assert_eq!(shown("analysis.variation_mean_percent", 12.25), "12.2 %");
        assert_eq!(shown("analysis.receive_buffer_bytes", 64_000.0), "64.0 kB");
    }
}
