//! Chooses one run of a sweep: a variant, a point of the grid, and changes by the command line.

use crate::scenario::{FieldPath, LoadError, Override, Scenario};

use super::axes::{changes_of, conflicts_with};
use super::plan::{Case, Plan};
use crate::scenario::shell;

/// Why there is no such run.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The scenario is invalid, or the command line contradicts the variant.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The scenario has no variant of this name.
    #[error("--variant {name}: there is no such variant\n  help: {}", remedy(.known))]
    Unknown {
        /// The requested name.
        name: String,
        /// The existing variants.
        known: Vec<String>,
    },
}

fn remedy(known: &[String]) -> String {
    match known.is_empty() {
        true => "the scenario has no variants: leave --variant out".into(),
        false => format!("known: {}", known.join(", ")),
    }
}

/// Returns the scenario that `load` creates from overrides: its variant `variant`, or without one the scenario as
/// written, changed by `overrides`. An override with the path and a value of an axis of the grid chooses that point.
///
/// # Errors
/// If the scenario is invalid, has no such variant, or if an override undoes a setting that defines the variant.
pub fn choose(
    load: impl Fn(&[Override]) -> Result<Scenario, LoadError>,
    variant: Option<&str>,
    overrides: &[Override],
) -> Result<Scenario, ChoiceError> {
    let base = load(overrides)?;
    let mut all = Vec::new();
    if let Some(name) = variant {
        let found = base.variants.iter().enumerate().find(|(_, variant)| variant.name == name);
        let Some((index, variant)) = found else {
            let known = base.variants.iter().map(|variant| variant.name.clone()).collect();
            return Err(ChoiceError::Unknown { name: name.into(), known });
        };
        let conflicts = conflicts_with(variant, &base, overrides);
        if !conflicts.is_empty() {
            return Err(LoadError::mistakes(conflicts).into());
        }
        all.extend(changes_of(index, variant));
    }
    // Of several changes to a field the last counts, whether the grid has its value or not.
    all.extend(overrides.iter().map(|change| as_point(&base, change)));
    let mut scenario = load(&all)?;
    scenario.variant = variant.map(String::from);
    scenario.overrides = overrides.iter().map(|change| change.text.clone()).collect();
    Ok(scenario)
}

/// The same change in the grid's own form, if the grid contains it: paths in it are relative to the scenario's file.
fn as_point(scenario: &Scenario, change: &Override) -> Override {
    for (key, values) in scenario.sweep.iter().flat_map(|sweep| &sweep.grid) {
        let same = key.parse().is_ok_and(|path: FieldPath| path == *change.path());
        if let Some(index) = values.iter().position(|value| same && value == change.value()) {
            return change.clone().standing_at(format!("sweep.grid.{key}[{index}]"));
        }
    }
    change.clone()
}

impl Plan {
    /// The command that runs one of `cases` with one seed, ready to paste into a shell.
    pub fn command(&self, case: &Case, seed: u64) -> String {
        let variant = (!self.scenario.variants.is_empty()).then_some(case.variant.as_str());
        let typed: Vec<FieldPath> = self.overrides.iter().map(|change| change.path().clone()).collect();
        let is_typed = |key: &str| key.parse().is_ok_and(|path: FieldPath| typed.contains(&path));
        let points = case.point.iter().filter(|(key, _)| !is_typed(key)).map(|(key, value)| format!("{key}={value}"));
        let overrides: Vec<String> = points.chain(self.overrides.iter().map(|change| change.text.clone())).collect();
        let world = if self.world.is_empty() { String::new() } else { format!(" {}", self.world) };
        format!("anabranch run {} --seed {seed}{world}", shell::scenario(&self.scenario.file, variant, &overrides))
    }
}
