//! Results of two sets of seeds for an effect.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::super::conditions::Condition;
use super::super::quantity::paired;
use super::super::repeated::{Fingerprint, independent, repetitions};
use super::super::{FALSE_DISCOVERY_RATE, Quantity, Runs};
use super::{EFFECTS, Effect};
use crate::measure::statistics::{Paired, Verdict, largest_discovery, mean};
use crate::run::sweep::Record;

/// An effect under every condition.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// The module.
    pub module: &'static str,
    /// The measure.
    pub measure: &'static str,
    /// Number of distinct conditions that yielded the numbers: those that repeat another one are left out.
    pub distinct: usize,
    /// Among these, conditions under which the person is better off.
    pub better: usize,
    /// Among these, conditions under which the person is worse off.
    pub worse: usize,
    /// One comparison for each condition, in their order.
    pub squares: Vec<Comparison>,
}

/// An effect under one condition.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The result of both sets of seeds.
    pub state: State,
    /// The earlier condition whose runs this one repeats, seed by seed, so that it is no further test; null if the runs
    /// are its own.
    pub repeats: Option<&'static str>,
    /// The difference on the exploration's seeds; null if there was nothing to measure.
    pub looked_at: Option<Difference>,
    /// The difference on the confirmation's seeds; null without them.
    pub confirmed: Option<Difference>,
}

/// A comparison on one set of seeds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Difference {
    /// Mean with the module.
    pub with: f64,
    /// Mean without it.
    pub without: f64,
    /// 95 % interval of the mean difference; null with a single seed.
    pub interval: Option<[f64; 2]>,
    /// Probability of such a difference if there were none; null with a single seed.
    pub p_value: Option<f64>,
    /// Number of seeds; one if nothing is random, so that all seeds gave the same run.
    pub seeds: usize,
    /// Number of runs with faults; they count nevertheless.
    pub faulty_runs: usize,
    #[serde(skip)]
    verdict: Verdict,
}

/// The result of both sets of seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The person is better off.
    Helps,
    /// The person is worse off.
    Hurts,
    /// No difference that both sets of seeds show.
    NoDifference,
    /// No run yielded the numbers.
    NotMeasured,
}

/// Judges all effects by the `runs` under each of the `conditions`: on the seeds `look`, and on `confirm` if given. A
/// condition that repeats another one does not count as a further test.
pub fn judge(
    conditions: &[&'static Condition],
    runs: &[Runs],
    look: &RangeInclusive<u64>,
    confirm: Option<&RangeInclusive<u64>>,
) -> Vec<Seen> {
    let compare = |effect: &Effect, seeds: &RangeInclusive<u64>| -> Vec<Option<Difference>> {
        runs.iter().map(|runs| compare(effect, runs, seeds)).collect()
    };
    let looked: Vec<_> = EFFECTS.iter().map(|effect| compare(effect, look)).collect();
    let repeats: Vec<_> = EFFECTS.iter().map(|effect| repeated(effect, runs)).collect();
    let tests = looked.iter().flatten().zip(repeats.iter().flatten());
    let tests = tests.filter(|(_, repeats)| repeats.is_none()).filter_map(|(looked, _)| looked.as_ref()?.p_value);
    let largest = largest_discovery(&tests.collect::<Vec<f64>>(), FALSE_DISCOVERY_RATE);
    let seen = |(row, effect): (usize, &Effect)| {
        let confirmed = confirm.map(|seeds| compare(effect, seeds));
        let squares = looked[row].iter().zip(&repeats[row]).enumerate().map(|(index, (looked_at, repeats))| {
            let confirmed = confirmed.as_ref().map(|confirmed| confirmed[index]);
            let state = state(effect, looked_at.as_ref(), confirmed, largest);
            let repeats = repeats.map(|first| conditions[first].name);
            Comparison { state, repeats, looked_at: *looked_at, confirmed: confirmed.flatten() }
        });
        Seen::new(effect, squares.collect())
    };
    EFFECTS.iter().enumerate().map(seen).collect()
}

impl Seen {
    fn new(effect: &Effect, squares: Vec<Comparison>) -> Self {
        let count = |is: fn(State) -> bool| {
            squares.iter().filter(|square| square.repeats.is_none() && is(square.state)).count()
        };
        Self {
            module: effect.module,
            measure: effect.measure,
            distinct: count(|state| state != State::NotMeasured),
            better: count(|state| state == State::Helps),
            worse: count(|state| state == State::Hurts),
            squares,
        }
    }
}

impl Comparison {
    /// Number of runs with faults on both sets of seeds.
    pub fn faulty_runs(&self) -> usize {
        [self.looked_at, self.confirmed].iter().flatten().map(|difference| difference.faulty_runs).sum()
    }
}

impl Effect {
    /// What is compared: with the module, and without it.
    fn quantities(&self) -> [Quantity; 2] {
        [self.with, self.without].map(|variant| Quantity::Of { variant, metric: self.metric, at: "" })
    }
}

/// For the runs under each condition, the index of those that they repeat.
fn repeated(effect: &Effect, conditions: &[Runs]) -> Vec<Option<usize>> {
    let fingerprint = |runs: &Runs| {
        let records = runs.get(&effect.needs).map_or(&[][..], Vec::as_slice);
        Fingerprint::of_quantities(&effect.quantities(), records)
    };
    let fingerprints: Vec<_> = conditions.iter().map(fingerprint).collect();
    repetitions(&fingerprints.iter().collect::<Vec<_>>())
}

fn compare(effect: &Effect, runs: &Runs, seeds: &RangeInclusive<u64>) -> Option<Difference> {
    let variants = [effect.with, effect.without];
    let is_compared = |record: &&Record| seeds.contains(&record.seed) && variants.contains(&record.variant.as_str());
    let all: Vec<Record> = runs.get(&effect.needs)?.iter().filter(is_compared).cloned().collect();
    let records = independent(&all, &variants);
    let [with, without] = effect.quantities().map(|quantity| quantity.sample(&records));
    let pairs: Vec<(f64, f64)> = paired(&with, &without).map(|(_, with, without)| (with, without)).collect();
    let (with, without): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let Paired { difference, verdict, .. } = Paired::compare(&with, &without)?;
    let interval = difference.low().zip(difference.high()).map(|(low, high)| [low, high]);
    let (with_mean, without_mean) = (mean(&with)?, mean(&without)?);
    Some(Difference {
        with: with_mean,
        without: without_mean,
        interval,
        p_value: difference.p_value(),
        seeds: with.len(),
        faulty_runs: all.iter().filter(|record| !record.faults.is_empty()).count(),
        verdict,
    })
}

fn state(
    effect: &Effect,
    looked_at: Option<&Difference>,
    confirmed: Option<Option<Difference>>,
    largest_p_value: Option<f64>,
) -> State {
    let (Some(looked_at), false) = (looked_at, matches!(confirmed, Some(None))) else { return State::NotMeasured };
    let is_shown = looked_at.p_value.zip(largest_p_value).is_some_and(|(p_value, largest)| p_value <= largest);
    let is_confirmed = confirmed.flatten().is_none_or(|confirmed| confirmed.verdict == looked_at.verdict);
    match looked_at.verdict {
        Verdict::Smaller | Verdict::Larger if is_shown && is_confirmed => {
            if (looked_at.verdict == Verdict::Smaller) == effect.less_is_better { State::Helps } else { State::Hurts }
        }
        _ => State::NoDifference,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::conditions::CONDITIONS;
    use super::*;

    /// With greedy selection, pages take a second; with SSRS, `gain` less, with small variations.
    fn runs(gain: f64) -> Runs {
        let record = |variant: &str, seed: u64, mean_s: f64| Record {
            variant: variant.into(),
            point: Vec::new(),
            seed,
            values: [("answers.mean_s".to_owned(), mean_s)].into(),
            ..Record::default()
        };
        let wobble = |seed: u64| if seed % 2 == 0 { 0.01 } else { -0.01 };
        let of = |seed: u64| [record("SSRS", seed, 1.0 - gain + wobble(seed)), record("greedy", seed, 1.0)];
        let needs = EFFECTS.iter().find(|effect| effect.needs.scenario == "users-pages").unwrap().needs;
        Runs::from([(needs, (1..=30).flat_map(of).collect())])
    }

    /// Under the first conditions that there are.
    fn row(runs: &[Runs]) -> Seen {
        let conditions: Vec<_> = CONDITIONS.iter().take(runs.len()).collect();
        let mut seen = judge(&conditions, runs, &(1..=10), Some(&(11..=30))).into_iter();
        seen.find(|seen| seen.module.contains("greedy") && seen.measure.contains("mean")).unwrap()
    }

    fn repeats(row: &Seen) -> Vec<Option<&'static str>> {
        row.squares.iter().map(|square| square.repeats).collect()
    }

    fn states(conditions: &[Runs]) -> Vec<State> {
        row(conditions).squares.iter().map(|square| square.state).collect()
    }

    fn change(runs: &mut Runs, change: impl Fn(&mut Record)) {
        runs.values_mut().flatten().for_each(change);
    }

    #[test]
    fn a_module_helps_hurts_or_does_nothing() {
        let all = states(&[runs(0.2), runs(-0.2), runs(0.0), Runs::new()]);
        assert_eq!(all, [State::Helps, State::Hurts, State::NoDifference, State::NotMeasured]);
    }

    #[test]
    fn what_other_seeds_do_not_show_is_no_difference() {
        let mut runs = runs(0.2);
        for record in runs.values_mut().flatten().filter(|record| record.seed > 10) {
            record.values.insert("answers.mean_s".into(), 1.0);
        }
        assert_eq!(states(&[runs]), [State::NoDifference]);
    }

    /// A gain of 0.009 has p = 0.025: alone, and with conditions that repeat it, it is no luck; among others it may be.
    #[test]
    fn a_condition_that_repeats_the_runs_as_shipped_is_no_further_test() {
        let among_others = [runs(0.009), runs(0.0), runs(0.001)];
        let found = row(&among_others);
        assert_eq!((found.better, found.distinct), (0, 3));
        // As two tests of four, the two equal p-values would be no luck.
        let repeated = [&among_others[..], &[runs(0.009)]].concat();
        assert_eq!(states(&repeated)[0], State::NoDifference);
        let mut other_unit = runs(0.009);
        change(&mut other_unit, |record| record.values.extend([("whole.unit_goodput_bps".to_owned(), 3e6)]));
        let found = row(&[runs(0.009), other_unit, runs(0.009)]);
        assert_eq!(repeats(&found), [None, Some("shipped"), Some("shipped")]);
        assert_eq!((found.better, found.worse, found.distinct), (1, 0, 1));
    }

    #[test]
    fn a_condition_that_repeats_another_one_counts_once() {
        let found = row(&[runs(0.0), runs(0.2), runs(0.3), runs(0.2)]);
        assert_eq!(repeats(&found), [None, None, None, Some(CONDITIONS[1].name)]);
        assert_eq!((found.better, found.worse, found.distinct), (2, 0, 3));
        // As two tests of four, the two equal p-values would be no luck.
        let weak = states(&[runs(0.0), runs(0.001), runs(0.009), runs(0.009)]);
        assert_eq!(weak[2..], [State::NoDifference; 2]);
    }

    /// Repetitions of one run would have an interval without a width.
    #[test]
    fn runs_without_chance_are_one_run() {
        let mut runs = runs(0.2);
        change(&mut runs, |record| {
            let mean_s = if record.variant == "SSRS" { 0.8 } else { 1.0 };
            record.values.insert("answers.mean_s".into(), mean_s);
        });
        let found = row(&[runs]);
        let difference = found.squares[0].looked_at.unwrap();
        assert_eq!((difference.interval, difference.p_value, difference.seeds), (None, None, 1));
        assert_eq!(found.squares[0].state, State::NoDifference);
    }

    #[test]
    fn runs_with_faults_count_and_are_counted() {
        let mut runs = runs(0.2);
        let faulty = |record: &&mut Record| record.variant == "greedy" && [3, 11, 12].contains(&record.seed);
        runs.values_mut().flatten().filter(faulty).for_each(|record| record.faults.push("broken".into()));
        let square = row(&[runs]).squares[0].clone();
        assert_eq!((square.state, square.faulty_runs()), (State::Helps, 3));
        assert_eq!((square.looked_at.unwrap().faulty_runs, square.confirmed.unwrap().faulty_runs), (1, 2));
    }
}
