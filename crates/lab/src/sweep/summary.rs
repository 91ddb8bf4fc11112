//! Records to means with intervals, and comparisons seed by seed.

use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table, TableComponent};
use serde::Serialize;

use super::plan::described;
use super::{Manifest, Plan, Record};
use crate::results::quantity;
use crate::statistics::{Interval, Paired, Verdict};

/// What people look at first; the rest is in the files.
const COLUMNS: [(&str, &str, Unit); 7] = [
    ("goodput_in_order_bps", "goodput", Unit::BitsPerSecond),
    ("aggregate_throughput_bps", "throughput", Unit::BitsPerSecond),
    ("analysis.unit_goodput_bps", "G1", Unit::BitsPerSecond),
    ("analysis.outages", "outages", Unit::Count),
    ("analysis.subflows_mean", "subflows", Unit::Count),
    ("local_ratio_mean", "local traffic", Unit::Percent),
    ("jain_index", "Jain index", Unit::Count),
];

#[derive(Clone, Copy)]
enum Unit {
    BitsPerSecond,
    Count,
    Percent,
}

/// A sweep in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// What was swept.
    pub manifest: Manifest,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Every variant at every point.
    pub cases: Vec<CaseSummary>,
    /// Every variant but the baseline against it, at every point.
    pub comparisons: Vec<Comparison>,
    /// Runs with faults: variant, point, seed and the first fault.
    pub faulty: Vec<Faulty>,
}

/// A variant at a point.
#[derive(Clone, Debug, Serialize)]
pub struct CaseSummary {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// Mean and 95 % interval over the seeds, by name.
    pub values: BTreeMap<String, Interval>,
}

/// A variant against the baseline on the same seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The variant.
    pub variant: String,
    /// The baseline.
    pub baseline: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// By name.
    pub values: BTreeMap<String, Paired>,
}

/// A run with faults.
#[derive(Clone, Debug, Serialize)]
pub struct Faulty {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// The seed.
    pub seed: u64,
    /// The first fault.
    pub fault: String,
}

/// Values of one case: by name, by seed.
type Samples = BTreeMap<String, BTreeMap<u64, f64>>;

impl Summary {
    /// Of the records of `plan`, in whatever order they came.
    pub fn new(plan: &Plan, records: &[Record]) -> Self {
        let samples: Vec<Samples> = (0..plan.cases.len()).map(|case| samples(plan, case, records)).collect();
        let cases = plan.cases.iter().zip(&samples).map(|(case, samples)| CaseSummary {
            variant: case.variant.clone(),
            point: case.point.clone(),
            values: samples.iter().filter_map(|(name, values)| Some((name.clone(), interval(values)?))).collect(),
        });
        Self {
            manifest: Manifest::new(plan),
            seeds: plan.seeds.clone(),
            cases: cases.collect(),
            comparisons: comparisons(plan, &samples),
            faulty: faulty(plan, records),
        }
    }

    /// One JSON object, indented, with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("summaries have text keys and finite numbers");
        text.push('\n');
        text
    }

    /// A table of means with intervals, and what the comparisons show.
    pub fn to_text(&self) -> String {
        let shown: Vec<_> =
            COLUMNS.iter().filter(|(name, ..)| self.cases.iter().any(|case| differs(case, name))).collect();
        let mut table = Table::new();
        let titles = ["variant", "point"].into_iter().chain(shown.iter().map(|(_, title, _)| *title));
        table.load_preset(NOTHING).set_header(titles);
        for component in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
            table.set_style(component, '─');
        }
        for case in &self.cases {
            let cells =
                shown.iter().map(|(name, _, unit)| case.values.get(*name).map_or("-".into(), |it| show(it, *unit)));
            table.add_row([case.variant.clone(), point(&case.point)].into_iter().chain(cells));
        }
        (2..shown.len() + 2).for_each(|index| {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        });
        let (name, seeds) = (&self.manifest.scenario, self.seeds.len());
        format!("{name}: means over {seeds} seeds, with 95 % intervals\n{table}\n{}", self.compared())
    }

    fn compared(&self) -> String {
        let mut text = String::new();
        for comparison in &self.comparisons {
            for (name, title, _) in COLUMNS {
                let Some(paired) = comparison.values.get(name) else { continue };
                let verdict = match paired.verdict {
                    Verdict::Larger => "larger",
                    Verdict::Smaller => "smaller",
                    Verdict::Undecided => continue,
                };
                let (variant, baseline) = (&comparison.variant, &comparison.baseline);
                let times = paired.ratio_of_means.map_or(String::new(), |ratio| format!(", {ratio:.3} times"));
                let place = described(&comparison.point);
                let _ =
                    writeln!(text, "{variant}{place}: {title} is {verdict} than with {baseline}{times} (paired, 95 %)");
            }
        }
        text
    }
}

/// Whether a column says anything of a case.
fn differs(case: &CaseSummary, name: &str) -> bool {
    case.values.get(name).is_some_and(|interval| interval.mean != 0.0)
}

fn samples(plan: &Plan, case: usize, records: &[Record]) -> Samples {
    let case = &plan.cases[case];
    let mut samples = Samples::new();
    for record in records.iter().filter(|record| record.variant == case.variant && record.point == case.point) {
        for (name, value) in record.values.iter().filter(|_| plan.seeds.contains(&record.seed)) {
            samples.entry(name.clone()).or_default().insert(record.seed, *value);
        }
    }
    samples
}

/// In the order of seeds, so that the same records give the same sums.
fn interval(values: &BTreeMap<u64, f64>) -> Option<Interval> {
    Interval::of(&values.values().copied().collect::<Vec<_>>())
}

fn comparisons(plan: &Plan, samples: &[Samples]) -> Vec<Comparison> {
    let of_case = |(case, own): (&super::Case, &Samples)| {
        let same_point = |other: &super::Case| other.point == case.point && other.variant == plan.baseline;
        let baseline = plan.cases.iter().position(same_point).filter(|_| case.variant != plan.baseline)?;
        let values =
            own.iter().filter_map(|(name, new)| Some((name.clone(), paired(new, samples[baseline].get(name)?)?)));
        Some(Comparison {
            variant: case.variant.clone(),
            baseline: plan.baseline.clone(),
            point: case.point.clone(),
            values: values.collect(),
        })
    };
    plan.cases.iter().zip(samples).filter_map(of_case).collect()
}

/// On the seeds that both have.
fn paired(new: &BTreeMap<u64, f64>, old: &BTreeMap<u64, f64>) -> Option<Paired> {
    let both = new.iter().filter_map(|(seed, new)| Some((*new, *old.get(seed)?)));
    let (new, old): (Vec<f64>, Vec<f64>) = both.unzip();
    Paired::compare(&new, &old)
}

fn faulty(plan: &Plan, records: &[Record]) -> Vec<Faulty> {
    let of_record = |record: &Record| {
        let (variant, point) = (record.variant.clone(), record.point.clone());
        Some(Faulty { variant, point, seed: record.seed, fault: record.faults.first()?.clone() })
    };
    sorted(plan, records).into_iter().filter_map(of_record).collect()
}

/// The records in the order of the plan.
fn sorted<'a>(plan: &Plan, records: &'a [Record]) -> Vec<&'a Record> {
    let position = |record: &Record| {
        plan.cases.iter().position(|case| case.variant == record.variant && case.point == record.point)
    };
    let mut sorted: Vec<_> =
        records.iter().filter_map(|record| Some((position(record)?, record.seed, record))).collect();
    sorted.sort_by_key(|(case, seed, _)| (*case, *seed));
    sorted.into_iter().map(|(.., record)| record).collect()
}

/// The records of `plan` as comma-separated values (RFC 4180): one line a run, one column a value.
pub fn csv(plan: &Plan, records: &[Record]) -> String {
    let records = sorted(plan, records);
    let names: BTreeSet<&String> = records.iter().flat_map(|record| record.values.keys()).collect();
    let paths: Vec<&String> =
        plan.cases.iter().take(1).flat_map(|case| case.point.iter().map(|(path, _)| path)).collect();
    let header = ["variant"].into_iter().map(quoted).chain(paths.iter().map(|path| quoted(path)));
    let header = header.chain([quoted("seed")]).chain(names.iter().map(|name| quoted(name))).chain([quoted("fault")]);
    let mut text = header.collect::<Vec<_>>().join(",") + "\r\n";
    for record in records {
        let point = record.point.iter().map(|(_, value)| quoted(value));
        let values = names.iter().map(|name| record.values.get(*name).map_or(String::new(), f64::to_string));
        let fault = quoted(record.faults.first().map_or("", String::as_str));
        let row = [quoted(&record.variant)].into_iter().chain(point).chain([record.seed.to_string()]);
        text += &(row.chain(values).chain([fault]).collect::<Vec<_>>().join(",") + "\r\n");
    }
    text
}

fn quoted(text: &str) -> String {
    let plain = !text.contains(['"', ',', '\n', '\r']);
    if plain { text.into() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

fn point(point: &[(String, String)]) -> String {
    point
        .iter()
        .map(|(path, value)| format!("{}={value}", path.rsplit('.').next().unwrap_or(path)))
        .collect::<Vec<_>>()
        .join(" ")
}

fn show(interval: &Interval, unit: Unit) -> String {
    let show = |value: f64| match unit {
        Unit::BitsPerSecond => quantity(value, "bit/s"),
        Unit::Count => format!("{value:.2}"),
        Unit::Percent => format!("{:.1} %", value * 100.0),
    };
    interval.half_width.map_or_else(|| show(interval.mean), |half| format!("{} ± {}", show(interval.mean), show(half)))
}
