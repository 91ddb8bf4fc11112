//! What must hold of quantities.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Quantity;
use super::quantity::{Key, paired};
use crate::measure::statistics::{Interval, Paired, Verdict as Order, mean};
use crate::run::sweep::Record;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// The mean lies in a range.
    Within {
        /// Of what.
        of: Quantity,
        /// Smallest mean accepted.
        low: f64,
        /// Largest mean accepted.
        high: f64,
    },
    /// Mean of `new` over mean of `old` lies in a range.
    Ratio {
        /// The one above.
        new: Quantity,
        /// The one below.
        old: Quantity,
        /// Smallest ratio accepted.
        low: f64,
        /// Largest ratio accepted.
        high: f64,
    },
    /// `less` has the smaller mean on paired seeds, at 95 %.
    Less {
        /// What is less.
        less: Quantity,
        /// What is more.
        than: Quantity,
    },
    /// The mean is above zero, at 95 %.
    Positive {
        /// Of what.
        of: Quantity,
    },
    /// More than half of the numbers are above a bound.
    Mostly {
        /// Of what.
        of: Quantity,
        /// The bound.
        above: f64,
    },
    /// Nothing must hold of a mean: the paper's own numbers contradict each other, or it gives none.
    Show {
        /// Of what.
        of: Quantity,
    },
    /// Nothing must hold of a ratio of means.
    ShowRatio {
        /// The one above.
        new: Quantity,
        /// The one below.
        old: Quantity,
    },
}

/// What one check came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// What the number is, and what it had to be.
    pub what: String,
    /// The mean, ratio or difference; null if there was nothing to measure.
    pub measured: Option<f64>,
    /// Its 95 % interval; null with a single seed, or for what is exact.
    pub interval: Option<[f64; 2]>,
    /// How probable a difference of that size, either way, would be if there were none; null unless an ordering or a sign had to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Whether it holds; null if nothing had to.
    pub holds: Option<bool>,
    /// That only an interval could show it, and one seed gives none.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub undecided: bool,
    /// Smallest and largest number accepted, if it is one of a range.
    #[serde(skip)]
    pub accepted: Option<[f64; 2]>,
}

impl Check {
    /// What it is about.
    pub fn quantities(&self) -> Vec<Quantity> {
        match *self {
            Self::Within { of, .. } | Self::Positive { of } | Self::Mostly { of, .. } | Self::Show { of } => vec![of],
            Self::Ratio { new, old, .. } | Self::ShowRatio { new, old } => vec![new, old],
            Self::Less { less, than } => vec![less, than],
        }
    }

    /// What it comes to on `records`.
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
    /// Of something computed, which may be off by `tolerance`, a ratio.
    pub(super) fn exact(what: &str, measured: Option<f64>, expected: f64, tolerance: f64) -> Self {
        let holds = measured.is_some_and(|measured| (measured / expected - 1.0).abs() <= tolerance);
        Self { what: format!("{what}, {expected} expected"), measured, holds: Some(holds), ..Self::default() }
    }

    /// Of the mean of other findings.
    pub(super) fn mean(of: &[&str], measured: Option<f64>, low: f64, high: f64) -> Self {
        let holds = measured.is_some_and(|measured| (low..=high).contains(&measured));
        let what = format!("mean of {} in {}", of.join(", "), range(low, high));
        Self { what, measured, holds: Some(holds), accepted: Some([low, high]), ..Self::default() }
    }

    /// Says which scenario gave it.
    pub(super) fn of_scenario(self, scenario: &str) -> Self {
        Self { what: format!("{scenario}: {}", self.what), ..self }
    }

    fn of_mean(what: String, interval: Option<Interval>, holds: Option<bool>) -> Self {
        let measured = interval.map(|interval| interval.mean);
        let interval = interval.and_then(|interval| bounds(&interval));
        Self { what, measured, interval, holds, ..Self::default() }
    }

    /// Of what nothing but an interval shows.
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

/// The mean over the grid points of each seed: seeds repeat an experiment, points are others.
fn by_seed(numbers: impl Iterator<Item = (Key, f64)>) -> Vec<f64> {
    let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for ((_, seed), number) in numbers {
        seeds.entry(seed).or_default().push(number);
    }
    seeds.values().filter_map(|numbers| mean(numbers)).collect()
}

/// Two quantities in one name: what they share is said once.
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
