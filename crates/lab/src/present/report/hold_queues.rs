//! Data that the relays held back because the destination did not want them yet.

use super::chart::{Chart, Curve};
use super::scale::AMOUNTS;
use super::{View, WIDE, figure};
use crate::measure::results::RelaySeries;

/// Maximum number of curves: those of the relays that held most.
const CURVES_MAX: usize = 8;

/// The figure; empty if no relay held anything.
pub(super) fn section(view: &View<'_>) -> String {
    let most = |relay: &RelaySeries| relay.hold_queue_bytes.iter().copied().max().unwrap_or(0);
    let series = &view.results.series;
    let mut held: Vec<&RelaySeries> = series.relays.iter().filter(|relay| most(relay) > 0).collect();
    if held.is_empty() {
        return String::new();
    }
    let all = held.len();
    held.sort_by_key(|relay| core::cmp::Reverse(most(relay)));
    held.truncate(CURVES_MAX);
    let curve = |relay: &&RelaySeries| Curve {
        name: relay.name.clone(),
        class: view.class(&relay.name),
        values: relay.hold_queue_bytes.iter().map(|bytes| Some(*bytes as f64)).collect(),
    };
    let chart = Chart {
        label: "Octets held at each relay over time",
        size: WIDE,
        units: AMOUNTS,
        time_s: &series.time_s,
        band: None,
        marked_s: Vec::new(),
        counted_s: None,
        stacked: Vec::new(),
        ribbons: Vec::new(),
        lines: held.iter().map(curve).collect(),
    };
    let shown = if all > CURVES_MAX { format!(" The {CURVES_MAX} of {all} that held most.") } else { String::new() };
    let caption = format!("Data that wait at the relays because the destination does not want them yet.{shown}");
    figure("Hold queues", &caption, &view.legend(None), &chart.svg())
}
