//! Variants against the baseline on the same seeds: the differences, their certainty, and a verdict in words.

use super::super::html::escape;
use super::axis::{self, Axis};
use super::{Comparison, mark, rows};
use crate::measure::statistics::{Paired, Verdict};
use crate::present::metric::{Better, Metric};

/// Tables with more rows are folded.
const OPEN_ROWS_MAX: usize = 12;

/// One comparison.
struct Row {
    variant: usize,
    case: usize,
    point: String,
    paired: Paired,
    differences: Vec<f64>,
}

/// The table of all comparisons of `metric`; empty if there are none.
pub(super) fn table(view: &Comparison<'_>, metric: &Metric) -> String {
    let rows = rows_of(view, metric);
    if rows.is_empty() {
        return String::new();
    }
    let values: Vec<f64> = rows.iter().flat_map(extent).collect();
    let axis = Axis::with_zero(metric, &values, 5);
    let body: String = rows.iter().map(|row| html(view, metric, &axis, row)).collect();
    let baseline = escape(view.layout.variants[view.layout.baseline]);
    let point = if view.layout.axis.is_some() { "<th scope=\"col\">Point</th>" } else { "" };
    let skip = if view.layout.axis.is_some() { "<td></td>" } else { "" };
    let open = if rows.len() > OPEN_ROWS_MAX { "" } else { " open" };
    format!(
        "<details class=\"against\"{open}><summary>Against {baseline}, seed by seed: {}</summary><div class=\"scroll\"><table>\
         <thead><tr><th scope=\"col\">Variant</th>{point}<th scope=\"col\" class=\"plot\">Difference, every seed a dot</th>\
         <th scope=\"col\">Difference</th><th scope=\"col\">95 % interval</th><th scope=\"col\">Ratio</th>\
         <th scope=\"col\">Seeds larger</th><th scope=\"col\">Verdict</th></tr></thead><tbody>{body}\
         <tr class=\"scale\"><td></td>{skip}<td class=\"plot\">{}</td><td colspan=\"5\"></td></tr></tbody></table></div></details>",
        counted(metric, &rows),
        rows::scale(&axis),
    )
}

fn rows_of(view: &Comparison<'_>, metric: &Metric) -> Vec<Row> {
    let mut rows = Vec::new();
    for (point, column) in view.layout.columns() {
        let baseline = column.cases[view.layout.baseline];
        for (variant, &case) in column.cases.iter().enumerate().filter(|(_, case)| **case != baseline) {
            if let Some((paired, differences)) = view.paired(case, baseline, metric) {
                rows.push(Row { variant, case, point: point.clone(), paired, differences });
            }
        }
    }
    rows
}

/// The values that its picture must include.
fn extent(row: &Row) -> Vec<f64> {
    let interval = row.paired.difference;
    row.differences.iter().copied().chain(interval.low()).chain(interval.high()).collect()
}

fn html(view: &Comparison<'_>, metric: &Metric, axis: &Axis, row: &Row) -> String {
    let (paired, unit) = (&row.paired, axis.unit);
    let number = |value: f64| axis::number(value, unit);
    let interval = paired.difference.low().zip(paired.difference.high());
    let interval = interval.map_or("-".into(), |(low, high)| format!("{} to {}", number(low), number(high)));
    let ratio = paired.ratio.map_or("-".into(), |ratio| format!("{:.3}", ratio.mean));
    let point =
        view.layout.axis.as_ref().map_or(String::new(), |_| format!("<td class=\"name\">{}</td>", escape(&row.point)));
    let (class, verdict) = verdict(metric, paired);
    format!(
        "<tr><th scope=\"row\">{}{}{}</th>{point}<td class=\"plot\">{}</td><td>{} {}</td><td>{interval}</td><td>{ratio}</td>\
         <td>{} of {}</td><td><span class=\"chip {class}\">{verdict}</span></td></tr>",
        mark::swatch(row.variant),
        escape(view.layout.variants[row.variant]),
        view.fault_mark(row.case),
        rows::picture(axis, row.variant, &paired.difference, &row.differences),
        number(paired.difference.mean),
        unit.name,
        paired.larger,
        paired.difference.count,
    )
}

/// The CSS class for its colour, and the verdict in words.
pub(super) fn verdict(metric: &Metric, paired: &Paired) -> (&'static str, &'static str) {
    match (paired.verdict, metric.better) {
        (Verdict::Larger, Better::More) => ("good", "larger: better"),
        (Verdict::Smaller, Better::Less) => ("good", "smaller: better"),
        (Verdict::Smaller, Better::More) => ("bad", "smaller: worse"),
        (Verdict::Larger, Better::Less) => ("bad", "larger: worse"),
        (Verdict::Larger, Better::Neither) => ("", "larger"),
        (Verdict::Smaller, Better::Neither) => ("", "smaller"),
        (Verdict::Withheld, _) => ("", "none: faulty runs"),
        (Verdict::Undecided, _) if paired.difference.count < 2 => ("", "none: one run each"),
        (Verdict::Undecided, _) if paired.larger + paired.smaller == 0 => ("", "the same"),
        (Verdict::Undecided, _) => ("", "no difference shown"),
    }
}

/// "better in 3, worse in 1 of 8".
fn counted(metric: &Metric, rows: &[Row]) -> String {
    let count = |wanted: &str| rows.iter().filter(|row| verdict(metric, &row.paired).1.contains(wanted)).count();
    let words = match metric.better {
        Better::Neither => ["larger", "smaller"],
        Better::More | Better::Less => ["better", "worse"],
    };
    format!("{} in {}, {} in {} of {}", words[0], count(words[0]), words[1], count(words[1]), rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::metric::named;

    #[test]
    fn a_verdict_says_what_is_larger_and_whether_that_is_better() {
        let paired = |new: &[f64]| Paired::compare(new, &[1.0, 2.0, 3.0][..new.len()]).unwrap();
        let (goodput, outages) = (named("goodput_in_order_bps"), named("analysis.outages"));
        assert_eq!(verdict(goodput, &paired(&[2.0, 3.0, 4.1])), ("good", "larger: better"));
        assert_eq!(verdict(outages, &paired(&[2.0, 3.0, 4.1])), ("bad", "larger: worse"));
        assert_eq!(verdict(goodput, &paired(&[1.0, 2.0, 3.0])), ("", "the same"));
        assert_eq!(verdict(goodput, &paired(&[2.0])), ("", "none: one run each"));
        assert_eq!(verdict(goodput, &paired(&[2.0, 3.0, 4.1]).withheld()), ("", "none: faulty runs"));
        assert_eq!(verdict(goodput, &paired(&[9.0, 0.0, 3.0])), ("", "no difference shown"));
    }
}
