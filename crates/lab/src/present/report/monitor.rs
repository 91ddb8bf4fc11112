//! The monitor points: throughput and goodput against the target, and the number of subflows.

use std::fmt::Write;

use super::chart::{Chart, Curve};
use super::scale::{RATES, Scale};
use super::{WIDE, figure, thin};
use crate::measure::results::PaperMetrics;
use crate::scenario::Analysis;

/// Left margin of the strip of subflows, the same as in the chart above it.
const STRIP_LEFT: f64 = 46.0;
const STRIP_RIGHT: f64 = WIDE.0 - 14.0;
const STRIP_TOP: f64 = 18.0;
const STRIP_BASE: f64 = 58.0;

/// The figure; empty without monitor points. It shows the whole run, but outages only in the window of analysis.
pub(super) fn section(metrics: &PaperMetrics, analysis: Option<Analysis>) -> String {
    let points = &metrics.points;
    if points.time_s.is_empty() {
        return String::new();
    }
    let curve =
        |name: &str, class: &str, values: Vec<Option<f64>>| Curve { name: name.into(), class: class.into(), values };
    let some = |values: &[f64]| values.iter().copied().map(Some).collect();
    let chart = Chart {
        label: "Throughput and goodput at monitor points",
        size: WIDE,
        units: RATES,
        time_s: &points.time_s,
        band: metrics.target_low_bps.zip(metrics.target_high_bps),
        marked_s: metrics.summary.outages_at_s.iter().map(|&at_s| (at_s - metrics.period_s, at_s)).collect(),
        counted_s: analysis.map(|part| (part.from.as_secs_f64(), part.to.as_secs_f64())),
        stacked: Vec::new(),
        ribbons: Vec::new(),
        lines: vec![
            curve("throughput", "ink", some(&points.aggregate_throughput_bps)),
            curve("in order (G3)", "p0", some(&points.in_order_goodput_bps)),
            curve("units (G1)", "p1", points.unit_goodput_bps.clone()),
        ],
    };
    let drawing = format!("{}{}", chart.svg(), subflows(&points.time_s, &points.subflows));
    figure("Monitor points", &caption(metrics, analysis), &legend(metrics, analysis), &drawing)
}

/// States whose metrics these are, if there are several connections.
pub(super) fn first_of(metrics: &PaperMetrics) -> String {
    match metrics.connections.len() {
        0 | 1 => String::new(),
        count => format!(", of the first of {count} connections"),
    }
}

/// Names the window of analysis, as in "10 points in the window of analysis, 5 s to 25 s"; empty without one.
pub(super) fn in_window(analysis: Option<Analysis>) -> String {
    let said = |part: Analysis| {
        format!(" in the window of analysis, {} s to {} s", part.from.as_secs_f64(), part.to.as_secs_f64())
    };
    analysis.map_or(String::new(), said)
}

fn caption(metrics: &PaperMetrics, analysis: Option<Analysis>) -> String {
    let of = first_of(metrics);
    let period = format!("Means over {} s up to each monitor point{of}.", metrics.period_s);
    if metrics.target_bps.is_none() {
        return period;
    }
    let (outages, points) = (metrics.summary.outages, metrics.summary.points);
    let window = in_window(analysis);
    format!("{period} The throughput missed the range around its target at {outages} of {points} points{window}.")
}

fn legend(metrics: &PaperMetrics, analysis: Option<Analysis>) -> String {
    let mut items = String::new();
    for (class, name) in
        [("ink", "aggregate throughput"), ("p0", "goodput in order, G3"), ("p1", "goodput of units, G1")]
    {
        let _ = write!(items, "<li><i class=\"{class} thin\"></i>{name}</li>");
    }
    if metrics.target_bps.is_some() {
        items.push_str("<li><i class=\"target\"></i>range around the target</li>");
    }
    if !metrics.summary.outages_at_s.is_empty() {
        items.push_str("<li><i class=\"outage\"></i>outage</li>");
    }
    if analysis.is_some() {
        items.push_str("<li><i class=\"uncounted\"></i>outside the window of analysis: no outages are marked</li>");
    }
    format!("<ul class=\"legend\">{items}</ul>")
}

/// The size of the active set as a staircase: each value holds for the period before its point.
fn subflows(time_s: &[f64], counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0);
    let end_s = time_s.last().copied().unwrap_or(1.0);
    let x = Scale { from: 0.0, to: end_s, start: STRIP_LEFT, end: STRIP_RIGHT };
    let y = Scale { from: 0.0, to: most.max(1) as f64, start: STRIP_BASE, end: STRIP_TOP };
    let group = thin::group_of(time_s.len());
    let counts: Vec<Option<f64>> = counts.iter().map(|count| Some(*count as f64)).collect();
    let mut path = format!("M{STRIP_LEFT} {STRIP_BASE}");
    for (time_s, count) in thin::times(time_s, group).into_iter().zip(thin::averaged(&counts, group)) {
        let _ = write!(path, "V{:.1}H{:.1}", y.at(count.unwrap_or(0.0)), x.at(time_s));
    }
    format!(
        "<svg class=\"subflows wide\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Active subflows over time, at most {most}\">\
         <text class=\"unit\" x=\"0\" y=\"9\">active subflows</text><text class=\"tick end\" x=\"{}\" y=\"{}\">{most}</text>\
         <text class=\"tick end\" x=\"{}\" y=\"{}\">0</text><path class=\"area ink\" d=\"{path}V{STRIP_BASE}Z\"/></svg>",
        WIDE.0,
        STRIP_BASE + 6.0,
        STRIP_LEFT - 7.0,
        STRIP_TOP + 4.0,
        STRIP_LEFT - 7.0,
        STRIP_BASE + 4.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_said_to_be_those_of_the_window_of_analysis() {
        let mut metrics = PaperMetrics { period_s: 2.0, target_bps: Some(3e6), ..PaperMetrics::default() };
        metrics.points.time_s = vec![2.0, 4.0, 6.0, 8.0];
        (metrics.points.aggregate_throughput_bps, metrics.points.in_order_goodput_bps) = (vec![1e6; 4], vec![1e6; 4]);
        metrics.points.unit_goodput_bps = vec![Some(1e6); 4];
        (metrics.summary.points, metrics.summary.outages) = (2, 2);
        let shaded = |html: &str| html.matches("<rect class=\"uncounted\"").count();
        let whole = section(&metrics, None);
        assert!(whole.contains("at 2 of 2 points.") && shaded(&whole) == 0, "{whole}");
        let [from, to] = [2, 6].map(units::Duration::from_secs);
        let part = section(&metrics, Some(Analysis { from, to }));
        assert!(part.contains("at 2 of 2 points in the window of analysis, 2 s to 6 s."), "{part}");
        // A quarter of 860 pixels on either side.
        assert!(part.contains("x=\"46.0\" y=\"24.0\" width=\"215.0\"") && shaded(&part) == 2, "{part}");
        // At its end nothing is left to shade.
        assert_eq!(shaded(&section(&metrics, Some(Analysis { from, to: units::Duration::from_secs(8) }))), 1);
    }

    #[test]
    fn the_staircase_holds_each_count_up_to_its_point() {
        // Half of 860 pixels for each of two points; 1 of 2 subflows is half of 40 pixels.
        let svg = subflows(&[2.0, 4.0], &[1, 2]);
        assert!(svg.contains("d=\"M46 58V38.0H476.0V18.0H906.0V58Z\""), "{svg}");
    }
}
