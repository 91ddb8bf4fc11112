//! The report on a sweep as one HTML file: variants against each other over the points of a grid, seed by seed.
//!
//! ```text
//! layout        variants and points -> an axis, and panels
//! overview      all verdicts at a glance
//! dots, rows    means with intervals and every seed, over a grid or without one
//! differences   variants against the baseline on the same seeds
//! over_time     means over the seeds in the course of time
//! not_run       which runs failed, and why
//! ```

mod axis;
mod differences;
mod dots;
mod layout;
mod mark;
mod not_run;
mod over_time;
mod overview;
mod rows;

use super::html::escape;
use super::{HALF, WIDE, changed, document};
use crate::measure::statistics::{Interval, Paired};
use crate::present::evidence::Evidence;
use crate::present::metric::{METRICS, Metric};
use crate::run::sweep::{Plan, Record, Samples, numbers, sorted};
use axis::Axis;
use dots::Picture;
use layout::{Layout, Panel};

const STYLE: &str = include_str!("comparison.css");
/// Maximum number of panels per metric.
const PANELS_MAX: usize = 12;

/// The report on the `records` of `plan`, in any order: a whole HTML document.
pub fn render(plan: &Plan, records: &[Record]) -> String {
    let view = Comparison::new(plan, records);
    let sections = [
        view.heading(),
        view.figures(),
        view.identical(),
        not_run::section(&view),
        overview::section(&view),
        view.shown.iter().map(|metric| view.metric(metric)).collect(),
        view.same_everywhere(),
        over_time::section(&view),
        view.manifest(),
    ];
    document(&format!("{}: sweep", plan.scenario.name), STYLE, &sections.join("\n"))
}

/// A sweep, and its presentable parts.
struct Comparison<'a> {
    plan: &'a Plan,
    layout: Layout<'a>,
    /// The records in the order of cases and seeds.
    records: Vec<&'a Record>,
    evidence: Evidence,
    /// Metrics with differences.
    shown: Vec<&'static Metric>,
}

impl<'a> Comparison<'a> {
    fn new(plan: &'a Plan, records: &'a [Record]) -> Self {
        let evidence = Evidence::new(plan, records);
        let shown = METRICS.iter().filter(|metric| differs(&evidence.samples, metric)).collect();
        let seeds = |record: &&Record| plan.seeds.contains(&record.seed);
        let records = sorted(plan, records).into_iter().filter(seeds).collect();
        Self { plan, layout: Layout::new(plan), records, evidence, shown }
    }

    /// The value for each seed of a case.
    fn seeds(&self, case: usize, metric: &Metric) -> impl Iterator<Item = (&u64, &f64)> {
        self.evidence.samples[case].get(metric.name).into_iter().flatten()
    }

    fn interval(&self, case: usize, metric: &Metric) -> Option<Interval> {
        self.evidence.interval(case, metric.name)
    }

    /// The comparison of two cases, and the difference for each seed.
    fn paired(&self, case: usize, baseline: usize, metric: &Metric) -> Option<(Paired, Vec<f64>)> {
        self.evidence.paired(case, baseline, metric.name)
    }

    /// Marks a case whose runs had faults; the section about them explains why.
    fn fault_mark(&self, case: usize) -> String {
        let runs = self.evidence.runs(case);
        if runs.faulty == 0 {
            return String::new();
        }
        format!("<span title=\"{} of {} runs had faults\"> *</span>", runs.faulty, runs.runs)
    }

    /// A note about seeds that yielded the same run, if there are any.
    fn identical(&self) -> String {
        let note = self.evidence.note_on_identical();
        note.map_or(String::new(), |note| format!("<p class=\"note\">Note: {}.</p>", escape(&note)))
    }

    /// The records with a course, by case.
    fn courses(&self) -> Vec<Vec<&'a Record>> {
        let numbers = numbers(self.plan);
        let mut courses = vec![Vec::new(); self.plan.cases.len()];
        for record in self.records.iter().filter(|record| !record.values.is_empty()) {
            if let Some(case) = numbers.get(&(record.variant.as_str(), record.point.as_slice())) {
                courses[*case].push(*record);
            }
        }
        courses
    }

    /// The records of runs that did not begin.
    fn failed(&self) -> impl Iterator<Item = &'a Record> {
        self.records.iter().copied().filter(|record| record.values.is_empty())
    }

    fn heading(&self) -> String {
        let scenario = &self.plan.scenario;
        let (all, there) = (self.plan.cases.len() * self.plan.seeds.len(), self.records.len());
        let faulty = self.records.iter().filter(|record| !record.faults.is_empty()).count();
        let (class, state) = match (there == all, faulty) {
            (false, _) => ("fair", format!("{there} of {all} runs finished")),
            (true, 0) => ("good", format!("All {all} runs went well")),
            (true, faulty) => ("bad", format!("{faulty} of {all} runs had faults")),
        };
        format!(
            "<header><p class=\"brand\">Anabranch sweep</p><h1>{}</h1><p class=\"lead\">{}</p>\
             <p class=\"chips\"><span class=\"chip {class}\">{state}</span><span class=\"chip\">compared with {}</span>\
             <span class=\"chip\">version {}</span></p></header>",
            escape(&scenario.name),
            escape(&scenario.description),
            escape(&self.plan.baseline),
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn figures(&self) -> String {
        let figures = [
            (self.records.len(), "runs"),
            (self.layout.variants.len(), "variants"),
            (self.layout.points(), "points of the grid"),
            (self.plan.seeds.len(), "seeds each"),
        ];
        let cells: String =
            figures.iter().map(|(value, name)| format!("<div><dd>{value}</dd><dt>{name}</dt></div>")).collect();
        format!("<dl class=\"figures four\">{cells}</dl>")
    }

    /// One metric: picture, table and comparisons.
    fn metric(&self, metric: &Metric) -> String {
        let body = if self.layout.axis.is_some() { self.over_grid(metric) } else { self.without_grid(metric) };
        format!(
            "<section class=\"metric\"><h2>{}</h2><p class=\"note\">{} Mean over the seeds with its 95 % interval; every seed is a \
             dot.</p>{body}{}</section>",
            metric.title,
            metric.about,
            differences::table(self, metric)
        )
    }

    fn without_grid(&self, metric: &Metric) -> String {
        let cases = &self.layout.panels[0].columns[0].cases;
        let axis = Axis::new(metric, &self.extent(cases, metric), 5);
        let row = |(variant, case): (usize, &usize)| {
            let Some(interval) = self.interval(*case, metric) else { return String::new() };
            let seeds: Vec<f64> = self.seeds(*case, metric).map(|(_, value)| *value).collect();
            let number = |value: Option<f64>| value.map_or("-".into(), |value| axis::number(value, axis.unit));
            format!(
                "<tr><th scope=\"row\">{}{}{}</th><td class=\"plot\">{}</td><td>{} {}</td><td>± {}</td><td>{}</td><td>{}</td></tr>",
                mark::swatch(variant),
                escape(self.layout.variants[variant]),
                self.fault_mark(*case),
                rows::picture(&axis, variant, &interval, &seeds),
                number(Some(interval.mean)),
                axis.unit.name,
                number(interval.half_width),
                number(interval.standard_deviation),
                interval.count,
            )
        };
        let body: String = cases.iter().enumerate().map(row).collect();
        format!(
            "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Variant</th><th scope=\"col\" class=\"plot\"></th>\
             <th scope=\"col\">Mean</th><th scope=\"col\">95 % interval</th><th scope=\"col\">Deviation</th>\
             <th scope=\"col\">Seeds</th></tr></thead><tbody>{body}<tr class=\"scale\"><td></td><td class=\"plot\">{}</td>\
             <td colspan=\"4\"></td></tr></tbody></table></div>",
            rows::scale(&axis)
        )
    }

    fn over_grid(&self, metric: &Metric) -> String {
        let panels = &self.layout.panels;
        let size = if panels.len() > 1 { (HALF.0, 250.0) } else { WIDE };
        // All panels share one axis to allow comparison.
        let all: Vec<usize> = self.layout.columns().flat_map(|(_, column)| column.cases.clone()).collect();
        let values = self.extent(&all, metric);
        let picture = |panel: &Panel<'_>| {
            let heading =
                if panel.name.is_empty() { String::new() } else { format!("<h3>{}</h3>", escape(&panel.name)) };
            format!("<div>{heading}{}</div>", Picture { view: self, metric, panel, size }.svg(&values))
        };
        let pictures: String = panels.iter().take(PANELS_MAX).map(picture).collect();
        let class = if panels.len() > 1 { "panels" } else { "panel" };
        let part = match panels.len() {
            all if all > PANELS_MAX => {
                format!("<p class=\"note\">The first {PANELS_MAX} of {all} pictures; the table has all points.</p>")
            }
            _ => String::new(),
        };
        format!(
            "{}<div class=\"{class}\">{pictures}</div>{part}{}",
            mark::legend(&self.layout.variants),
            self.grid_table(metric, &values)
        )
    }

    /// Means with intervals: one row per point, one column per variant.
    fn grid_table(&self, metric: &Metric, values: &[f64]) -> String {
        let unit = axis::unit(metric, values.iter().copied().fold(0.0, |most, value| f64::max(most, value.abs())));
        let head: String =
            self.layout.variants.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
        let cell = |case: &usize| {
            let Some(interval) = self.interval(*case, metric) else { return "<td>-</td>".into() };
            let half = interval
                .half_width
                .map_or(String::new(), |half| format!(" <small>± {}</small>", axis::number(half, unit)));
            // Identical runs count as one; a note explains this.
            let runs = self.evidence.runs(*case);
            let is_whole = runs.identical && interval.count == 1 || interval.count == self.plan.seeds.len();
            let count = if is_whole { String::new() } else { format!(" <small>n={}</small>", interval.count) };
            format!("<td>{}{half}{count}{}</td>", axis::number(interval.mean, unit), self.fault_mark(*case))
        };
        let row = |(name, column): (String, &layout::Column<'_>)| {
            let cells: String = column.cases.iter().map(cell).collect();
            format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(&name))
        };
        let rows: String = self.layout.columns().map(row).collect();
        let unit = if unit.name.is_empty() { String::new() } else { format!("in {}", unit.name) };
        format!(
            "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">{unit}</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
    }

    /// The values that a picture of `cases` must include.
    fn extent(&self, cases: &[usize], metric: &Metric) -> Vec<f64> {
        let mut values = Vec::new();
        for case in cases {
            values.extend(self.seeds(*case, metric).map(|(_, value)| *value));
            let interval = self.interval(*case, metric);
            values.extend(interval.and_then(|interval| interval.low()));
            values.extend(interval.and_then(|interval| interval.high()));
        }
        values
    }

    fn same_everywhere(&self) -> String {
        let level = |metric: &&Metric| {
            let samples = &self.evidence.samples;
            if !metric.concerns(self.plan) {
                return None;
            }
            let value = samples.iter().find_map(|samples| samples.get(metric.name)?.values().next())?;
            (!differs(samples, metric)).then(|| format!("{} {}", metric.title, metric.show(*value)))
        };
        let same: Vec<String> = METRICS.iter().filter_map(|metric| level(&metric)).collect();
        if same.is_empty() {
            return String::new();
        }
        format!("<p class=\"note same\">The same in all runs: {}.</p>", escape(&same.join("; ")))
    }

    fn manifest(&self) -> String {
        let manifest = crate::run::sweep::Manifest::new(self.plan);
        let content = serde_json::to_string_pretty(&self.plan.scenario).unwrap_or_default();
        let backend = if manifest.world.is_empty() { "simulator" } else { &manifest.world };
        let seeds = match (self.plan.seeds.first(), self.plan.seeds.last()) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => "none".into(),
        };
        format!(
            "<section class=\"manifest\"><h2>Manifest</h2><dl><dt>scenario</dt><dd>{}</dd><dt>seeds</dt><dd>{seeds}</dd>{}\
             <dt>backend</dt><dd>{}</dd><dt>version</dt><dd>{}</dd><dt>SHA-256 of all cases</dt><dd><code>{}</code></dd></dl>\
             {}<details><summary>The whole scenario, variants and grid included, defaults filled in</summary><pre>{}</pre></details></section>",
            escape(&manifest.scenario),
            changed(&manifest.overrides),
            escape(backend),
            escape(&manifest.version),
            escape(&manifest.content),
            self.variants(),
            escape(&content),
        )
    }

    /// The settings of each variant.
    fn variants(&self) -> String {
        let row = |variant: &crate::scenario::Variant| {
            let set: Vec<String> = variant.set.iter().map(|(path, value)| format!("{path} = {value}")).collect();
            let set = if set.is_empty() { "nothing".into() } else { set.join("\n") };
            let number = self.layout.variants.iter().position(|name| *name == variant.name).unwrap_or(0);
            format!(
                "<tr><th scope=\"row\">{}{}</th><td class=\"name\"><code>{}</code></td></tr>",
                mark::swatch(number),
                escape(&variant.name),
                escape(&set)
            )
        };
        let rows: String = self.plan.scenario.variants.iter().map(row).collect();
        if rows.is_empty() {
            return String::new();
        }
        format!(
            "<div class=\"scroll\"><table class=\"sets\"><thead><tr><th scope=\"col\">Variant</th><th scope=\"col\" class=\"name\">What it sets</th></tr></thead><tbody>{rows}</tbody></table></div>"
        )
    }
}

/// Returns whether a metric has more than one value in all runs.
fn differs(samples: &[Samples], metric: &Metric) -> bool {
    let mut values = samples.iter().filter_map(|samples| samples.get(metric.name)).flat_map(|values| values.values());
    let first = values.next();
    values.any(|value| Some(value) != first)
}
