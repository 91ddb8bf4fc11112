//! What a sweep runs.

use std::collections::BTreeSet;

use toml::Value;

use crate::scenario::{LoadError, Override, Scenario, Seeds};

/// Runs of one sweep at most.
const JOBS_MAX: usize = 1_000_000;
/// Name of the one variant of a scenario without variants.
const ONLY_VARIANT: &str = "as written";

/// All runs of a sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is swept: the scenario without variant and grid.
    pub scenario: Scenario,
    /// Every variant at every point of the grid.
    pub cases: Vec<Case>,
    /// The seeds of each.
    pub seeds: Vec<u64>,
    /// The variant with which the others are compared.
    pub baseline: String,
}

/// A variant at a point of the grid.
#[derive(Clone, Debug)]
pub struct Case {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// The scenario with both.
    pub scenario: Scenario,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which of [`Plan::cases`].
    pub case: usize,
    /// Its seed.
    pub seed: u64,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The scenario, or one with a variant or a point of the grid, says something wrong.
    #[error("{context}{error}")]
    Load {
        /// With which variant and point; empty for the scenario itself.
        context: String,
        /// What is wrong.
        error: LoadError,
    },
    /// The sweep makes no sense.
    #[error("{0}")]
    Sweep(String),
}

impl Plan {
    /// The plan of the scenario that `load` gives with some overrides, changed by `overrides`, over `seeds` or its own.
    ///
    /// # Errors
    /// If the scenario is wrong by itself, with a variant or at a point of the grid, or if there are too many runs.
    pub fn new(
        load: impl Fn(&[Override]) -> Result<Scenario, LoadError>,
        overrides: &[Override],
        seeds: Option<Seeds>,
    ) -> Result<Self, PlanError> {
        let scenario = load(overrides).map_err(|error| PlanError::Load { context: String::new(), error })?;
        let points = points(&scenario);
        let variants = variants(&scenario)?;
        let seeds = seeds.unwrap_or_else(|| scenario.sweep.clone().unwrap_or_default().seeds.0);
        let seeds: Vec<u64> = seeds.range().collect();
        let jobs = points.len().saturating_mul(variants.len()).saturating_mul(seeds.len());
        if jobs > JOBS_MAX {
            return Err(PlanError::Sweep(format!(
                "{jobs} runs are more than {JOBS_MAX}: shrink the grid or the seeds"
            )));
        }
        let baseline = variants.iter().find(|variant| variant.baseline).unwrap_or(&variants[0]).name.clone();
        let mut cases = Vec::new();
        for point in &points {
            for variant in &variants {
                cases.push(case(&load, overrides, variant, point)?);
            }
        }
        Ok(Self { scenario, cases, seeds, baseline })
    }

    /// Every run, in the order of cases and seeds.
    pub fn jobs(&self) -> impl Iterator<Item = Job> + '_ {
        (0..self.cases.len()).flat_map(|case| self.seeds.iter().map(move |seed| Job { case, seed: *seed }))
    }
}

struct NamedVariant {
    name: String,
    overrides: Vec<Override>,
    baseline: bool,
}

fn variants(scenario: &Scenario) -> Result<Vec<NamedVariant>, PlanError> {
    let mut names = BTreeSet::new();
    let mut variants = Vec::new();
    for variant in &scenario.variants {
        if !names.insert(&variant.name) {
            return Err(PlanError::Sweep(format!(
                "variants: \"{}\" is there twice: choose another name",
                variant.name
            )));
        }
        let overrides: Result<_, _> = variant.set.iter().map(|(path, value)| field(path, value)).collect();
        variants.push(NamedVariant { name: variant.name.clone(), overrides: overrides?, baseline: variant.baseline });
    }
    if variants.is_empty() {
        variants.push(NamedVariant { name: ONLY_VARIANT.into(), overrides: Vec::new(), baseline: true });
    }
    Ok(variants)
}

/// Every combination of the grid's values; one empty point without a grid.
fn points(scenario: &Scenario) -> Vec<Vec<(String, Value)>> {
    let mut points = vec![Vec::new()];
    for (path, values) in scenario.sweep.iter().flat_map(|sweep| &sweep.grid) {
        let extended = points.iter().flat_map(|point| {
            values.iter().map(move |value| {
                let mut point = point.clone();
                point.push((path.clone(), value.clone()));
                point
            })
        });
        points = extended.collect();
    }
    points
}

fn field(path: &str, value: &Value) -> Result<Override, PlanError> {
    Override::new(path, value.clone()).map_err(PlanError::Sweep)
}

/// The command line has the last word, so that a sweep can be narrowed by it.
fn case(
    load: &impl Fn(&[Override]) -> Result<Scenario, LoadError>,
    overrides: &[Override],
    variant: &NamedVariant,
    point: &[(String, Value)],
) -> Result<Case, PlanError> {
    let mut all: Vec<Override> = variant.overrides.clone();
    for (path, value) in point {
        all.push(field(path, value)?);
    }
    all.extend_from_slice(overrides);
    let named: Vec<(String, String)> = point.iter().map(|(path, value)| (path.clone(), plain(value))).collect();
    let context = || format!("variant \"{}\"{}: ", variant.name, described(&named));
    let scenario = load(&all).map_err(|error| PlanError::Load { context: context(), error })?;
    Ok(Case { variant: variant.name.clone(), point: named, scenario })
}

/// A value as one would type it after `--set`.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

pub(super) fn described(point: &[(String, String)]) -> String {
    point.iter().map(|(path, value)| format!(", {path} = {value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    const TEXT: &str = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
        cellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n\
        [[variants]]\nname = \"a\"\nset = { \"connection.congestion\" = \"lia\" }\n\
        [[variants]]\nname = \"b\"\nbaseline = true\nset = { \"connection.congestion\" = \"cubic\" }\n\
        [sweep]\nseeds = \"3..4\"\n[sweep.grid]\n\"connection.mtu\" = [\"1400 B\", \"1500 B\", \"9000 B\"]\n";

    fn plan(text: &str, overrides: &[&str]) -> Result<Plan, PlanError> {
        let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
        Plan::new(|overrides| load("x.toml", text, overrides), &overrides, None)
    }

    #[test]
    fn every_variant_at_every_point_with_every_seed() {
        let plan = plan(TEXT, &[]).unwrap();
        assert_eq!((plan.cases.len(), plan.seeds.as_slice(), plan.baseline.as_str()), (6, [3, 4].as_slice(), "b"));
        let jobs: Vec<Job> = plan.jobs().collect();
        assert_eq!((jobs.len(), jobs[3]), (12, Job { case: 1, seed: 4 }));
        assert_eq!(plan.cases[1].scenario.connection.congestion.0.to_string(), "cubic");
        assert_eq!(plan.cases[2].point, [("connection.mtu".to_string(), "1500 B".to_string())]);
        assert_eq!(plan.cases[2].scenario.connection.mtu.0, 1500);
    }

    #[test]
    fn the_command_line_has_the_last_word() {
        let plan = plan(TEXT, &["connection.mtu=1300 B"]).unwrap();
        assert!(plan.cases.iter().all(|case| case.scenario.connection.mtu.0 == 1300));
    }

    #[test]
    fn mistakes_name_the_variant_and_the_point() {
        let text = TEXT.replace("\"cubic\"", "\"vegan\"");
        let error = plan(&text, &[]).unwrap_err().to_string();
        assert!(error.contains("variant \"b\", connection.mtu = 1400 B") && error.contains("vegan"), "{error}");
        let twice = TEXT.replace("name = \"b\"", "name = \"a\"");
        assert!(plan(&twice, &[]).unwrap_err().to_string().contains("twice"));
        let many = TEXT.replace("3..4", "1..99999").replace("\"1400 B\",", &"\"1400 B\",".repeat(9));
        assert!(plan(&many, &[]).unwrap_err().to_string().contains("more than"));
    }
}
