//! The map of claims by conditions: where each claim holds.
//!
//! One set of seeds explores the conditions, and another set confirms them. On the first set, the squares are many
//! simultaneous tests: an ordering counts only if it remains after the correction for all of them
//! ([`crate::measure::statistics::largest_discovery`], at 5 %). On the second set, a claim must meet its own criteria
//! alone. Ranges apply to the measured value, as in the table of claims; only the second set guards them against luck.
//!
//! ```text
//! square     a claim under a condition: results of the two sets of seeds
//! verdict    where a claim holds, from its squares
//! causes     why some claims hold nowhere
//! text       for people: every square in a table
//! page       one HTML file; squares open to show the measurements
//! ```

mod causes;
mod page;
mod square;
mod text;
mod verdict;

use serde::Serialize;

pub use page::to_html;
pub use square::{Reading, Square, State};
pub use text::to_text;
pub use verdict::Place;

use super::conditions::Condition;
use super::repeated::{Fingerprint, repetitions};
use super::users::Seen;
use super::{Claim, Outcome};

/// First and last seed.
pub type SeedRange = [u64; 2];

/// Claims by conditions.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    /// The seeds of the exploration.
    pub looked_at: SeedRange,
    /// The seeds of the confirmation; null without one.
    pub confirmed_on: Option<SeedRange>,
    /// The columns.
    pub conditions: Vec<Column>,
    /// The rows.
    pub claims: Vec<Row>,
    /// What a person would notice of each module, in the same columns; empty if not measured.
    pub users: Vec<Seen>,
}

/// A condition.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Why somebody may have used this environment.
    pub why: &'static str,
    /// The settings that it changes.
    pub settings: Vec<String>,
}

/// A claim.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its number.
    pub id: &'static str,
    /// The paper's statement.
    pub paper: &'static str,
    /// The place of the statement in the paper.
    pub source: &'static str,
    /// The conditions under which it holds.
    pub place: Place,
    /// The measured cause, if it holds nowhere and is known.
    pub because: Option<&'static str>,
    /// One square for each condition, in their order.
    pub squares: Vec<Square>,
}

/// Results of the runs under one condition for one claim.
#[derive(Clone, Debug)]
pub struct Looked {
    /// The outcome on the first set of seeds.
    pub at: Outcome,
    /// The outcome on the second.
    pub confirmed: Option<Outcome>,
    /// That of the runs of the first set of seeds: a condition that has it too repeats them.
    pub fingerprint: Fingerprint,
}

impl Map {
    /// Creates the map from the results of `claims` under `conditions`: `looked[condition][claim]`.
    pub fn new(
        claims: &[&'static Claim],
        conditions: &[&'static Condition],
        looked: &[Vec<Looked>],
        looked_at: SeedRange,
        confirmed_on: Option<SeedRange>,
    ) -> Self {
        let repeated = |claim: usize| {
            let fingerprints = looked.iter().map(|row| &row[claim].fingerprint);
            repetitions(&fingerprints.collect::<Vec<_>>())
        };
        let repeats: Vec<_> = (0..claims.len()).map(repeated).collect();
        let kept = square::kept_after_correction(looked, &repeats);
        let row = |(index, claim): (usize, &&'static Claim)| {
            let square = |(column, condition): (usize, &&'static Condition)| {
                let repeats = repeats[index][column].map(|first| conditions[first].name);
                Square::new(condition.name, repeats, &looked[column][index], kept[column][index])
            };
            let squares: Vec<Square> = conditions.iter().enumerate().map(square).collect();
            let place = Place::of(&squares);
            let because = if place == Place::Nowhere { causes::of(claim.id) } else { None };
            Row { id: claim.id, paper: claim.paper, source: claim.source, place, because, squares }
        };
        let column = |condition: &&'static Condition| Column {
            name: condition.name,
            why: condition.why,
            settings: condition.settings.iter().map(|setting| setting.text()).collect(),
        };
        Self {
            looked_at,
            confirmed_on,
            conditions: conditions.iter().map(column).collect(),
            claims: claims.iter().enumerate().map(row).collect(),
            users: Vec::new(),
        }
    }

    /// Describes the seeds that it is based on.
    fn seeds_in_words(&self) -> String {
        let [first, last] = self.looked_at;
        let confirmed = self
            .confirmed_on
            .map_or("not confirmed on others".into(), |[first, last]| format!("confirmed on seeds {first} to {last}"));
        format!("Explored on seeds {first} to {last}, corrected for many comparisons; {confirmed}.")
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("maps have finite numbers")
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::super::conditions::CONDITIONS;
    use super::super::users::{EFFECTS, judge};
    use super::super::{Finding, Mode, Runs, Verdict};
    use super::*;
    use crate::run::sweep::Record;

    /// An outcome with one ordering with this p-value; it holds if the p-value is below 0.05.
    pub fn outcome(p_value: f64) -> Outcome {
        let holds = p_value < 0.05;
        let finding = Finding {
            what: "new - old: G1 below 0".into(),
            measured: Some(-1.0),
            interval: Some([-2.0, 0.5]),
            p_value: Some(p_value),
            holds: Some(holds),
            ..Finding::default()
        };
        Outcome {
            id: "C05".into(),
            paper: "less".into(),
            source: "thesis".into(),
            measured: Some(-1.0),
            interval: Some([-2.0, 0.5]),
            verdict: if holds { Verdict::Reproduced } else { Verdict::NotReproduced },
            mode: Mode::Build,
            findings: vec![finding],
            seeds: 20,
            faulty_runs: 0,
        }
    }

    /// The same p-values are those of the same runs.
    pub fn looked(at: f64, confirmed: f64) -> Looked {
        let fingerprint = Fingerprint::made_up(&format!("{at} {confirmed}"));
        Looked { at: outcome(at), confirmed: Some(outcome(confirmed)), fingerprint }
    }

    /// The first effect under three conditions, the second of which repeats the first. In the third a run has a fault.
    pub fn users() -> Vec<Seen> {
        let effect = EFFECTS[0];
        let record = |variant: &str, seed: u64, stalled_s: f64| Record {
            variant: variant.into(),
            seed,
            values: [("video.stalled_s".to_owned(), stalled_s)].into(),
            ..Record::default()
        };
        let runs = |wobble_s: f64| -> Runs {
            let with = (1..=10).map(|seed| record(effect.with, seed, 1.0 + wobble_s * (seed % 2) as f64));
            let without = (1..=10).map(|seed| record(effect.without, seed, 3.0));
            [(effect.needs, with.chain(without).collect())].into()
        };
        let mut third = runs(0.2);
        third.values_mut().flatten().take(1).for_each(|record| record.faults.push("broken".into()));
        let conditions: Vec<_> = CONDITIONS.iter().take(3).collect();
        judge(&conditions, &[runs(0.1), runs(0.1), third], &(1..=10), None).into_iter().take(1).collect()
    }

    /// A map of C05 under the first conditions.
    pub fn map(squares: &[Looked]) -> Map {
        let claim = super::super::claims().find(|claim| claim.id == "C05").unwrap();
        let conditions: Vec<_> = CONDITIONS.iter().take(squares.len()).collect();
        let looked: Vec<_> = squares.iter().map(|square| vec![square.clone()]).collect();
        Map::new(&[claim], &conditions, &looked, [1, 20], Some([21, 60]))
    }
}
