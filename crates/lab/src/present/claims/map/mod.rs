//! The claims' map: claims by conditions, and where each holds.
//!
//! Conditions are looked at on one set of seeds and confirmed on another. On the first set the squares are many tests at once, so an
//! ordering counts there only if it remains after the correction for all of them ([`crate::measure::statistics::largest_discovery`], at 5 %). On the second a claim must
//! hold by its own criteria alone. Ranges are asked of the measured value, as in the table of claims; only the second set guards them
//! against luck.
//!
//! ```text
//! square       a claim under a condition: what the two sets of seeds say
//! verdict    where a claim holds, from its squares
//! causes     why those that hold nowhere do not
//! text       for people: every square in a table
//! page       one HTML file; squares open into what was measured
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
use super::users::Seen;
use super::{Claim, Outcome};

/// First and last seed.
pub type SeedRange = [u64; 2];

/// Claims by conditions.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    /// The seeds on which conditions were looked at.
    pub looked_at: SeedRange,
    /// Those on which they were confirmed; null without.
    pub confirmed_on: Option<SeedRange>,
    /// The columns.
    pub conditions: Vec<Column>,
    /// The rows.
    pub claims: Vec<Row>,
    /// What a person would notice of each module, in the same columns; empty if that was not looked at.
    pub users: Vec<Seen>,
}

/// A condition.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Why somebody may have been there.
    pub why: &'static str,
    /// What it changes.
    pub settings: Vec<String>,
}

/// A claim.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its number.
    pub id: &'static str,
    /// What the paper says.
    pub paper: &'static str,
    /// Where it says so.
    pub source: &'static str,
    /// Where it holds.
    pub place: Place,
    /// The measured cause, if it holds nowhere and is known.
    pub because: Option<&'static str>,
    /// One square for each condition, in their order.
    pub squares: Vec<Square>,
}

/// What the runs under one condition came to for one claim.
#[derive(Clone, Debug)]
pub struct Looked {
    /// On the first set of seeds.
    pub at: Outcome,
    /// On the second.
    pub confirmed: Option<Outcome>,
    /// Whether the condition changes no run that the claim needs.
    pub unchanged: bool,
}

impl Map {
    /// Of what was seen of `claims` under `conditions`: `looked[condition][claim]`.
    pub fn new(
        claims: &[&'static Claim],
        conditions: &[&'static Condition],
        looked: &[Vec<Looked>],
        looked_at: SeedRange,
        confirmed_on: Option<SeedRange>,
    ) -> Self {
        let kept = square::kept_after_correction(looked);
        let row = |(index, claim): (usize, &&'static Claim)| {
            let squares = looked.iter().zip(&kept).zip(conditions);
            let squares =
                squares.map(|((looked, kept), condition)| Square::new(condition.name, &looked[index], kept[index]));
            let squares: Vec<Square> = squares.collect();
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

    /// On which seeds it rests, in words.
    fn seeds_in_words(&self) -> String {
        let [first, last] = self.looked_at;
        let confirmed = self
            .confirmed_on
            .map_or("not confirmed on others".into(), |[first, last]| format!("confirmed on seeds {first} to {last}"));
        format!("Looked at on seeds {first} to {last}, corrected for many comparisons; {confirmed}.")
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("maps have finite numbers")
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::super::{Finding, Mode, Verdict};
    use super::*;

    /// An outcome with one ordering of this p-value; it holds if that is below 0.05.
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

    pub fn looked(at: f64, confirmed: f64) -> Looked {
        Looked { at: outcome(at), confirmed: Some(outcome(confirmed)), unchanged: false }
    }

    /// C05 under the first conditions.
    pub fn map(squares: &[Looked]) -> Map {
        let claim = super::super::claims().find(|claim| claim.id == "C05").unwrap();
        let conditions: Vec<_> = super::super::conditions::CONDITIONS.iter().take(squares.len()).collect();
        let looked: Vec<_> = squares.iter().map(|square| vec![square.clone()]).collect();
        Map::new(&[claim], &conditions, &looked, [1, 20], Some([21, 60]))
    }
}
