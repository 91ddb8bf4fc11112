//! Results of two sets of seeds for an effect.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::super::quantity::paired;
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
    /// One comparison for each condition, in their order.
    pub squares: Vec<Comparison>,
}

/// An effect under one condition.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The result of both sets of seeds.
    pub state: State,
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
    /// Number of seeds.
    pub seeds: usize,
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

/// Judges all effects by the runs under each condition: on the seeds `look`, and on `confirm` if given.
pub fn judge(conditions: &[Runs], look: &RangeInclusive<u64>, confirm: Option<&RangeInclusive<u64>>) -> Vec<Seen> {
    let compare = |effect: &Effect, seeds: &RangeInclusive<u64>| -> Vec<Option<Difference>> {
        conditions.iter().map(|runs| compare(effect, runs, seeds)).collect()
    };
    let looked: Vec<_> = EFFECTS.iter().map(|effect| compare(effect, look)).collect();
    let tests: Vec<f64> = looked.iter().flatten().filter_map(|difference| difference.as_ref()?.p_value).collect();
    let largest = largest_discovery(&tests, FALSE_DISCOVERY_RATE);
    let seen = |(effect, looked): (&Effect, Vec<Option<Difference>>)| {
        let confirmed = confirm.map(|seeds| compare(effect, seeds));
        let squares = looked.into_iter().enumerate().map(|(index, looked_at)| {
            let confirmed = confirmed.as_ref().map(|confirmed| confirmed[index]);
            let state = state(effect, looked_at.as_ref(), confirmed, largest);
            Comparison { state, looked_at, confirmed: confirmed.flatten() }
        });
        Seen { module: effect.module, measure: effect.measure, squares: squares.collect() }
    };
    EFFECTS.iter().zip(looked).map(seen).collect()
}

fn compare(effect: &Effect, runs: &Runs, seeds: &RangeInclusive<u64>) -> Option<Difference> {
    let records: Vec<Record> =
        runs.get(&effect.needs)?.iter().filter(|record| seeds.contains(&record.seed)).cloned().collect();
    let sample = |variant| Quantity::Of { variant, metric: effect.metric, at: "" }.sample(&records);
    let pairs: Vec<(f64, f64)> =
        paired(&sample(effect.with), &sample(effect.without)).map(|(_, with, without)| (with, without)).collect();
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

    fn states(conditions: &[Runs]) -> Vec<State> {
        let seen = judge(conditions, &(1..=10), Some(&(11..=30)));
        let row = seen.iter().find(|seen| seen.module.contains("greedy") && seen.measure.contains("mean")).unwrap();
        row.squares.iter().map(|square| square.state).collect()
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
}
