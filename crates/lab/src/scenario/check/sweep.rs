//! Checks variants and grids: paths must be valid, and no change may undo a change that defines another variant or
//! point.

use toml::Value;

use super::Complaint;
use crate::scenario::{FieldPath, Scenario};

/// A change by a variant or by a point of the grid.
struct Change<'a> {
    /// The field that contains the change.
    field: String,
    /// The path as written there.
    key: &'a str,
    path: FieldPath,
}

pub(super) fn check_sweep(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let mut variants = Vec::new();
    for (index, variant) in scenario.variants.iter().enumerate() {
        let keys = variant.set.keys().map(|key| (format!("variants[{index}].set.{key}"), key.as_str()));
        let changes = changes(keys, found);
        check_order(&changes, scenario.relays.len(), found);
        variants.push((variant.name.as_str(), changes));
    }
    let baselines = scenario.variants.iter().enumerate().filter(|(_, variant)| variant.baseline);
    for (index, _) in baselines.skip(1) {
        let problem = "another variant is already the baseline";
        found.push(Complaint::new(format!("variants[{index}].baseline"), problem, "remove one of them"));
    }
    let Some(sweep) = &scenario.sweep else { return };
    let grid = changes(sweep.grid.keys().map(|key| (format!("sweep.grid.{key}"), key.as_str())), found);
    check_order(&grid, scenario.relays.len(), found);
    for axis in &grid {
        for (name, changes) in &variants {
            if let Some(undone) = changes.iter().find(|change| axis.path.covers(&change.path)) {
                let problem = format!("undoes what the variant \"{name}\" sets: {}", undone.key);
                found.push(Complaint::new(&axis.field, problem, "let the variants or the grid set it, not both"));
            }
        }
    }
    sweep.grid.iter().for_each(|(key, values)| check_values(key, values, found));
}

/// Returns the changes at `fields`; complains about invalid paths, and about fields that every run sets itself or all
/// runs share.
fn changes<'a>(fields: impl Iterator<Item = (String, &'a str)>, found: &mut Vec<Complaint>) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for (field, key) in fields {
        let top = key.split(['.', '[']).next().unwrap_or_default();
        match (key.parse(), top) {
            (Err(problem), _) => found.push(Complaint::new(field, problem, "")),
            (Ok(_), "seed") => {
                let remedy = "remove it, and set the seeds of all runs: sweep.seeds = \"1..30\"";
                found.push(Complaint::new(field, "every run has its own seed", remedy));
            }
            (Ok(_), "name" | "extends" | "variants" | "sweep") => {
                let problem = format!("\"{top}\" is the same for all runs");
                found.push(Complaint::new(field, problem, "remove it, or write a separate scenario"));
            }
            (Ok(path), _) => changes.push(Change { field, key, path }),
        }
    }
    changes
}

/// Changes apply in order: no change may undo an earlier one completely, nor may several changes to the single `relays`
/// do so together.
fn check_order(changes: &[Change<'_>], relays: usize, found: &mut Vec<Complaint>) {
    for (index, change) in changes.iter().enumerate() {
        if let Some(undone) = changes[..index].iter().find(|earlier| change.path.covers(&earlier.path)) {
            let problem = format!("undoes {}", undone.key);
            found.push(Complaint::new(&change.field, problem, "remove one of them"));
        }
        let later = &changes[index + 1..];
        let is_undone = |path: FieldPath| later.iter().any(|change| change.path.covers(&path));
        if relays > 0 && (0..relays).all(|relay| change.path.of_relay(relay).is_some_and(is_undone)) {
            found.push(Complaint::new(
                &change.field,
                "is undone for every relay by later changes",
                "remove one of them",
            ));
        }
    }
}

fn check_values(key: &str, values: &[Value], found: &mut Vec<Complaint>) {
    if values.is_empty() {
        let field = format!("sweep.grid.{key}");
        found.push(Complaint::new(field, "has no values", "write a list of values, or remove it"));
    }
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            let field = format!("sweep.grid.{key}[{index}]");
            found.push(Complaint::new(field, format!("{value} is listed twice"), "remove one of them"));
        }
    }
}
