//! Conditions that quantities must meet.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Quantity;
use super::quantity::{Key, paired};
use crate::measure::statistics::{Interval, Paired, Verdict as Order, mean};
use crate::run::sweep::Record;

/// A condition on quantities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// The mean lies in a range.
    Within {
        /// The quantity.
        of: Quantity,
        /// Smallest mean accepted.
        low: f64,
        /// Largest mean accepted.
        high: f64,
    },
    /// Mean of `new` over mean of `old` lies in a range.
    Ratio {
        /// The numerator.
        new: Quantity,
        /// The denominator.
        old: Quantity,
        /// Smallest ratio accepted.
        low: f64,
        /// Largest ratio accepted.
        high: f64,
    },
    /// `less` has the smaller mean on paired seeds, at 95 %.
    Less {
        /// The smaller quantity.
        less: Quantity,
        /// The larger quantity.
        than: Quantity,
    },
    /// The mean is above zero, at 95 %.
    Positive {
        /// The quantity.
        of: Quantity,
    },
    /// More than half of the numbers are above a bound.
    Mostly {
        /// The quantity.
        of: Quantity,
        /// The bound.
        above: f64,
    },
    /// Requires nothing of a mean: the paper's own numbers contradict each other, or it gives none.
    Show {
        /// The quantity.
        of: Quantity,
    },
    /// Requires nothing of a ratio of means.
    ShowRatio {
        /// The numerator.
        new: Quantity,
        /// The denominator.
        old: Quantity,
    },
}

/// Result of one check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// The number, and its required value.
    pub what: String,
    /// The mean, ratio or difference; null if there was nothing to measure.
    pub measured: Option<f64>,
    /// Its 95 % interval; null with a single seed, or for exact numbers.
    pub interval: Option<[f64; 2]>,
    /// Probability of a difference of at least this size, in either direction, if there were none; null unless an
    /// ordering or a sign is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Whether the check holds; null if it requires nothing.
    pub holds: Option<bool>,
    /// Whether only an interval could show it, while there is only one seed, or nothing is random.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub undecided: bool,
    /// Whether nothing is random in the runs: all seeds gave the same ones, which count once.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub without_chance: bool,
    /// Smallest and largest accepted number, if the check requires a range.
    #[serde(skip)]
    pub accepted: Option<[f64; 2]>,
}

impl Check {
    /// The quantities of the check.
    pub fn quantities(&self) -> Vec<Quantity> {
        match *self {
            Self::Within { of, .. } | Self::Positive { of } | Self::Mostly { of, .. } | Self::Show { of } => vec![of],
            Self::Ratio { new, old, .. } | Self::ShowRatio { new, old } => vec![new, old],
            Self::Less { less, than } => vec![less, than],
        }
    }

    /// Evaluates the check on `records`.
    pub(super) fn find(&self, records: &[Record]) -> Finding {
        let interval = |of: Quantity| Interval::of(&by_seed(of.sample(records).into_iter()));
        match *self {
            Self::Within { of, low, high } => {
                let interval = interval(of);
                let holds = interval.is_some_and(|interval| (low..=high).contains(&interval.mean));
                let what = format!("{} in {}", of.name(), range(low, high));
                Finding { accepted: Some([low, high]), ..Finding::of_mean(what, interval, Some(holds)) }
            }
            Self::Positive { of } => {
                let interval = interval(of);
                let holds = interval.and_then(|interval| interval.low()).is_some_and(|low| low > 0.0);
                let p_value = interval.and_then(|interval| interval.p_value());
                let finding = Finding::of_mean(format!("{} above 0", of.name()), interval, Some(holds));
                Finding { p_value, ..finding }.of_an_interval()
            }
            Self::Show { of } => Finding::of_mean(of.name(), interval(of), None),
            Self::Mostly { of, above } => mostly(of, above, records),
            Self::Ratio { new, old, low, high } => ratio(new, old, Some((low, high)), records),
            Self::ShowRatio { new, old } => ratio(new, old, None, records),
            Self::Less { less, than } => {
                let paired = pair(less, than, records);
                Finding {
                    what: format!("{} below 0", versus(less, than, " - ")),
                    measured: paired.map(|paired| paired.difference.mean),
                    interval: paired.and_then(|paired| bounds(&paired.difference)),
                    p_value: paired.and_then(|paired| paired.difference.p_value()),
                    holds: Some(paired.is_some_and(|paired| paired.verdict == Order::Smaller)),
                    ..Finding::default()
                }
                .of_an_interval()
            }
        }
    }
}

impl Finding {
    /// The finding for a computed number that may differ from `expected` by the ratio `tolerance`.
    pub(super) fn exact(what: &str, measured: Option<f64>, expected: f64, tolerance: f64) -> Self {
        let holds = measured.is_some_and(|measured| (measured / expected - 1.0).abs() <= tolerance);
        Self { what: format!("{what}, {expected} expected"), measured, holds: Some(holds), ..Self::default() }
    }

    /// The finding for the mean of other findings.
    pub(super) fn mean(of: &[&str], measured: Option<f64>, low: f64, high: f64) -> Self {
        let holds = measured.is_some_and(|measured| (low..=high).contains(&measured));
        let what = format!("mean of {} in {}", of.join(", "), range(low, high));
        Self { what, measured, holds: Some(holds), accepted: Some([low, high]), ..Self::default() }
    }

    /// Adds the name of the scenario.
    pub(super) fn of_scenario(self, scenario: &str) -> Self {
        Self { what: format!("{scenario}: {}", self.what), ..self }
    }

    fn of_mean(what: String, interval: Option<Interval>, holds: Option<bool>) -> Self {
        let measured = interval.map(|interval| interval.mean);
        let interval = interval.and_then(|interval| bounds(&interval));
        Self { what, measured, interval, holds, ..Self::default() }
    }

    /// Marks a finding that only an interval can show.
    fn of_an_interval(self) -> Self {
        Self { undecided: self.measured.is_some() && self.interval.is_none(), ..self }
    }
}

fn mostly(of: Quantity, above: f64, records: &[Record]) -> Finding {
    let sample = of.sample(records);
    let hits = sample.iter().filter(|(_, number)| *number > above).count();
    let share = (!sample.is_empty()).then(|| hits as f64 / sample.len() as f64);
    Finding {
        what: format!("share of runs with {} above {above} in (0.5, 1]", of.name()),
        measured: share,
        holds: Some(share.is_some_and(|share| share > 0.5)),
        ..Finding::default()
    }
}

fn ratio(new: Quantity, old: Quantity, accepted: Option<(f64, f64)>, records: &[Record]) -> Finding {
    let paired = pair(new, old, records);
    let ratio = paired.and_then(|paired| paired.ratio);
    let within = |(low, high)| ratio.is_some_and(|ratio| (low..=high).contains(&ratio.mean));
    let suffix = accepted.map_or(String::new(), |(low, high)| format!(" in {}", range(low, high)));
    Finding {
        what: versus(new, old, " / ") + &suffix,
        measured: ratio.map(|ratio| ratio.mean),
        interval: ratio.and_then(|ratio| bounds(&ratio)),
        holds: accepted.map(within),
        accepted: accepted.map(|(low, high)| [low, high]),
        ..Finding::default()
    }
}

fn pair(new: Quantity, old: Quantity, records: &[Record]) -> Option<Paired> {
    let (new, old) = (new.sample(records), old.sample(records));
    let pairs: Vec<_> = paired(&new, &old).collect();
    let of_new = by_seed(pairs.iter().map(|(key, new, _)| (key.clone(), *new)));
    let of_old = by_seed(pairs.iter().map(|(key, _, old)| (key.clone(), *old)));
    Paired::compare(&of_new, &of_old)
}

/// The mean over the grid points for each seed: seeds repeat an experiment, points are different experiments.
fn by_seed(numbers: impl Iterator<Item = (Key, f64)>) -> Vec<f64> {
    let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for ((_, seed), number) in numbers {
        seeds.entry(seed).or_default().push(number);
    }
    seeds.values().filter_map(|numbers| mean(numbers)).collect()
}

/// Names two quantities; states their common part only once.
fn versus(new: Quantity, old: Quantity, sign: &str) -> String {
    match (new, old) {
        (Quantity::Of { variant, metric, at }, Quantity::Of { variant: other, metric: of_other, at: at_other })
            if metric == of_other && at == at_other =>
        {
            let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
            format!("{variant}{sign}{other}{at}: {}", metric.name())
        }
        _ => format!("({}){sign}({})", new.name(), old.name()),
    }
}

fn bounds(interval: &Interval) -> Option<[f64; 2]> {
    Some([interval.low()?, interval.high()?])
}

fn range(low: f64, high: f64) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("[{low}, {high}]"),
        (true, false) => format!("[{low}, ...)"),
        (false, true) => format!("(..., {high}]"),
        (false, false) => "any".into(),
    }
}
