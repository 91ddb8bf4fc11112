//! The papers' metrics as a table.

use super::html::escape;
use super::monitor::first_of;
use crate::measure::metrics::{Summary, Totals};
use crate::measure::results::PaperMetrics;
use crate::present::quantity;

/// One metric: its name, its value over the monitor points of the analysis, and its value over the whole run.
struct Row(&'static str, Option<String>, Option<String>);

/// The section.
pub(super) fn section(metrics: &PaperMetrics) -> String {
    let rows: String = rows(metrics).iter().map(Row::html).collect();
    let (points, period_s) = (metrics.summary.points, metrics.period_s);
    let (unit, of) = (quantity(metrics.unit_bytes as f64, "B"), first_of(metrics));
    format!(
        "<section class=\"paper\"><h2>Metrics of the papers</h2><p class=\"note\">Means over {points} monitor points, one every \
         {period_s} s, and over the whole run{of}. A unit of G1 is {unit}.</p><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">Metric</th><th scope=\"col\">Monitor points</th><th scope=\"col\">Whole run</th></tr></thead>\
         <tbody>{rows}</tbody></table></div></section>"
    )
}

impl Row {
    fn html(&self) -> String {
        let Self(name, points, run) = self;
        if points.is_none() && run.is_none() {
            return String::new();
        }
        let cell = |text: &Option<String>| format!("<td>{}</td>", escape(text.as_deref().unwrap_or("-")));
        format!("<tr><th scope=\"row\">{name}</th>{}{}</tr>", cell(points), cell(run))
    }
}

fn rows(metrics: &PaperMetrics) -> Vec<Row> {
    let (summary, totals) = (&metrics.summary, &metrics.totals);
    let mut rows = against_target(metrics);
    rows.extend(rates(summary, totals));
    rows.extend([
        Row("Active subflows", subflows(summary), None),
        Row("Receive buffer, peak", bytes(summary.receive_buffer_bytes), bytes(totals.receive_buffer_bytes)),
        Row("Reordering O3-DSN, peak", bytes(summary.reordering_peak_bytes), bytes(totals.reordering_peak_bytes)),
        Row("Delay, mean", summary.delay_s.map(milliseconds), totals.delay_s.map(milliseconds)),
        Row("Jitter, mean", summary.jitter_s.map(milliseconds), totals.jitter_s.map(milliseconds)),
        Row("Delay ratio of the paths, peak", summary.delay_ratio_max.map(number), totals.delay_ratio_max.map(number)),
    ]);
    if metrics.connections.len() > 1 {
        let count = metrics.connections.len().to_string();
        rows.push(Row("Connections", None, Some(count)));
        rows.push(Row("Jain's fairness index", None, metrics.jain_index.map(|index| format!("{index:.3}"))));
    }
    rows
}

/// Metrics that compare with the target; empty without one.
fn against_target(metrics: &PaperMetrics) -> Vec<Row> {
    let summary = &metrics.summary;
    let (Some(low), Some(high)) = (metrics.target_low_bps, metrics.target_high_bps) else { return Vec::new() };
    let range = format!("{} to {}", quantity(low, "bit/s"), quantity(high, "bit/s"));
    let missed = format!("{} of {} points, {} s", summary.outages, summary.points, number(summary.outage_time_s));
    let percent = |percent: f64| format!("{percent:.1} %");
    vec![
        Row("Range around the target", Some(range), None),
        Row("Outages", Some(missed), None),
        Row("Variation around the target, mean", summary.variation_mean_percent.map(percent), None),
        Row("Variation around the target, peak", summary.variation_max_percent.map(percent), None),
    ]
}

fn rates(summary: &Summary, totals: &Totals) -> [Row; 5] {
    let rate = |bps: Option<f64>| bps.map(|bps| quantity(bps, "bit/s"));
    [
        Row("Aggregate throughput", rate(summary.aggregate_throughput_bps), rate(totals.throughput_bps)),
        Row("Goodput of units, G1", rate(summary.unit_goodput_bps), rate(totals.unit_goodput_bps)),
        Row("Goodput of blocks, G2", rate(summary.block_goodput_bps), None),
        Row("Goodput in order, G3", rate(summary.in_order_goodput_bps), None),
        Row("Goodput of the file, G4", None, rate(totals.file_goodput_bps)),
    ]
}

fn subflows(summary: &Summary) -> Option<String> {
    let mean = summary.subflows_mean?;
    let deviation = summary.subflows_standard_deviation.map_or(String::new(), |sd| format!(" ± {sd:.2}"));
    Some(format!("{mean:.2}{deviation}"))
}

fn bytes(bytes: u64) -> Option<String> {
    Some(quantity(bytes as f64, "B"))
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1000.0)
}

/// Formats with at most two decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}
