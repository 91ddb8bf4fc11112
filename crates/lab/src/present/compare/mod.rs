//! Two results beside each other: what differs between two runs or two sweeps, seed by seed.
//!
//! ```text
//! side    one of the two, from its files
//! causes  the settings in which they differ, as far as they are known
//! text    the comparison for people
//! ```

mod causes;
mod side;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::causes::Causes;
use super::evidence::{self, CaseRuns};
use crate::measure::statistics::{Interval, Paired};
use crate::run::sweep::{Difference, Record, changed_files};

pub use side::{Kind, Side, SideError};

/// A variant, and path and value of every field of the grid.
type Key = (String, Vec<(String, String)>);

/// Two results, A and B.
#[derive(Clone, Debug, Serialize)]
pub struct Contrast {
    /// The first one.
    pub a: Side,
    /// The second one.
    pub b: Side,
    /// Whether both have the same runs, and these measured the same to the last bit.
    pub identical: bool,
    /// Settings that differ between the runs that are compared, with variant and point: path, and the values of A and
    /// B.
    pub settings: Vec<Difference>,
    /// Variants that are compared and whose settings A does not state: `settings` leaves them out.
    pub unknown_a: BTreeSet<String>,
    /// The same of B.
    pub unknown_b: BTreeSet<String>,
    /// Files that both depend on, with different contents.
    pub files: Vec<Difference>,
    /// Whether runs that are compared state different contents, although neither `settings` nor `files` names a cause.
    pub unexplained: bool,
    /// Whether runs of different builds that are compared state different contents, although neither `settings` nor
    /// `files` names a cause: other settings, or the same written in another way.
    pub unverified: bool,
    /// Every variant at every point of the grid that is in both.
    pub cases: Vec<CaseContrast>,
    /// Those of A that B does not have.
    pub only_a: Vec<Unpaired>,
    /// Those of B that A does not have.
    pub only_b: Vec<Unpaired>,
}

/// A variant at a point of the grid in both results.
#[derive(Clone, Debug, Serialize)]
pub struct CaseContrast {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// What B calls the variant, if it is another word: both have only one case, so the two are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant_b: Option<String>,
    /// B's point, if it is another one: likewise, or because one is a run, which has the values of the other's point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_b: Option<Vec<(String, String)>>,
    /// Seeds in both: the pairs.
    pub seeds: Vec<u64>,
    /// Seeds of A that are not in B.
    pub only_a_seeds: Vec<u64>,
    /// Seeds of B that are not in A.
    pub only_b_seeds: Vec<u64>,
    /// Whether all pairs are the same to the last bit; false if nothing was measured in them.
    pub identical: bool,
    /// Whether nothing is random in either, so that all seeds gave the same run, which counts as one pair.
    pub without_chance: bool,
    /// Runs with faults, among the pairs or, without pairs, among all.
    pub faulty_runs: usize,
    /// What was measured, by name in `runs.csv`.
    pub values: BTreeMap<String, ValueContrast>,
}

/// A number in both results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueContrast {
    /// In A, over the pairs; without pairs over all its seeds; null if it does not exist there.
    pub a: Option<Interval>,
    /// In B.
    pub b: Option<Interval>,
    /// B compared with A, pair by pair; null without pairs.
    pub paired: Option<Paired>,
}

/// A variant at a point of the grid that only one of the results has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unpaired {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// Its seeds.
    pub seeds: Vec<u64>,
}

/// The runs of a case, by seed.
type Runs<'a> = BTreeMap<u64, &'a Record>;

impl Contrast {
    /// Compares `b` with `a`. Runs with the same variant, point of the grid and seed are a pair. The result of one run is
    /// at the point whose values it has. If both results have a single case, its name does not matter.
    pub fn new(a: Side, b: Side) -> Self {
        let (of_a, of_b) = (by_case(&a.records), by_case(&b.records));
        let files = changed_files([&a.files, &b.files]);
        let pairs: Vec<(&Key, &Key)> = match (single(&of_a), single(&of_b)) {
            (Some(a), Some(b)) => vec![(a, b)],
            (Some(of_run), _) if a.kind == Kind::Run => {
                case_of((&a, of_run), (&b, &of_b)).map(|key| (of_run, key)).into_iter().collect()
            }
            (_, Some(of_run)) if b.kind == Kind::Run => {
                case_of((&b, of_run), (&a, &of_a)).map(|key| (key, of_run)).into_iter().collect()
            }
            _ => of_a.keys().filter(|key| of_b.contains_key(key)).map(|key| (key, key)).collect(),
        };
        let is_same = |a: &Key, b: &Key| depend_on_the_same(&of_a[a], &of_b[b]);
        let Causes { settings, unknown: [unknown_a, unknown_b] } = causes::causes([&a, &b], &pairs, is_same);
        let without_cause = |differ: fn(&Runs<'_>, &Runs<'_>) -> bool| {
            settings.is_empty() && files.is_empty() && pairs.iter().any(|(a, b)| differ(&of_a[*a], &of_b[*b]))
        };
        let unexplained = without_cause(depend_on_others);
        let unverified = !unexplained && without_cause(may_depend_on_others);
        let cases: Vec<CaseContrast> =
            pairs.iter().map(|(a, b)| CaseContrast::new((a, &of_a[*a]), (b, &of_b[*b]))).collect();
        let left = |cases: &BTreeMap<Key, Runs<'_>>, is_paired: &dyn Fn(&Key) -> bool| -> Vec<Unpaired> {
            let left = cases.iter().filter(|(key, _)| !is_paired(key));
            left.map(|((variant, point), runs)| Unpaired::new(variant, point, runs)).collect()
        };
        let only_a = left(&of_a, &|key| pairs.iter().any(|(a, _)| *a == key));
        let only_b = left(&of_b, &|key| pairs.iter().any(|(_, b)| *b == key));
        let is_whole = |case: &CaseContrast| case.only_a_seeds.is_empty() && case.only_b_seeds.is_empty();
        let identical =
            only_a.is_empty() && only_b.is_empty() && cases.iter().all(|case| case.identical && is_whole(case));
        Self { identical, settings, unknown_a, unknown_b, files, unexplained, unverified, cases, only_a, only_b, a, b }
    }

    /// Returns whether both sides have a value of anything in common.
    pub fn compares_something(&self) -> bool {
        let mut values = self.cases.iter().flat_map(|case| case.values.values());
        values.any(|value| value.a.is_some() && value.b.is_some())
    }

    /// One JSON object, indented, with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("comparisons have text keys and finite numbers");
        text.push('\n');
        text
    }

    /// A table for every case, and what could not be paired.
    pub fn to_text(&self) -> String {
        text::text(self)
    }
}

fn by_case(records: &[Record]) -> BTreeMap<Key, Runs<'_>> {
    let mut cases: BTreeMap<Key, Runs<'_>> = BTreeMap::new();
    for record in records {
        let key = (record.variant.clone(), record.point.clone());
        cases.entry(key).or_default().insert(record.seed, record);
    }
    cases
}

/// The only case, if there is just one.
fn single<'c>(cases: &'c BTreeMap<Key, Runs<'_>>) -> Option<&'c Key> {
    (cases.len() == 1).then(|| cases.keys().next()).flatten()
}

/// The case of a sweep that a run is one of.
fn case_of<'c>(run: (&Side, &Key), (sweep, cases): (&Side, &'c BTreeMap<Key, Runs<'_>>)) -> Option<&'c Key> {
    cases.keys().find(|key| causes::is_of_case(run, (sweep, key)))
}

impl CaseContrast {
    fn new((key, a): (&Key, &Runs<'_>), (key_b, b): (&Key, &Runs<'_>)) -> Self {
        let without = |one: &Runs<'_>, other: &Runs<'_>| -> Vec<u64> {
            one.keys().filter(|seed| !other.contains_key(seed)).copied().collect()
        };
        let seeds: Vec<u64> = a.keys().filter(|seed| b.contains_key(seed)).copied().collect();
        let sides = [a, b].map(|runs| chosen(runs, &seeds));
        let runs = sides.each_ref().map(|records| CaseRuns::new(records));
        let faulty_runs = runs.iter().map(|runs| runs.faulty).sum();
        let without_chance = evidence::without_chance(&runs);
        let names: BTreeSet<&String> = sides.iter().flatten().flat_map(|record| record.values.keys()).collect();
        let value = |name: &String| {
            let value = ValueContrast::new(name, &sides, !seeds.is_empty(), without_chance);
            let withheld = |paired: Paired| if faulty_runs > 0 { paired.withheld() } else { paired };
            (name.clone(), ValueContrast { paired: value.paired.map(withheld), ..value })
        };
        Self {
            variant: key.0.clone(),
            point: key.1.clone(),
            variant_b: (key.0 != key_b.0).then(|| key_b.0.clone()),
            point_b: (key.1 != key_b.1).then(|| key_b.1.clone()),
            only_a_seeds: without(a, b),
            only_b_seeds: without(b, a),
            identical: !names.is_empty()
                && !seeds.is_empty()
                && sides[0].iter().zip(&sides[1]).all(|(a, b)| measured_the_same(a, b)),
            without_chance,
            faulty_runs,
            values: names.into_iter().map(value).collect(),
            seeds,
        }
    }
}

/// The runs with `seeds`, in order; without any seeds all.
fn chosen<'r>(runs: &Runs<'r>, seeds: &[u64]) -> Vec<&'r Record> {
    let wanted = runs.iter().filter(|(seed, _)| seeds.is_empty() || seeds.contains(seed));
    wanted.map(|(_, record)| *record).collect()
}

/// Returns whether the runs of a case say that they depend on the same settings and files on both sides.
fn depend_on_the_same(a: &Runs<'_>, b: &Runs<'_>) -> bool {
    let [a, b] = [a, b].map(|runs| runs.values().map(|record| &record.content).collect::<BTreeSet<_>>());
    a == b && a.iter().all(|content| !content.is_empty())
}

/// Returns whether the runs of a case, as far as they say it, depend on other settings or files on either side. Only what
/// one build states is compared: others may write the same settings in another way.
fn depend_on_others(a: &Runs<'_>, b: &Runs<'_>) -> bool {
    let (a, b) = (contents(a), contents(b));
    a.iter().any(|(build, contents)| b.get(build).is_some_and(|others| others != contents))
}

/// Returns whether the runs of a case state other digests on either side, by whatever builds.
fn may_depend_on_others(a: &Runs<'_>, b: &Runs<'_>) -> bool {
    let [a, b] = [a, b].map(|runs| contents(runs).into_values().flatten().collect::<BTreeSet<_>>());
    !a.is_empty() && !b.is_empty() && a != b
}

/// The digests of what runs depend on, by the build that made them; without those of unknown builds.
fn contents<'r>(runs: &Runs<'r>) -> BTreeMap<&'r str, BTreeSet<&'r str>> {
    let mut contents: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in runs.values().filter(|record| !record.build.is_empty() && !record.content.is_empty()) {
        contents.entry(&record.build).or_default().insert(&record.content);
    }
    contents
}

fn measured_the_same(a: &Record, b: &Record) -> bool {
    (&a.values, &a.course, &a.goodput_points_bps) == (&b.values, &b.course, &b.goodput_points_bps)
}

impl ValueContrast {
    /// Compares the value `name`. If `are_pairs`, the records of both sides are of the same seeds, in the same order. If
    /// they are `without_chance`, one stands for all.
    fn new(name: &str, [a, b]: &[Vec<&Record>; 2], are_pairs: bool, without_chance: bool) -> Self {
        let value = |record: &&Record| record.values.get(name).copied();
        let pairs: Vec<(f64, f64)> = match are_pairs {
            true => a.iter().zip(b).filter_map(|(a, b)| Some((value(a)?, value(b)?))).collect(),
            false => Vec::new(),
        };
        let is_paired = !pairs.is_empty();
        let (mut of_a, mut of_b): (Vec<f64>, Vec<f64>) = match is_paired {
            true => pairs.into_iter().unzip(),
            false => (a.iter().filter_map(value).collect(), b.iter().filter_map(value).collect()),
        };
        if without_chance {
            of_a.truncate(1);
            of_b.truncate(1);
        }
        let paired = is_paired.then(|| Paired::compare(&of_b, &of_a)).flatten();
        Self { a: Interval::of(&of_a), b: Interval::of(&of_b), paired }
    }
}

impl Unpaired {
    fn new(variant: &str, point: &[(String, String)], runs: &Runs<'_>) -> Self {
        Self { variant: variant.into(), point: point.into(), seeds: runs.keys().copied().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(records: Vec<Record>) -> Side {
        Side {
            path: "x".into(),
            kind: Kind::Sweep,
            scenario: "x".into(),
            version: "1".into(),
            backend: "simulator".into(),
            overrides: Vec::new(),
            settings: serde_json::Value::Null,
            files: Vec::new(),
            records,
        }
    }

    /// As earlier versions of `claims` wrote them: a first line without the condition.
    #[test]
    fn runs_of_other_contents_are_not_of_the_same_settings() {
        let contrast = |a: [&str; 2], b: [&str; 2]| {
            let side = |[content, build]: [&str; 2]| {
                let record = Record { seed: 1, content: content.into(), build: build.into(), ..Record::default() };
                Side { settings: serde_json::json!({ "duration": "1 s" }), ..sweep(vec![record]) }
            };
            Contrast::new(side(a), side(b))
        };
        let other = contrast(["0a", "1"], ["0b", "1"]);
        assert!(other.unexplained && other.settings.is_empty());
        let text = other.to_text();
        assert!(text.contains("not known: which settings differ") && !text.contains("the same settings"), "{text}");
        for (a, b) in [(["0a", "1"], ["0a", "1"]), (["", "1"], ["0b", "1"]), (["0a", "1"], ["0a", "2"])] {
            let same = contrast(a, b);
            assert!(!same.unexplained && !same.unverified, "{a:?} {b:?}");
            assert!(same.to_text().contains("the same scenario, with the same settings\n"), "{a:?} {b:?}");
        }
        // Another build may write more fields, or have had other settings.
        let either = contrast(["0a", "1"], ["0b", "2"]);
        assert!(!either.unexplained && either.unverified);
        let text = either.to_text();
        assert!(text.contains("the same scenario, with the same settings as far as the first lines tell\n"), "{text}");
    }

    /// Runs that could not begin measured nothing: that is no agreement.
    #[test]
    fn runs_without_values_are_not_the_same() {
        let record = |seed, value: Option<f64>| Record {
            seed,
            faults: vec!["it did not begin".into()],
            values: value.map(|value| ("duration_s".to_owned(), value)).into_iter().collect(),
            ..Record::default()
        };
        let contrast = |value| {
            let side = || sweep(vec![record(1, value), record(2, value)]);
            Contrast::new(side(), side())
        };
        let nothing = contrast(None);
        assert!(!nothing.identical && !nothing.compares_something());
        let text = nothing.to_text();
        assert!(text.contains("4 of the runs had faults") && text.contains("nothing was measured in both"), "{text}");
        let same = contrast(Some(3.0));
        assert!(same.identical && same.compares_something());
        let text = same.to_text();
        assert!(text.contains("measured the same") && text.contains("4 of the runs had faults"), "{text}");
    }
}
