//! The papers' metrics as a table.

use super::html::escape;
use super::monitor::{first_of, in_window};
use crate::measure::metrics::{Summary, Totals};
use crate::measure::results::PaperMetrics;
use crate::present::metric::Shares;
use crate::present::quantity;
use crate::scenario::{Analysis, Scenario};

/// One metric: its name, its value over the monitor points of the analysis, and its value over the whole run.
struct Row<'a>(&'a str, Option<String>, Option<String>);

/// The section.
pub(super) fn section(metrics: &PaperMetrics, analysis: Option<Analysis>, scenario: Option<&Scenario>) -> String {
    let mut rows: String = rows(metrics).iter().map(Row::html).collect();
    rows += &fairness(metrics, scenario);
    let window = in_window(analysis);
    let (points, period_s) = (metrics.summary.points, metrics.period_s);
    let (unit, of) = (quantity(metrics.unit_bytes as f64, "B"), first_of(metrics));
    format!(
        "<section class=\"paper\"><h2>Metrics of the papers</h2><p class=\"note\">Means over {points} monitor points{window}, one every \
         {period_s} s, and over the whole run{of}. A unit of G1 is {unit}.</p><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">Metric</th><th scope=\"col\">Monitor points</th><th scope=\"col\">Whole run</th></tr></thead>\
         <tbody>{rows}</tbody></table></div></section>"
    )
}

impl Row<'_> {
    fn html(&self) -> String {
        let Self(name, points, run) = self;
        if points.is_none() && run.is_none() {
            return String::new();
        }
        let cell = |text: &Option<String>| format!("<td>{}</td>", escape(text.as_deref().unwrap_or("-")));
        format!("<tr><th scope=\"row\">{name}</th>{}{}</tr>", cell(points), cell(run))
    }
}

fn rows(metrics: &PaperMetrics) -> Vec<Row<'static>> {
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
    rows
}

/// The index where several flows have a share, and whose shares they are.
fn fairness(metrics: &PaperMetrics, scenario: Option<&Scenario>) -> String {
    let connections = metrics.connections.len() as u64;
    let shares = scenario.map_or(Shares { connections, own_flows: 0 }, Shares::of);
    if shares.count() < 2 {
        return String::new();
    }
    let counted = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    let own = ("own flow without a demand", "own flows without a demand");
    let named = [counted(shares.connections, "connection", "connections"), counted(shares.own_flows, own.0, own.1)];
    let named = named.into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let index = metrics.jain_index.map(|index| format!("{index:.3}"));
    Row(&format!("Jain's fairness index of {named}"), None, index).html()
}

/// Metrics that compare with the target; empty without one.
fn against_target(metrics: &PaperMetrics) -> Vec<Row<'static>> {
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

fn rates(summary: &Summary, totals: &Totals) -> [Row<'static>; 5] {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::results::ConnectionGoodput;
    use crate::scenario::load;

    #[test]
    fn fairness_names_the_flows_that_share() {
        let scenario = |local: &str, workload: &str| {
            let text = format!(
                "name = \"x\"\ndescription = \"x\"\nduration = \"4 s\"\nworkload = {workload}\n\
                 [[relays]]\ncellular = {{ rate = \"3 Mbit/s\", delay = \"5 ms\" }}\nlocal = [{local}]\n"
            );
            load("x.toml", &text, &[]).unwrap()
        };
        let one = ConnectionGoodput::new(1000, 1.0);
        let metrics = PaperMetrics { jain_index: Some(0.8), connections: vec![one], ..PaperMetrics::default() };
        let (bulk, greedy) = ("{ kind = \"bulk\" }", "{ kind = \"tcp\", count = 2 }");
        let shown = |local: &str, workload: &str| section(&metrics, None, Some(&scenario(local, workload)));
        let both = shown(greedy, bulk);
        let row = "Jain's fairness index of 1 connection and 2 own flows without a demand</th><td>-</td><td>0.800</td>";
        assert!(both.contains(row), "{both}");
        assert!(shown(greedy, "{ kind = \"none\" }").contains("index of 2 own flows without a demand"));
        assert!(shown("", "{ kind = \"bulk\", connections = 3 }").contains("index of 3 connections</th>"));
        assert!(!shown("{ kind = \"tcp\", rate = \"1 Mbit/s\" }", bulk).contains("fairness"));
    }

    #[test]
    fn means_are_said_to_be_those_of_the_window_of_analysis() {
        let [from, to] = [5, 25].map(units::Duration::from_secs);
        let metrics = PaperMetrics { period_s: 2.0, ..PaperMetrics::default() };
        let said = section(&metrics, Some(Analysis { from, to }), None);
        assert!(said.contains("0 monitor points in the window of analysis, 5 s to 25 s, one every 2 s, and"), "{said}");
        assert!(section(&metrics, None, None).contains("0 monitor points, one every 2 s, and"));
    }
}
