//! A claim under a condition.

use serde::Serialize;

use super::super::{FALSE_DISCOVERY_RATE, Finding, Outcome, Verdict};
use super::Looked;
use crate::measure::statistics::largest_discovery;

/// A claim under a condition.
#[derive(Clone, Debug, Serialize)]
pub struct Square {
    /// The condition.
    pub condition: &'static str,
    /// The result of both sets of seeds.
    pub state: State,
    /// The earlier condition whose runs this one repeats, as far as the claim needs them, so that it is no further test;
    /// null if the runs are its own.
    pub repeats: Option<&'static str>,
    /// The result on the exploration's seeds.
    pub looked_at: Reading,
    /// The result on the confirmation's seeds; null without them, and where there was nothing to confirm.
    pub confirmed: Option<Reading>,
}

/// The result of one set of seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Reading {
    /// The verdict by the claim's own criteria.
    pub verdict: Verdict,
    /// The requirements, and the measurements.
    pub findings: Vec<Finding>,
    /// Number of seeds.
    pub seeds: usize,
    /// Number of runs with faults.
    pub faulty_runs: usize,
}

/// The result of both sets of seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It holds on both.
    Holds,
    /// It holds in the exploration, but not in the confirmation.
    Unconfirmed,
    /// It holds in the exploration, but with this many tests this may be luck.
    Luck,
    /// It does not hold.
    HoldsNot,
    /// It cannot be right or wrong.
    Informative,
    /// No run yielded the numbers that it needs.
    NotMeasured,
}

impl Square {
    pub(super) fn new(condition: &'static str, repeats: Option<&'static str>, looked: &Looked, kept: bool) -> Self {
        let state = state(looked.at.verdict, kept, looked.confirmed.as_ref().map(|outcome| outcome.verdict));
        Self {
            condition,
            state,
            repeats,
            looked_at: Reading::new(&looked.at),
            confirmed: looked.confirmed.as_ref().map(Reading::new),
        }
    }
}

impl Reading {
    fn new(outcome: &Outcome) -> Self {
        let (verdict, findings) = (outcome.verdict, outcome.findings.clone());
        Self { verdict, findings, seeds: outcome.seeds, faulty_runs: outcome.faulty_runs }
    }
}

fn state(looked_at: Verdict, kept: bool, confirmed: Option<Verdict>) -> State {
    match (looked_at, confirmed) {
        (Verdict::NotMeasured, _) | (_, Some(Verdict::NotMeasured)) => State::NotMeasured,
        (Verdict::Informative, _) => State::Informative,
        (Verdict::NotReproduced, _) => State::HoldsNot,
        (Verdict::Reproduced, _) if !kept => State::Luck,
        (Verdict::Reproduced, Some(Verdict::NotReproduced)) => State::Unconfirmed,
        (Verdict::Reproduced, _) => State::Holds,
    }
}

/// For each square of `looked[condition][claim]`, whether its orderings remain after the correction for all squares;
/// always true without orderings. A condition that repeats another one, `repeats[claim][condition]`, does not count as a
/// further test.
pub(super) fn kept_after_correction(looked: &[Vec<Looked>], repeats: &[Vec<Option<usize>>]) -> Vec<Vec<bool>> {
    let tested = |(condition, row): (usize, &Vec<Looked>)| -> Vec<f64> {
        let own = row.iter().zip(repeats).filter(|(_, repeats)| repeats[condition].is_none());
        own.filter_map(|(looked, _)| p_value(&looked.at)).collect()
    };
    let tests: Vec<f64> = looked.iter().enumerate().flat_map(tested).collect();
    let largest = largest_discovery(&tests, FALSE_DISCOVERY_RATE);
    let is_shown = |p_value: f64| largest.is_some_and(|largest| p_value <= largest);
    let kept = |looked: &Looked| p_value(&looked.at).is_none_or(is_shown);
    looked.iter().map(|row| row.iter().map(kept).collect()).collect()
}

/// The largest p-value of a claim's orderings, since all requirements of a claim must hold. An ordering in the wrong
/// direction is not significant.
fn p_value(outcome: &Outcome) -> Option<f64> {
    let of = |finding: &Finding| match finding.holds {
        Some(true) => finding.p_value,
        _ => finding.p_value.map(|_| 1.0),
    };
    outcome.findings.iter().filter_map(of).fold(None, |largest, p_value| Some(p_value.max(largest.unwrap_or(0.0))))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{looked, map, outcome};
    use super::*;

    #[test]
    fn a_cell_needs_both_sets_of_seeds() {
        for (square, expected) in [
            (looked(0.001, 0.001), State::Holds),
            (looked(0.001, 0.3), State::Unconfirmed),
            (looked(0.3, 0.001), State::HoldsNot),
            (Looked { confirmed: None, ..looked(0.001, 0.0) }, State::Holds),
        ] {
            assert_eq!(map(&[square]).claims[0].squares[0].state, expected);
        }
    }

    /// Among five tests, 0.04 is no discovery; alone it is.
    #[test]
    fn among_many_a_weak_ordering_may_be_luck() {
        let weak = looked(0.04, 0.001);
        assert_eq!(map(core::slice::from_ref(&weak)).claims[0].squares[0].state, State::Holds);
        let others = || [0.6, 0.7, 0.8, 0.9].into_iter().map(|p_value| looked(p_value, 0.9));
        let many: Vec<_> = [weak.clone()].into_iter().chain(others()).collect();
        assert_eq!(map(&many).claims[0].squares[0].state, State::Luck);
        // Conditions that change nothing repeat the same test.
        let same = others().map(|square| Looked { fingerprint: weak.fingerprint.clone(), ..square });
        let few: Vec<_> = [weak.clone()].into_iter().chain(same).collect();
        assert_eq!(map(&few).claims[0].squares[0].state, State::Holds);
    }

    /// As two tests of three, two equal p-values of 0.03 would be discoveries.
    #[test]
    fn a_condition_that_repeats_another_one_is_no_further_test() {
        let squares = &map(&[looked(0.9, 0.9), looked(0.03, 0.001), looked(0.03, 0.001)]).claims[0].squares;
        let found: Vec<_> = squares.iter().map(|square| (square.state, square.repeats)).collect();
        let second = Some(squares[1].condition);
        assert_eq!(found, [(State::HoldsNot, None), (State::Luck, None), (State::Luck, second)]);
    }

    #[test]
    fn ranges_are_not_corrected_and_the_weakest_ordering_counts() {
        let mut ranges = outcome(0.001);
        ranges.findings[0].p_value = None;
        assert_eq!(p_value(&ranges), None);
        let mut two = outcome(0.001);
        two.findings.push(outcome(0.02).findings[0].clone());
        assert_eq!(p_value(&two), Some(0.02));
        two.findings[0].holds = Some(false);
        assert_eq!(p_value(&two), Some(1.0));
    }
}
