//! Means over the seeds in the course of time.

use super::super::chart::{Chart, Curve, Ribbon};
use super::super::scale::RATES;
use super::super::{HALF, figure};
use super::{Comparison, mark};
use crate::measure::Course;
use crate::measure::statistics::Interval;
use crate::run::sweep::Record;
use crate::scenario::Target;

/// Maximum number of grid points to draw.
const POINTS_MAX: usize = 6;
/// Maximum number of variants with ribbons; more would hide each other.
const RIBBONS_MAX: usize = 4;

type Steps = fn(&Course) -> &[f64];

/// Two figures for each point: all data that arrived, and data that arrived in order.
pub(super) fn section(view: &Comparison<'_>) -> String {
    let courses = view.courses();
    let moved = |record: &&Record| record.course.throughput_bps.iter().any(|bps| *bps > 0.0);
    if !courses.iter().flatten().any(moved) {
        return String::new();
    }
    let mut figures = String::new();
    let points = view.layout.points();
    let part = if points > POINTS_MAX { format!(" The first {POINTS_MAX} of {points} points.") } else { String::new() };
    for (point, column) in view.layout.columns().take(POINTS_MAX) {
        let place = if point.is_empty() { String::new() } else { format!(" at {point}") };
        let quantities: [(&str, Steps); 2] =
            [("Throughput", |course| &course.throughput_bps), ("Goodput in order", |course| &course.goodput_bps)];
        for (title, steps) in quantities {
            let targets = if title == "Throughput" { Targets::of(view, &column.cases) } else { Targets::None };
            let drawing = chart(view, title, &column.cases, steps, targets);
            figures += &figure(
                &format!("{title} over time"),
                &(caption(view, &place, targets) + &part),
                &mark::legend(&view.layout.variants),
                &drawing,
            );
        }
    }
    format!("<div class=\"pairs\">{figures}</div>")
}

/// The targets of several variants.
#[derive(Clone, Copy)]
enum Targets {
    None,
    Same(Target),
    Different,
}

impl Targets {
    fn of(view: &Comparison<'_>, cases: &[usize]) -> Self {
        // Whether the source is paced does not change the range.
        let range = |target: &Option<Target>| target.map(|target| (target.bit_rate, target.tolerance));
        let mut targets = cases.iter().map(|case| view.plan.cases[*case].scenario.target);
        let first = targets.next().flatten();
        match first {
            _ if targets.any(|target| range(&target) != range(&first)) => Self::Different,
            Some(target) => Self::Same(target),
            None => Self::None,
        }
    }
}

fn caption(view: &Comparison<'_>, place: &str, targets: Targets) -> String {
    let ribbon = if view.layout.variants.len() <= RIBBONS_MAX { ", with 95 % intervals" } else { "" };
    let range = match targets {
        Targets::None => "",
        Targets::Same(_) => " Shaded: the range around the target.",
        Targets::Different => " The variants have different targets, so no range is shaded.",
    };
    format!("Means over the seeds{place}{ribbon}.{range}")
}

fn chart(view: &Comparison<'_>, title: &str, cases: &[usize], steps: Steps, targets: Targets) -> String {
    let courses = view.courses();
    let grids: Vec<Grid> = cases.iter().map(|case| Grid::of(view, *case, &courses[*case], steps)).collect();
    // Of variants with the same steps, runs that ended sooner count as zero from then on.
    let length = |grid: &Grid| grids.iter().filter(|other| other.is_like(grid)).map(|other| other.length).max();
    let times_s: Vec<Vec<f64>> = grids.iter().map(|grid| grid.times_s(length(grid).unwrap_or(0))).collect();
    let mut time_s = times_s.concat();
    time_s.sort_by(f64::total_cmp);
    time_s.dedup();
    let (mut lines, mut ribbons) = (Vec::new(), Vec::new());
    for (variant, case) in cases.iter().enumerate() {
        let own_s = &times_s[variant];
        let intervals = means(&courses[*case], steps, own_s.len());
        let class = mark::class(variant);
        let values = |value: fn(&Interval) -> Option<f64>| -> Vec<Option<f64>> {
            let own: Vec<Option<f64>> = intervals.iter().map(|interval| interval.as_ref().and_then(value)).collect();
            time_s.iter().map(|at_s| value_at(own_s, &own, *at_s)).collect()
        };
        let name = courses[*case].first().map_or(String::new(), |record| record.variant.clone());
        lines.push(Curve { name, class: class.clone(), values: values(|interval| Some(interval.mean)) });
        if cases.len() <= RIBBONS_MAX {
            let low = values(|interval| interval.low().map(|low| low.max(0.0)));
            ribbons.push(Ribbon { class, low, high: values(Interval::high) });
        }
    }
    let band = match targets {
        Targets::Same(target) => {
            let (rate, theta) = (target.bit_rate.as_bps() as f64, target.tolerance.value());
            Some((rate * (1.0 - theta), rate * (1.0 + theta)))
        }
        Targets::None | Targets::Different => None,
    };
    let (label, size, units, time_s) = (title, HALF, RATES, &time_s[..]);
    let (stacked, marked_s, counted_s) = (Vec::new(), Vec::new(), None);
    Chart { label, size, units, time_s, band, marked_s, counted_s, stacked, ribbons, lines }.svg()
}

/// The steps of the runs of one case.
struct Grid {
    step_s: f64,
    end_s: f64,
    length: usize,
}

impl Grid {
    fn of(view: &Comparison<'_>, case: usize, records: &[&Record], steps: Steps) -> Self {
        let courses = || records.iter().map(|record| &record.course);
        Self {
            step_s: courses().map(|course| course.step_s).fold(0.0, f64::max),
            end_s: view.plan.cases[case].scenario.duration.as_secs_f64(),
            length: courses().map(|course| steps(course).len()).max().unwrap_or(0),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.step_s, self.end_s) == (other.step_s, other.end_s)
    }

    /// The ends of `length` steps.
    fn times_s(&self, length: usize) -> Vec<f64> {
        (1..=length).map(|step| (step as f64 * self.step_s).min(self.end_s)).collect()
    }
}

/// The height at `at_s` of a line through `values` at `times_s`; `None` outside of it.
fn value_at(times_s: &[f64], values: &[Option<f64>], at_s: f64) -> Option<f64> {
    let after = times_s.partition_point(|time_s| *time_s < at_s);
    let (to_s, to) = (times_s.get(after)?, values[after]?);
    if *to_s == at_s {
        return Some(to);
    }
    let before = after.checked_sub(1)?;
    let (from_s, from) = (times_s[before], values[before]?);
    Some(from + (to - from) * (at_s - from_s) / (to_s - from_s))
}

/// The mean of every step; runs that had ended by then count as zero.
fn means(records: &[&Record], steps: Steps, length: usize) -> Vec<Option<Interval>> {
    let at = |step: usize| {
        let values: Vec<f64> =
            records.iter().map(|record| steps(&record.course).get(step).copied().unwrap_or(0.0)).collect();
        Interval::of(&values)
    };
    (0..length).map(at).collect()
}
