//! One number for every run, or pair of runs, of a scenario.

use std::collections::BTreeSet;

use crate::measure::metrics::share_above;
use crate::measure::statistics::{kendall_tau, mean, pearson};
use crate::run::sweep::Record;

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// A value by its name in [`Record::values`].
    Value(&'static str),
    /// The first value over the second.
    Quotient(&'static str, &'static str),
    /// The first value over the second, and over a number of things that share it.
    PerEach(&'static str, &'static str, f64),
}

/// A quantity with one number for every seed, or for every seed and grid point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A metric of a variant.
    Of {
        /// The variant.
        variant: &'static str,
        /// The metric.
        metric: Metric,
        /// Part of the value of a grid point; all points if empty.
        at: &'static str,
    },
    /// A variant's value over another variant's, run by run.
    Gain {
        /// The variant above.
        new: &'static str,
        /// The variant below.
        old: &'static str,
        /// The metric.
        metric: Metric,
        /// Part of the value of a grid point.
        at: &'static str,
    },
    /// Decrease of a metric from one variant to another.
    Drop {
        /// The variant with the larger value.
        from: &'static str,
        /// The variant with the smaller value.
        to: &'static str,
        /// The metric.
        metric: Metric,
    },
    /// Share of the monitor points at which G1 of a variant is above that of another.
    Above {
        /// The variant above.
        new: &'static str,
        /// The other.
        old: &'static str,
        /// Part of the value of a grid point.
        at: &'static str,
    },
    /// Kendall's tau-b between the order of the paper and that of the runs: 1 if they agree on every pair, -1 if they
    /// agree on none.
    Agreement {
        /// Variants, the paper's best first; variants of one group have no order among them.
        order: &'static [&'static [&'static str]],
        /// The metric; larger is better.
        metric: Metric,
        /// Part of the value of a grid point; if empty, all points, each by itself.
        at: &'static str,
    },
    /// Pearson's r between the number in a grid point and the gain there: the variant's value over the mean of others.
    Growth {
        /// The variant.
        new: &'static str,
        /// The others.
        others: &'static [&'static str],
        /// The metric.
        metric: Metric,
    },
}

/// What a number belongs to: grid point (empty if the number is for all of them) and seed.
pub(super) type Key = (String, u64);

impl Quantity {
    /// The numbers from `records`.
    pub(super) fn sample(&self, records: &[Record]) -> Vec<(Key, f64)> {
        match *self {
            Self::Of { variant, metric, at } => of(records, variant, metric, at),
            Self::Gain { new, old, metric, at } => {
                let (new, old) = (of(records, new, metric, at), of(records, old, metric, at));
                seeds_alone(
                    at,
                    paired(&new, &old).filter(|(_, _, old)| *old != 0.0).map(|(key, new, old)| (key, new / old)),
                )
            }
            Self::Drop { from, to, metric } => {
                let (from, to) = (of(records, from, metric, ""), of(records, to, metric, ""));
                paired(&from, &to).map(|(key, from, to)| (key, from - to)).collect()
            }
            Self::Above { new, old, at } => above(records, new, old, at),
            Self::Agreement { order, metric, at } => agreement(records, order, metric, at),
            Self::Growth { new, others, metric } => growth(records, new, others, metric),
        }
    }

    /// The variants that it compares.
    pub fn variants(&self) -> Vec<&'static str> {
        match *self {
            Self::Of { variant, .. } => vec![variant],
            Self::Gain { new, old, .. } | Self::Above { new, old, .. } => vec![new, old],
            Self::Drop { from, to, .. } => vec![from, to],
            Self::Agreement { order, .. } => order.concat(),
            Self::Growth { new, others, .. } => [&[new], others].concat(),
        }
    }

    /// The part of a grid point's value to which it is restricted; empty if it is not.
    pub fn point(&self) -> &'static str {
        match *self {
            Self::Of { at, .. } | Self::Gain { at, .. } | Self::Above { at, .. } | Self::Agreement { at, .. } => at,
            Self::Drop { .. } | Self::Growth { .. } => "",
        }
    }

    /// A name for people.
    pub(super) fn name(&self) -> String {
        let at = if self.point().is_empty() { String::new() } else { format!(" at {}", self.point()) };
        match *self {
            Self::Of { variant, metric, .. } => format!("{variant}{at}: {}", metric.name()),
            Self::Gain { new, old, metric, .. } => format!("gain {new} / {old}{at}: {}", metric.name()),
            Self::Drop { from, to, metric } => format!("drop from {from} to {to}: {}", metric.name()),
            Self::Above { new, old, .. } => format!("share of points with {new} above {old}{at}"),
            Self::Agreement { order, metric, .. } => {
                let order: Vec<_> = order.iter().map(|group| group.join(", ")).collect();
                format!("tau of the order {}{at}: {}", order.join(" > "), metric.name())
            }
            Self::Growth { new, metric, .. } => format!("r of the point and the gain of {new}: {}", metric.name()),
        }
    }
}

impl Metric {
    fn value(self, record: &Record) -> Option<f64> {
        let get = |name: &str| record.values.get(name).copied();
        let divide = |above: &str, below: f64| get(above).filter(|_| below != 0.0).map(|above| above / below);
        match self {
            Self::Value(name) => get(name),
            Self::Quotient(above, below) => divide(above, get(below)?),
            Self::PerEach(above, below, count) => divide(above, get(below)? / count),
        }
    }

    /// A name for people.
    pub(super) fn name(self) -> String {
        match self {
            Self::Value(name) => name.into(),
            Self::Quotient(above, below) => format!("{above} / {below}"),
            Self::PerEach(above, below, count) => format!("{above} / ({below} / {count})"),
        }
    }
}

/// The grid point as text.
fn point(record: &Record) -> String {
    record.point.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
}

fn key(record: &Record) -> Key {
    (point(record), record.seed)
}

fn of_variant<'a>(records: &'a [Record], variant: &'a str, at: &'a str) -> impl Iterator<Item = &'a Record> {
    let is_there = move |record: &&Record| at.is_empty() || record.point.iter().any(|(_, value)| value.contains(at));
    records.iter().filter(move |record| record.variant == variant).filter(is_there)
}

/// Drops the grid point from quantities restricted to one, so that they pair by seed with those of another point.
fn seeds_alone(at: &str, numbers: impl Iterator<Item = (Key, f64)>) -> Vec<(Key, f64)> {
    let key = |key: Key| if at.is_empty() { key } else { (String::new(), key.1) };
    numbers.map(|(long, number)| (key(long), number)).collect()
}

fn of(records: &[Record], variant: &str, metric: Metric, at: &str) -> Vec<(Key, f64)> {
    let values = of_variant(records, variant, at).filter_map(|record| Some((key(record), metric.value(record)?)));
    seeds_alone(at, values)
}

/// Pairs the numbers whose key occurs in both lists.
pub(super) fn paired(new: &[(Key, f64)], old: &[(Key, f64)]) -> impl Iterator<Item = (Key, f64, f64)> {
    let partner = |key: &Key| old.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
    new.iter().filter_map(move |(key, value)| Some((key.clone(), *value, partner(key)?)))
}

fn above(records: &[Record], new: &str, old: &str, at: &str) -> Vec<(Key, f64)> {
    let share = |record: &Record| {
        let other = of_variant(records, old, at).find(|other| key(other) == key(record))?;
        Some((key(record), share_above(&record.goodput_points_bps, &other.goodput_points_bps)?))
    };
    seeds_alone(at, of_variant(records, new, at).filter_map(share))
}

fn agreement(records: &[Record], order: &[&[&str]], metric: Metric, at: &str) -> Vec<(Key, f64)> {
    let ranked =
        order.iter().rev().enumerate().flat_map(|(rank, group)| group.iter().map(move |name| (*name, rank as f64)));
    let ranked: Vec<_> = ranked.map(|(variant, rank)| (rank, of(records, variant, metric, at))).collect();
    let keys: BTreeSet<&Key> = ranked.iter().flat_map(|(_, sample)| sample.iter().map(|(key, _)| key)).collect();
    let tau = |key: &Key| {
        let value = |sample: &[(Key, f64)]| sample.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
        let pairs: Option<Vec<_>> = ranked.iter().map(|(rank, sample)| Some((*rank, value(sample)?))).collect();
        let (ranks, values): (Vec<f64>, Vec<f64>) = pairs?.into_iter().unzip();
        kendall_tau(&ranks, &values).map(|tau| (key.clone(), tau))
    };
    keys.into_iter().filter_map(tau).collect()
}

fn growth(records: &[Record], new: &str, others: &[&str], metric: Metric) -> Vec<(Key, f64)> {
    let new = of(records, new, metric, "");
    let others: Vec<_> = others.iter().map(|other| of(records, other, metric, "")).collect();
    let value =
        |sample: &[(Key, f64)], key: &Key| sample.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
    let gain = |key: &Key, value_new: f64| {
        let others: Option<Vec<f64>> = others.iter().map(|other| value(other, key)).collect();
        Some((leading_number(&key.0)?, value_new / mean(&others?).filter(|mean| *mean != 0.0)?))
    };
    let seeds: BTreeSet<u64> = new.iter().map(|((_, seed), _)| *seed).collect();
    let of_seed = |seed: u64| {
        let gains = new.iter().filter(|((_, of), _)| *of == seed).filter_map(|(key, value)| gain(key, *value));
        let (points, gains): (Vec<f64>, Vec<f64>) = gains.unzip();
        Some(((String::new(), seed), pearson(&points, &gains)?))
    };
    seeds.into_iter().filter_map(of_seed).collect()
}

/// The number 100 in `100 ms`; the grids of these claims use only one unit each.
fn leading_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOODPUT: Metric = Metric::Value("goodput");

    fn record(variant: &str, point: &str, seed: u64, goodput: f64) -> Record {
        Record {
            variant: variant.into(),
            point: vec![("delay".into(), point.into())],
            seed,
            values: [("goodput".to_owned(), goodput), ("flows".to_owned(), 8.0)].into(),
            goodput_points_bps: vec![Some(goodput), Some(2.0), None],
            ..Record::default()
        }
    }

    /// Goodputs of three variants at 10 and 20 ms with seed 7.
    fn records() -> Vec<Record> {
        let rows = [("a", 4.0, 9.0), ("b", 2.0, 3.0), ("c", 1.0, 4.0)];
        rows.iter()
            .flat_map(|(name, low, high)| [record(name, "10 ms", 7, *low), record(name, "20 ms", 7, *high)])
            .collect()
    }

    fn numbers(quantity: Quantity) -> Vec<f64> {
        quantity.sample(&records()).into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn a_point_confines_and_makes_seeds_comparable() {
        assert_eq!(numbers(Quantity::Of { variant: "a", metric: GOODPUT, at: "" }), [4.0, 9.0]);
        let at_20 = Quantity::Of { variant: "a", metric: Metric::PerEach("goodput", "flows", 4.0), at: "20 ms" };
        assert_eq!(at_20.sample(&records()), [((String::new(), 7), 4.5)]);
        assert_eq!(numbers(Quantity::Of { variant: "a", metric: Metric::Value("none"), at: "" }), [0.0; 0]);
    }

    #[test]
    fn gains_and_drops_are_those_of_pairs() {
        assert_eq!(numbers(Quantity::Gain { new: "a", old: "b", metric: GOODPUT, at: "" }), [2.0, 3.0]);
        assert_eq!(numbers(Quantity::Drop { from: "b", to: "c", metric: GOODPUT }), [1.0, -1.0]);
    }

    /// At the first point 4 against 2, at the second 2 against 2, at the third none.
    #[test]
    fn shares_of_points() {
        assert_eq!(numbers(Quantity::Above { new: "a", old: "b", at: "10 ms" }), [0.5]);
        assert_eq!(numbers(Quantity::Above { new: "b", old: "a", at: "10 ms" }), [0.0]);
    }

    /// a > b > c holds at 10 ms; at 20 ms for two pairs of three: (2 - 1) / 3. With b and c in one group, only the
    /// pairs with a count: tau-b of 2 agreeing pairs, 2 untied in the order, 3 in the values.
    #[test]
    fn agreement_with_an_order() {
        let order: &[&[&str]] = &[&["a"], &["b"], &["c"]];
        assert_eq!(numbers(Quantity::Agreement { order, metric: GOODPUT, at: "" }), [1.0, 1.0 / 3.0]);
        let grouped: &[&[&str]] = &[&["a"], &["b", "c"]];
        let found = numbers(Quantity::Agreement { order: grouped, metric: GOODPUT, at: "20 ms" });
        assert!((found[0] - 2.0 / 6.0_f64.sqrt()).abs() < 1e-12, "{found:?}");
    }

    /// Gains over the mean of the others: 4 / 1.5 at 10 ms, 9 / 3.5 at 20 ms, which is less; over b alone, 2 and 3.
    #[test]
    fn growth_along_the_grid() {
        let growth = |others| numbers(Quantity::Growth { new: "a", others, metric: GOODPUT })[0];
        assert!((growth(&["b", "c"]) + 1.0).abs() < 1e-12);
        assert!((growth(&["b"]) - 1.0).abs() < 1e-12);
    }
}
