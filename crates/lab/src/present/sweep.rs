//! A sweep as text for people: means with intervals, and comparisons seed by seed.

use core::fmt::Write;
use std::collections::BTreeMap;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table, TableComponent};
use serde::Serialize;

use super::evidence::Evidence;
use super::field_name::field_name;
use super::metric::{METRICS, Metric};
use crate::measure::statistics::{Interval, Paired, Verdict};
use crate::run::sweep::{Case, Manifest, Plan, Record, described, numbers, sorted};
use crate::scenario::WorkloadKind;

/// The numbers of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Identifies the sweep.
    pub manifest: Manifest,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Every variant at every point.
    pub cases: Vec<CaseSummary>,
    /// Every variant except the baseline, compared with it at every point.
    pub comparisons: Vec<Comparison>,
    /// Runs with faults: variant, point, seed and the first fault.
    pub faulty: Vec<Faulty>,
    /// Remarks about the runs that are needed to read the table.
    #[serde(skip)]
    notes: Vec<String>,
    /// Values that cannot say anything about these runs, by name.
    #[serde(skip)]
    pointless: Vec<&'static str>,
}

/// A variant at a point.
#[derive(Clone, Debug, Serialize)]
pub struct CaseSummary {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// Number of runs with faults; they count in the means if they began.
    pub faulty_runs: usize,
    /// Whether all seeds yielded the same run, which counts as one: nothing in it is random.
    pub identical: bool,
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
    /// Comparisons by name of the value.
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

impl Summary {
    /// Summarises the records of `plan`, in any order.
    pub fn new(plan: &Plan, records: &[Record]) -> Self {
        let evidence = Evidence::new(plan, records);
        let cases = plan.cases.iter().enumerate().map(|(number, case)| CaseSummary {
            variant: case.variant.clone(),
            point: case.point.clone(),
            faulty_runs: evidence.runs(number).faulty,
            identical: evidence.runs(number).identical,
            values: evidence.samples[number]
                .keys()
                .filter_map(|name| Some((name.clone(), evidence.interval(number, name)?)))
                .collect(),
        });
        Self {
            manifest: Manifest::new(plan),
            seeds: plan.seeds.clone(),
            cases: cases.collect(),
            comparisons: comparisons(plan, &evidence),
            faulty: faulty(plan, records),
            notes: notes(plan, &evidence),
            pointless: METRICS.iter().filter(|metric| !metric.concerns(plan)).map(|metric| metric.name).collect(),
        }
    }

    /// One JSON object, indented, with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("summaries have text keys and finite numbers");
        text.push('\n');
        text
    }

    /// A table of means with intervals, and the results of the comparisons.
    pub fn to_text(&self) -> String {
        let shown: Vec<(&Metric, &str)> = METRICS
            .iter()
            .filter(|metric| !self.pointless.contains(&metric.name))
            .filter(|metric| self.cases.iter().any(|case| tells(case, metric)))
            .filter_map(|metric| Some((metric, metric.column?)))
            .collect();
        let mut table = Table::new();
        let titles = ["variant", "point"].into_iter().chain(shown.iter().map(|(_, column)| *column));
        table.load_preset(NOTHING).set_header(titles);
        for component in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
            table.set_style(component, '─');
        }
        for case in &self.cases {
            let cells = shown.iter().map(|(metric, _)| {
                case.values.get(metric.name).map_or("-".into(), |value| show(metric, value) + &self.count(case, value))
            });
            let mark = if case.faulty_runs > 0 { " *" } else { "" };
            table.add_row([format!("{}{mark}", case.variant), point(&case.point)].into_iter().chain(cells));
        }
        (2..shown.len() + 2).for_each(|index| {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        });
        let (name, seeds) = (&self.manifest.scenario, self.seeds.len());
        let sets: String = self.manifest.overrides.iter().map(|change| format!(", with {change}")).collect();
        let over = match seeds {
            1 => "one seed, so no intervals".into(),
            _ => format!("means over {seeds} seeds, with 95 % intervals{}", self.explained_counts()),
        };
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        format!("{name}{sets}: {over}\n{table}\n{notes}{}", self.compared())
    }

    fn explained_counts(&self) -> &'static str {
        let partial = |case: &CaseSummary| {
            let shown = METRICS.iter().filter(|metric| metric.column.is_some());
            let mut values = shown.filter_map(|metric| case.values.get(metric.name));
            values.any(|interval| !self.count(case, interval).is_empty())
        };
        if self.cases.iter().any(partial) { "; n is the number of runs where it differs" } else { "" }
    }

    /// Number of runs of a mean, if not all seeds contribute.
    fn count(&self, case: &CaseSummary, interval: &Interval) -> String {
        // Identical runs count as one; a note explains this.
        let is_whole = case.identical && interval.count == 1 || interval.count == self.seeds.len();
        if is_whole { String::new() } else { format!(" (n={})", interval.count) }
    }

    fn compared(&self) -> String {
        let mut text = String::new();
        for comparison in &self.comparisons {
            for metric in &METRICS {
                let (Some(paired), Some(title)) = (comparison.values.get(metric.name), metric.column) else { continue };
                let verdict = match paired.verdict {
                    Verdict::Larger => "larger",
                    Verdict::Smaller => "smaller",
                    Verdict::Undecided | Verdict::Withheld => continue,
                };
                let (variant, baseline) = (&comparison.variant, &comparison.baseline);
                let times = paired.ratio.map_or(String::new(), |ratio| format!(", {:.3} times", ratio.mean));
                let place = described(&comparison.point);
                let _ =
                    writeln!(text, "{variant}{place}: {title} is {verdict} than with {baseline}{times} (paired, 95 %)");
            }
        }
        text
    }
}

/// Returns whether a column has information for a case.
fn tells(case: &CaseSummary, metric: &Metric) -> bool {
    case.values.get(metric.name).is_some_and(|interval| metric.tells_zero || interval.mean != 0.0)
}

fn comparisons(plan: &Plan, evidence: &Evidence) -> Vec<Comparison> {
    let numbers = numbers(plan);
    let of_case = |(number, case): (usize, &Case)| {
        let baseline = numbers.get(&(plan.baseline.as_str(), case.point.as_slice())).copied();
        let baseline = baseline.filter(|_| case.variant != plan.baseline)?;
        let names = evidence.samples[number].keys();
        let values = names.filter_map(|name| Some((name.clone(), evidence.paired(number, baseline, name)?.0)));
        Some(Comparison {
            variant: case.variant.clone(),
            baseline: plan.baseline.clone(),
            point: case.point.clone(),
            values: values.collect(),
        })
    };
    plan.cases.iter().enumerate().filter_map(of_case).collect()
}

/// States whose values the papers' metrics are, if some cases have several connections.
fn note_on_connections(plan: &Plan) -> Option<String> {
    let mut several = plan.cases.iter().map(|case| &case.scenario.workload).filter(|workload| workload.connections > 1);
    let first = several.next()?;
    let watched = first.kind == WorkloadKind::Video || several.any(|workload| workload.kind == WorkloadKind::Video);
    let viewers =
        "; stalls, time stalled and frames are totals of all viewers, and the start-up delay is that of the last one";
    let viewers = if watched { viewers } else { "" };
    Some(format!(
        "with several connections, goodput, throughput, Jain's index, retransmissions and duplicates are of all; G1, \
             outages, subflows, delay, jitter, receive buffer and reordering are of the first{viewers}"
    ))
}

/// A line for each case with faulty runs, and one on identical runs.
fn notes(plan: &Plan, evidence: &Evidence) -> Vec<String> {
    let name = |number: usize| {
        let case = &plan.cases[number];
        format!("{}{}", case.variant, described(&case.point))
    };
    let on_faults = |number: usize| {
        let runs = evidence.runs(number);
        let fault = runs.fault.as_ref()?;
        let (faulty, all) = (runs.faulty, runs.runs);
        Some(format!(
            "* {}: {faulty} of {all} runs had faults, so there is no verdict; the first fault: {fault}",
            name(number)
        ))
    };
    let faults = (0..plan.cases.len()).filter_map(on_faults);
    note_on_connections(plan).into_iter().chain(evidence.note_on_identical()).chain(faults).collect()
}

fn faulty(plan: &Plan, records: &[Record]) -> Vec<Faulty> {
    let of_record = |record: &Record| {
        let (variant, point) = (record.variant.clone(), record.point.clone());
        Some(Faulty { variant, point, seed: record.seed, fault: record.faults.first()?.clone() })
    };
    sorted(plan, records).into_iter().filter_map(of_record).collect()
}

pub(super) fn point(point: &[(String, String)]) -> String {
    point.iter().map(|(path, value)| format!("{}={value}", field_name(path, point))).collect::<Vec<_>>().join(" ")
}

pub(super) fn show(metric: &Metric, interval: &Interval) -> String {
    let mean = metric.show(interval.mean);
    let half = |half| format!(" ± {}", metric.show_half(half, interval.mean));
    format!("{mean}{}", interval.half_width.map_or(String::new(), half))
}
