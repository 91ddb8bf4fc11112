//! All verdicts at a glance: one row per metric, one column per variant, one sign per grid point.

use std::fmt::Write;

use super::super::html::escape;
use super::{Comparison, differences, mark};
use crate::measure::statistics::{Paired, Verdict};
use crate::present::metric::Metric;

/// Maximum number of points with signs; with more, shares of each sign replace them.
const SIGNS_MAX: usize = 40;

/// The section; empty if there is nothing to compare.
pub(super) fn section(view: &Comparison<'_>) -> String {
    let layout = &view.layout;
    if layout.variants.len() < 2 || view.shown.is_empty() {
        return String::new();
    }
    let others = || (0..layout.variants.len()).filter(|variant| *variant != layout.baseline);
    let head: String = others()
        .map(|variant| format!("<th scope=\"col\">{}{}</th>", mark::swatch(variant), escape(layout.variants[variant])))
        .collect();
    let row = |metric: &&Metric| {
        let cells: String = others().map(|variant| format!("<td>{}</td>", cell(view, metric, variant))).collect();
        format!("<tr><th scope=\"row\">{}</th><td>{}</td>{cells}</tr>", metric.title, level(view, metric))
    };
    let rows: String = view.shown.iter().map(row).collect();
    let baseline = layout.baseline;
    let points = if layout.axis.is_some() { " One sign for each point of the grid, in order." } else { "" };
    let mean = if layout.points() > 1 { "mean: least to most of the points" } else { "mean" };
    format!(
        "<section class=\"overview\"><h2>What the seeds say</h2><p class=\"note\">Compared with {} on the same seeds: ▲ larger, \
         ▼ smaller, at 95 %; · the interval of the difference includes zero; – one run each, so no interval; \
         * no verdict, because runs had faults; × no value.{points} \
         Pale background: better; dark background: worse. At 95 %, one sign in twenty may appear where nothing differs.</p>\
         <div class=\"scroll\"><table><thead><tr><th scope=\"col\">Metric</th>\
         <th scope=\"col\">{}{}, {mean}</th>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>",
        escape(layout.variants[baseline]),
        mark::swatch(baseline),
        escape(layout.variants[baseline]),
    )
}

/// The baseline's mean, or the smallest and largest of its means over the grid points, if they differ as displayed.
fn level(view: &Comparison<'_>, metric: &Metric) -> String {
    let baseline = view.layout.baseline;
    let means: Vec<f64> = view
        .layout
        .columns()
        .filter_map(|(_, column)| Some(view.interval(column.cases[baseline], metric)?.mean))
        .collect();
    let (low, high) =
        means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| (low.min(*mean), high.max(*mean)));
    if means.is_empty() {
        return "-".into();
    }
    let [low, high] = [low, high].map(|mean| metric.show(mean));
    if low == high { low } else { format!("{low} to {high}") }
}

fn cell(view: &Comparison<'_>, metric: &Metric, variant: usize) -> String {
    let mut signs = String::new();
    let (mut all, mut counts) = (0, [0, 0]);
    for (point, column) in view.layout.columns() {
        let Some((paired, _)) = view.paired(column.cases[variant], column.cases[view.layout.baseline], metric) else {
            signs.push_str("<span class=\"sign\" title=\"no value\">×</span>");
            continue;
        };
        let (class, words) = differences::verdict(metric, &paired);
        let sign = match paired.verdict {
            Verdict::Larger => "▲",
            Verdict::Smaller => "▼",
            Verdict::Undecided if paired.difference.count < 2 => "–",
            Verdict::Undecided => "·",
            Verdict::Withheld => "*",
        };
        all += 1;
        counts[0] += usize::from(class == "good");
        counts[1] += usize::from(class == "bad");
        let _ = write!(
            signs,
            "<span class=\"sign {class}\" title=\"{} {words}{}\">{sign}</span>",
            escape(&point),
            change(&paired)
        );
        if view.layout.points() == 1 && matches!(paired.verdict, Verdict::Larger | Verdict::Smaller) {
            signs += &change(&paired);
        }
    }
    if view.layout.points() > SIGNS_MAX {
        return format!("▲▼ better at {}, worse at {} of {all}", counts[0], counts[1]);
    }
    signs
}

/// The change in percent, where this makes sense.
fn change(paired: &Paired) -> String {
    paired.ratio.map_or(String::new(), |ratio| format!(" {:+.1}\u{a0}%", (ratio.mean - 1.0) * 100.0))
}
