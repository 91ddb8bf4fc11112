//! A comparison as text: one table for each case.

use core::fmt::Write;
use std::collections::BTreeSet;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table, TableComponent};

use super::{CaseContrast, Contrast, Kind, Side, Unpaired, ValueContrast};
use crate::measure::statistics::{Interval, Paired, Verdict};
use crate::present::metric::{Kind as Unit, METRICS, Metric};
use crate::present::sweep;
use crate::present::wording::seeds_of;
use crate::run::sweep::{Difference, described};

/// Maximum number of settings, cases or values to name.
const NAMED_MAX: usize = 8;
/// Number of intervals from which on some are expected to exclude zero by chance.
const MANY: usize = 20;

pub(super) fn text(contrast: &Contrast) -> String {
    let mut text = format!("A  {}\nB  {}\n", side(&contrast.a), side(&contrast.b));
    text += &what_differs(contrast);
    text.push('\n');
    if contrast.identical {
        let pairs: usize = contrast.cases.iter().map(|case| case.seeds.len()).sum();
        let values: usize = contrast.cases.iter().map(|case| case.values.len() * case.seeds.len()).sum();
        let runs = if pairs == 1 { "the run".into() } else { format!("all {pairs} runs") };
        let _ = writeln!(
            text,
            "A and B measured the same, to the last bit: {values} values of {runs}, and their courses over time"
        );
        let faulty = contrast.cases.iter().map(|case| case.faulty_runs).sum::<usize>();
        return if faulty > 0 { text + &format!("{faulty} of the runs had faults\n") } else { text };
    }
    for case in &contrast.cases {
        text += &of_case(case);
        text.push('\n');
    }
    text += &by_chance(&contrast.cases);
    text + &unpaired("A", &contrast.only_a) + &unpaired("B", &contrast.only_b)
}

fn side(side: &Side) -> String {
    let runs = side.records.len();
    let what = match side.kind {
        Kind::Run => format!("run, seed {}", side.records[0].seed),
        Kind::Sweep => format!("sweep, {runs} run{}", if runs == 1 { "" } else { "s" }),
    };
    let sets: String = side.overrides.iter().map(|change| format!(", with {change}")).collect();
    format!("{}: {}, {what}{sets}", side.path.display(), side.scenario)
}

/// What A and B were made from, where it differs.
fn what_differs(contrast: &Contrast) -> String {
    let (a, b) = (&contrast.a, &contrast.b);
    let named = [("scenario", &a.scenario, &b.scenario), ("version", &a.version, &b.version)];
    let named = named.into_iter().chain([("backend", &a.backend, &b.backend)]);
    let named = named.filter(|(_, a, b)| a != b).map(|(what, a, b)| format!("{what}: {a} in A, {b} in B"));
    let listed = |difference: &Difference| {
        let [a, b] = difference.values.each_ref().map(|value| value.as_deref().unwrap_or("not set"));
        format!("{}: {a} in A, {b} in B", difference.path)
    };
    let all: Vec<String> = named.chain(contrast.settings.iter().chain(&contrast.files).map(listed)).collect();
    let mut unknown = unknown("A", &contrast.unknown_a) + &unknown("B", &contrast.unknown_b);
    if contrast.unexplained && unknown.is_empty() {
        unknown = "not known: which settings differ; some do, by the digests of the runs (content)\n".into();
    }
    if all.is_empty() {
        let is_known = !a.settings.is_null() && !b.settings.is_null() && unknown.is_empty();
        let reservation = if contrast.unverified { " as far as the first lines tell" } else { "" };
        return if is_known { format!("the same scenario, with the same settings{reservation}\n") } else { unknown };
    }
    let more = match all.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("  and {more} more settings (all with --json)\n"),
    };
    let lines: String = all.iter().take(NAMED_MAX).map(|line| format!("  {line}\n")).collect();
    format!("they differ in\n{lines}{more}{unknown}")
}

/// Names the variants whose settings a side does not state.
fn unknown(side: &str, variants: &BTreeSet<String>) -> String {
    let named = variants.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if variants.len() > NAMED_MAX { ", ..." } else { "" };
    match variants.len() {
        0 => String::new(),
        1 => format!("not known: what the variant {named} sets in {side}, whose first line does not state it\n"),
        _ => {
            format!("not known: what the variants {named}{more} set in {side}, whose first line does not state it\n")
        }
    }
}

fn of_case(case: &CaseContrast) -> String {
    let mut text = format!("{}{}{}\n", case.variant, described(&case.point), other_name(case));
    let _ = writeln!(text, "{}", pairs(case));
    if case.faulty_runs > 0 {
        let _ = writeln!(text, "{} of the runs had faults, so there are no verdicts", case.faulty_runs);
    }
    if case.identical {
        let _ = writeln!(text, "all pairs measured the same, to the last bit");
        return text;
    }
    let shown: Vec<(&Metric, &ValueContrast)> = shown(case).collect();
    if shown.is_empty() {
        let _ = writeln!(text, "nothing was measured in both");
        return text;
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["", "A", "B", "B - A", "B / A", ""]);
    for component in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
        table.set_style(component, '─');
    }
    for (metric, value) in shown {
        table.add_row(row(metric, value, case));
    }
    for index in 1..5 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let _ = writeln!(text, "{table}");
    text + &on_one_side(case)
}

/// B's name, if it has another one.
fn other_name(case: &CaseContrast) -> String {
    if case.variant_b.is_none() && case.point_b.is_none() {
        return String::new();
    }
    let variant = case.variant_b.as_ref().unwrap_or(&case.variant);
    format!(" in A; {variant}{} in B", described(case.point_b.as_ref().unwrap_or(&case.point)))
}

/// How many pairs there are, and what has no partner.
fn pairs(case: &CaseContrast) -> String {
    let left = |side: &str, seeds: &[u64]| match seeds {
        [] => String::new(),
        seeds => format!("; {} only in {side}", seeds_of(seeds)),
    };
    let left = left("A", &case.only_a_seeds) + &left("B", &case.only_b_seeds);
    match case.seeds.as_slice() {
        [] => format!(
            "no seed is in both, so nothing is paired, and differences are due to chance, too{left}: run both with the same seeds"
        ),
        [one] => format!("one pair, seed {one}, so there are no intervals{left}"),
        many if case.without_chance => {
            format!("{} pairs, all the same: nothing in them is random, so there are no intervals{left}", many.len())
        }
        many => format!("{} pairs, {}: means and differences with 95 % intervals{left}", many.len(), seeds_of(many)),
    }
}

/// Values that both have, except counts that are zero everywhere.
fn shown(case: &CaseContrast) -> impl Iterator<Item = (&Metric, &ValueContrast)> {
    METRICS.iter().filter_map(|metric| {
        let value = case.values.get(metric.name)?;
        let means = [value.a?.mean, value.b?.mean];
        let says = metric.tells_zero || means != [0.0; 2];
        (says && !metric.is_trivial(&means)).then_some((metric, value))
    })
}

fn row(metric: &Metric, value: &ValueContrast, case: &CaseContrast) -> Vec<String> {
    let side = |interval: Option<Interval>| interval.map_or("-".into(), |interval| sweep::show(metric, &interval));
    let mut cells = vec![metric.title.to_string(), side(value.a), side(value.b)];
    match &value.paired {
        Some(paired) if paired.larger == 0 && paired.smaller == 0 => {
            cells.extend(["0".into(), String::new(), "the same".into()]);
        }
        Some(paired) => cells.extend([difference(metric, value, paired), ratio(value, paired), verdict(paired, case)]),
        None => cells.extend(["-".into(), "-".into(), "not paired".into()]),
    }
    cells
}

fn difference(metric: &Metric, value: &ValueContrast, paired: &Paired) -> String {
    let size = value.a.map_or(paired.difference.mean, |interval| interval.mean);
    let mean = metric.show_half(paired.difference.mean, size);
    // A difference too small to show has no sign.
    let is_shown = mean.contains(|character: char| ('1'..='9').contains(&character));
    let (sign, mean) = match paired.difference.mean > 0.0 {
        _ if !is_shown => ("", mean.trim_start_matches('-')),
        true => ("+", mean.as_str()),
        false => ("", mean.as_str()),
    };
    let half = paired.difference.half_width.map(|half| format!(" ± {}", metric.show_half(half, size)));
    // A ratio's difference is in percentage points.
    let unit = |text: String| {
        if matches!(metric.kind, Unit::Ratio | Unit::Percent) { text.replace(" %", " points") } else { text }
    };
    unit(format!("{sign}{mean}{}", half.unwrap_or_default()))
}

/// B over A, where both are above zero: a ratio of other numbers says nothing.
fn ratio(value: &ValueContrast, paired: &Paired) -> String {
    let is_sensible = [value.a, value.b].iter().all(|interval| interval.is_some_and(|interval| interval.mean > 0.0));
    let half = |half: f64| format!(" ± {half:.3}");
    let shown = |ratio: Interval| format!("{:.3}{}", ratio.mean, ratio.half_width.map_or(String::new(), half));
    paired.ratio.filter(|_| is_sensible).map_or(String::new(), shown)
}

fn verdict(paired: &Paired, case: &CaseContrast) -> String {
    let count = paired.difference.count;
    let n = if case.without_chance || count == case.seeds.len() { String::new() } else { format!(" (n={count})") };
    let verdict = match paired.verdict {
        Verdict::Larger => "B is larger",
        Verdict::Smaller => "B is smaller",
        Verdict::Undecided if paired.difference.half_width.is_some() => "undecided",
        Verdict::Undecided | Verdict::Withheld => "",
    };
    format!("{verdict}{n}")
}

/// Values that only one of the two has, for example because another version of the program made it.
fn on_one_side(case: &CaseContrast) -> String {
    let only = |has: fn(&ValueContrast) -> bool, side: &str| {
        let names: Vec<&str> =
            case.values.iter().filter(|(_, value)| has(value)).map(|(name, _)| name.as_str()).collect();
        let more = if names.len() > NAMED_MAX { ", ..." } else { "" };
        match names.len() {
            0 => String::new(),
            count => format!("only in {side}: {}{more}\n", names[..count.min(NAMED_MAX)].join(", ")),
        }
    };
    only(|value| value.b.is_none(), "A") + &only(|value| value.a.is_none(), "B")
}

/// Warns of many intervals, some of which exclude zero by chance.
fn by_chance(cases: &[CaseContrast]) -> String {
    let tested = || {
        cases.iter().flat_map(shown).filter_map(|(_, value)| value.paired).filter(|paired| {
            paired.difference.standard_deviation.is_some_and(|deviation| deviation > 0.0)
                && paired.verdict != Verdict::Withheld
        })
    };
    let all = tested().count();
    let decided = tested().filter(|paired| paired.verdict != Verdict::Undecided).count();
    match all {
        ..MANY => String::new(),
        _ => format!(
            "{decided} of {all} intervals exclude zero; about {:.0} would by chance alone if nothing differed\n",
            all as f64 * 0.05
        ),
    }
}

fn unpaired(side: &str, left: &[Unpaired]) -> String {
    let one = |case: &Unpaired| format!("  {}{}: {}\n", case.variant, described(&case.point), seeds_of(&case.seeds));
    let more = match left.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    };
    match left {
        [] => String::new(),
        left => format!("only in {side}:\n{}{more}", left.iter().take(NAMED_MAX).map(one).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::metric::named;

    fn shown(name: &str, a: &[f64], b: &[f64]) -> [String; 2] {
        let paired = Paired::compare(b, a).unwrap();
        let value = ValueContrast { a: Interval::of(a), b: Interval::of(b), paired: Some(paired) };
        [difference(named(name), &value, &paired), ratio(&value, &paired)]
    }

    #[test]
    fn differences_have_signs_and_ratios_are_of_what_is_above_zero() {
        assert_eq!(shown("goodput_in_order_bps", &[2e6], &[3e6]), ["+1.00 Mbit/s", "1.500"]);
        assert_eq!(
            shown("goodput_in_order_bps", &[3e6, 3e6], &[2e6, 2e6]),
            ["-1.00 Mbit/s ± 0 bit/s", "0.667 ± 0.000"]
        );
        assert_eq!(shown("analysis.outages", &[0.0], &[3.0]), ["+3.00", ""]);
        assert_eq!(shown("jain_index", &[0.99991], &[0.9999]), ["0.00", "1.000"]);
        // The unit is that of A.
        assert_eq!(shown("duration_s", &[0.5], &[2.0]), ["+1500.0 ms", "4.000"]);
        assert_eq!(shown("local_ratio_mean", &[0.5], &[0.25]), ["-25.0 points", "0.500"]);
    }
}
