//! A card for each relay: the data that it carried beside its own traffic, the rate that the cell would grant it or that
//! its link has, and its queues.

use std::fmt::Write;

use super::View;
use super::html::escape;
use super::scale::Scale;
use super::thin;
use crate::measure::bps;
use crate::measure::results::{RelayResults, RelaySeries};
use crate::present::quantity;

/// Maximum number of cards; the relays that carried most come first.
const CARDS_MAX: usize = 24;
const POINTS_MAX: usize = 120;
const WIDTH: f64 = 220.0;
const RATES_HEIGHT: f64 = 70.0;
const QUEUES_TOP: f64 = 80.0;
const QUEUES_BASE: f64 = 104.0;
/// Space above the highest use, which makes spare capacity visible.
const HEADROOM: f64 = 1.25;

/// Axes that all cards share.
struct Axes {
    x: Scale,
    rates: Scale,
    queues: Scale,
    times_s: Vec<f64>,
    group: usize,
}

/// The section.
pub(super) fn section(view: &View<'_>) -> String {
    let results = view.results;
    let mut relays: Vec<(&RelayResults, &RelaySeries)> = results.relays.iter().zip(&results.series.relays).collect();
    let all = relays.len();
    if all == 0 || results.series.time_s.is_empty() {
        return String::new();
    }
    if all > CARDS_MAX {
        relays.sort_by_key(|(relay, _)| {
            core::cmp::Reverse((relay.chosen, relay.carried_bytes, relay.local_received_bytes))
        });
        relays.truncate(CARDS_MAX);
    }
    let axes = Axes::new(&results.series.time_s, &relays);
    let cards: String = relays.iter().map(|(relay, series)| card(view, &axes, relay, series)).collect();
    let moves = relays.iter().any(|(relay, _)| !relay.handovers.is_empty());
    let moved = if moves { " Upright lines are handovers." } else { "" };
    let shown = if all > CARDS_MAX { format!(" The {CARDS_MAX} of {all} that carried most.") } else { String::new() };
    let is_granted = relays.iter().any(|(relay, series)| is_granted(relay, series));
    let idle =
        if is_granted { " The cell begins idle, and would grant a relay everything until others use it." } else { "" };
    format!(
        "<section class=\"relays\"><h2>Relays</h2><p class=\"note\">Above, up to {}: what each relay carried, with its own traffic \
         on top. Below, up to {}: data waiting in its queues.{idle}{moved}{shown}</p>{}<div class=\"cards\">{cards}</div></section>",
        quantity(axes.rates.to, "bit/s"),
        quantity(axes.queues.to, "B"),
        legend(&relays),
    )
}

/// A legend for everything drawn on any of the cards.
fn legend(relays: &[(&RelayResults, &RelaySeries)]) -> String {
    let any =
        |is_so: fn(&RelayResults, &RelaySeries) -> bool| relays.iter().any(|(relay, series)| is_so(relay, series));
    let entries = [
        (any(|relay, _| relay.chosen), "p0", "carried"),
        (any(|relay, _| relay.has_local_traffic()), "own", "own traffic, got"),
        (any(|relay, _| asks(relay)), "wanted thin", "own traffic, asked for"),
        (any(is_granted), "granted thin", "granted by the cell"),
        (any(|relay, series| is_known(series) && !is_granted(relay, series)), "granted thin", "rate of the link"),
        (true, "p1 thin", "cellular queue"),
        (true, "p4 thin", "Wi-Fi queue"),
    ];
    let drawn = entries.into_iter().filter(|(is_drawn, ..)| *is_drawn);
    let items: String = drawn.map(|(_, class, name)| format!("<li><i class=\"{class}\"></i>{name}</li>")).collect();
    format!("<ul class=\"legend\">{items}</ul>")
}

/// Returns whether its own traffic demands a certain rate, rather than all it can get or nothing.
fn asks(relay: &RelayResults) -> bool {
    relay.local_demand_bytes.is_some_and(|demand| demand > 0)
}

/// Returns whether a cell grants it capacity.
fn is_granted(relay: &RelayResults, series: &RelaySeries) -> bool {
    relay.distance_m.is_some() && is_known(series)
}

/// Returns whether its capacity is known.
fn is_known(series: &RelaySeries) -> bool {
    series.capacity_bps.iter().any(Option::is_some)
}

impl Axes {
    fn new(time_s: &[f64], relays: &[(&RelayResults, &RelaySeries)]) -> Self {
        let uses = relays.iter().flat_map(|(_, series)| sum(&series.carried_bps, &series.local_goodput_bps));
        let waits =
            relays.iter().flat_map(|(_, series)| series.cellular_queue_bytes.iter().chain(&series.wifi_queue_bytes));
        let top_bps = (uses.fold(0.0, f64::max) * HEADROOM).max(1.0);
        let top_bytes = waits.copied().max().unwrap_or(0).max(1) as f64;
        let group = time_s.len().div_ceil(POINTS_MAX).max(1);
        Self {
            x: Scale { from: 0.0, to: time_s.last().copied().unwrap_or(1.0), start: 0.0, end: WIDTH },
            rates: Scale { from: 0.0, to: top_bps, start: RATES_HEIGHT, end: 2.0 },
            queues: Scale { from: 0.0, to: top_bytes, start: QUEUES_BASE, end: QUEUES_TOP },
            times_s: thin::times(time_s, group),
            group,
        }
    }

    /// A curve; values beyond the scale run along its top, and gaps are skipped.
    fn path(&self, y: Scale, values: &[Option<f64>]) -> String {
        let mut path = String::new();
        for (time_s, value) in self.times_s.iter().zip(thin::averaged(values, self.group)) {
            if let Some(value) = value {
                let command = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{command}{:.1} {:.1}", self.x.at(*time_s), y.at(value.min(y.to)));
            }
        }
        path
    }

    fn line(&self, class: &str, y: Scale, values: &[Option<f64>]) -> String {
        format!("<path class=\"line {class}\" d=\"{}\"/>", self.path(y, values))
    }

    /// The area from the axis to `values`. Larger areas are drawn first, and show where they reach higher.
    fn area(&self, class: &str, values: &[Option<f64>]) -> String {
        let path = self.path(self.rates, values);
        let first = self.times_s.first().map_or(0.0, |time_s| self.x.at(*time_s));
        format!("<path class=\"area {class}\" d=\"{path}V{RATES_HEIGHT}H{first:.1}Z\"/>")
    }
}

fn card(view: &View<'_>, axes: &Axes, relay: &RelayResults, series: &RelaySeries) -> String {
    let class = if relay.chosen { view.class(&relay.name) } else { "idle".into() };
    let some = |values: Vec<f64>| values.into_iter().map(Some).collect::<Vec<_>>();
    let octets = |values: &[u64]| values.iter().map(|bytes| Some(*bytes as f64)).collect::<Vec<_>>();
    let mut drawing = format!("<path class=\"grid\" d=\"M0 {RATES_HEIGHT}H{WIDTH}M0 {QUEUES_BASE}H{WIDTH}\"/>");
    if relay.has_local_traffic() {
        drawing += &axes.area("own", &some(sum(&series.carried_bps, &series.local_goodput_bps)));
    }
    if relay.chosen {
        drawing += &axes.area(&class, &some(series.carried_bps.clone()));
    }
    if asks(relay) {
        let wanted = series.carried_bps.iter().zip(&series.local_demand_bps);
        let wanted: Vec<_> = wanted.map(|(carried, demand)| demand.map(|demand| carried + demand)).collect();
        drawing += &axes.line("wanted", axes.rates, &wanted);
    }
    if is_known(series) {
        drawing += &axes.line("granted", axes.rates, &series.capacity_bps);
    }
    for handover in &relay.handovers {
        let _ = write!(drawing, "<path class=\"line ink\" d=\"M{:.1} 2V{QUEUES_BASE}\"/>", axes.x.at(handover.at_s));
    }
    drawing += &axes.line("p1", axes.queues, &octets(&series.cellular_queue_bytes));
    drawing += &axes.line("p4", axes.queues, &octets(&series.wifi_queue_bytes));
    format!(
        "<div class=\"relay-card\"><h3><i class=\"{class}\"></i>{}</h3><p>{}</p><svg viewBox=\"0 0 {WIDTH} {QUEUES_BASE}\" \
         role=\"img\" aria-label=\"{} over time\">{drawing}</svg></div>",
        escape(&relay.name),
        described(relay, view.results.totals.duration_s),
        escape(&relay.name),
    )
}

/// Distance, data carried, and the share of its own traffic that was served.
fn described(relay: &RelayResults, duration_s: f64) -> String {
    let rate = |bytes: u64| quantity(bps(bytes, duration_s), "bit/s");
    let mut parts: Vec<String> = relay.distance_m.iter().map(|distance_m| format!("{distance_m:.0} m")).collect();
    parts.extend(relay.site.map(|_| match relay.handovers.len() {
        1 => "1 handover".into(),
        count => format!("{count} handovers"),
    }));
    parts.push(if relay.chosen { rate(relay.carried_bytes) } else { "not chosen".into() });
    parts.extend(relay.energy_j.map(|energy_j| quantity(energy_j, "J")));
    let own = match (relay.local_ratio(), relay.local_demand_bytes) {
        (Some(got), Some(demand)) => format!("own {:.1} % of {}", got * 100.0, rate(demand)),
        (_, None) => format!("own {}", rate(relay.local_received_bytes)),
        (None, Some(_)) => "no own traffic".into(),
    };
    format!("{}<br>{own}", parts.join(", "))
}

fn sum(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one + other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_stays_on_its_card() {
        let relay = RelayResults::default();
        let series =
            RelaySeries { carried_bps: vec![8.0, 4.0], local_goodput_bps: vec![0.0, 4.0], ..Default::default() };
        let axes = Axes::new(&[1.0, 2.0], &[(&relay, &series)]);
        assert_eq!(axes.rates.to, 10.0);
        assert_eq!(axes.path(axes.rates, &[Some(1e9), Some(0.0)]), "M110.0 2.0L220.0 70.0");
        assert_eq!(axes.path(axes.rates, &[None, Some(5.0)]), "M220.0 36.0");
    }
}
