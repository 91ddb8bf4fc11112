//! Runs that could not begin or had faults, and why.

use std::collections::BTreeMap;

use super::super::html::escape;
use super::Comparison;
use crate::run::sweep::Record;

/// Maximum number of reasons to list.
const REASONS_MAX: usize = 30;

/// Runs of one variant with the same fault.
struct Group<'a> {
    first: &'a Record,
    runs: usize,
    without_values: usize,
}

/// The section; empty if every run succeeded.
pub(super) fn section(view: &Comparison<'_>) -> String {
    let mut groups: BTreeMap<(&str, &str), Group<'_>> = BTreeMap::new();
    for record in view.courses().into_iter().flatten().chain(view.failed()) {
        let Some(fault) = record.faults.first() else { continue };
        let group =
            groups.entry((fault, &record.variant)).or_insert(Group { first: record, runs: 0, without_values: 0 });
        group.runs += 1;
        group.without_values += usize::from(record.values.is_empty());
    }
    if groups.is_empty() {
        return String::new();
    }
    let rows: String = groups.iter().take(REASONS_MAX).map(|((fault, _), group)| row(view, fault, group)).collect();
    let left_out = groups.len().saturating_sub(REASONS_MAX);
    let more = if left_out > 0 {
        format!("<p class=\"note\">{left_out} more are in summary.json.</p>")
    } else {
        String::new()
    };
    format!(
        "<section class=\"faults\"><h2>Runs with faults</h2><p class=\"note\">Runs that did not begin do not count in the \
         means. Those that ended with a fault do; they are marked * and have no \
         verdict.</p><div class=\"scroll\"><table><thead><tr><th scope=\"col\">Variant</th>\
         <th scope=\"col\">Runs</th><th scope=\"col\" class=\"name\">Why</th></tr></thead><tbody>{rows}</tbody></table></div>{more}</section>"
    )
}

fn row(view: &Comparison<'_>, fault: &str, group: &Group<'_>) -> String {
    let what = if group.without_values == group.runs { "did not run" } else { "with a fault" };
    format!(
        "<tr><th scope=\"row\">{}</th><td>{} {what}</td><td class=\"name why\">{}<br><code>{}</code></td></tr>",
        escape(&group.first.variant),
        group.runs,
        escape(fault),
        escape(&again(view, group.first)),
    )
}

/// The command that reproduces the fault.
fn again(view: &Comparison<'_>, record: &Record) -> String {
    let case = view.plan.cases.iter().find(|case| case.variant == record.variant && case.point == record.point);
    case.map_or(String::new(), |case| view.plan.command(case, record.seed))
}
