//! Dimensions of a sweep after applying the command line: variants and the axes of the grid.

use toml::Value;

use crate::scenario::{FieldPath, Mistake, Override, Place, Scenario, Variant, typed};

/// Maximum number of variants that an error names.
const NAMED_MAX: usize = 4;

/// One axis of the grid.
pub(super) struct Axis {
    /// The field's path as written in the scenario.
    pub key: String,
    pub values: Vec<AxisValue>,
}

/// A value of an axis.
pub(super) struct AxisValue {
    /// Its name in tables.
    pub label: String,
    /// The change to the scenario; `None` if the command line makes it.
    pub change: Option<Override>,
}

/// The changes of `variant`, which has index `index`.
pub(super) fn changes_of(index: usize, variant: &Variant) -> Vec<Override> {
    let change =
        |(key, value): (&String, &Value)| Override::in_file(key, value, &format!("variants[{index}].set.{key}")).ok();
    // In a checked scenario, all paths are valid.
    variant.set.iter().filter_map(change).collect()
}

/// What the case of `scenario` with this variant at this point changes.
pub(crate) fn changes_of_case(scenario: &Scenario, variant: &str, point: &[(String, String)]) -> Vec<Override> {
    let variants = scenario.variants.iter().enumerate().filter(|(_, known)| known.name == variant);
    let points = point.iter().filter_map(|(path, value)| format!("{path}={value}").parse().ok());
    variants.flat_map(|(index, variant)| changes_of(index, variant)).chain(points).collect()
}

/// The axes of the grid. An axis that an override sets as a whole has only that value.
pub(super) fn axes(scenario: &Scenario, overrides: &[Override]) -> Vec<Axis> {
    let axis = |(key, values): (&String, &Vec<Value>)| {
        let path: FieldPath = key.parse().ok()?;
        let values = match overrides.iter().rev().find(|change| *change.path() == path) {
            Some(typed_one) => vec![AxisValue { label: typed(typed_one.value()), change: None }],
            None => values.iter().enumerate().filter_map(|(index, value)| axis_value(key, index, value)).collect(),
        };
        Some(Axis { key: key.clone(), values })
    };
    scenario.sweep.iter().flat_map(|sweep| &sweep.grid).filter_map(axis).collect()
}

fn axis_value(key: &str, index: usize, value: &Value) -> Option<AxisValue> {
    let change = Override::in_file(key, value, &format!("sweep.grid.{key}[{index}]")).ok()?;
    Some(AxisValue { label: typed(value), change: Some(change) })
}

/// Explains which `overrides` would make rows of a sweep contradict their names.
pub(super) fn conflicts(scenario: &Scenario, overrides: &[Override]) -> Vec<Mistake> {
    let mut found = Vec::new();
    for change in overrides {
        if change.is_of("seed") {
            let remedy = "choose seeds with --seeds, both ends included: --seeds 1..30";
            found.push(mistake(change, "every run of a sweep has its own seed".into(), remedy));
        }
        let variants: Vec<&Variant> = scenario.variants.iter().filter(|variant| is_set_by(change, variant)).collect();
        if !variants.is_empty() {
            found.push(mistake(
                change,
                undone(&variants),
                "leave it out, or drop all variants with --set 'variants=[]'",
            ));
        }
        for axis in scenario.sweep.iter().flat_map(|sweep| sweep.grid.keys()) {
            let path: Option<FieldPath> = axis.parse().ok();
            if path.is_some_and(|path| path != *change.path() && path.overlaps(change.path())) {
                let problem = format!("the grid varies {axis}, so its points would no longer match their names");
                found.push(mistake(change, problem, "leave it out, or drop the grid with --set 'sweep.grid={}'"));
            }
        }
    }
    found
}

/// Explains which `overrides` would undo a setting of `variant`, except where they choose a point of the grid.
pub(super) fn conflicts_with(variant: &Variant, scenario: &Scenario, overrides: &[Override]) -> Vec<Mistake> {
    let keys = || scenario.sweep.iter().flat_map(|sweep| sweep.grid.keys());
    let chooses_a_point =
        |change: &&Override| keys().any(|key| key.parse().is_ok_and(|path: FieldPath| path == *change.path()));
    let undoing = overrides.iter().filter(|change| is_set_by(change, variant) && !chooses_a_point(change));
    undoing.map(|change| mistake(change, undone(&[variant]), "leave it out, or leave out --variant")).collect()
}

fn is_set_by(change: &Override, variant: &Variant) -> bool {
    let overlaps = |key: &String| key.parse().is_ok_and(|path: FieldPath| path.overlaps(change.path()));
    variant.set.keys().any(overlaps)
}

fn undone(variants: &[&Variant]) -> String {
    let names: Vec<String> = variants.iter().take(NAMED_MAX).map(|variant| format!("\"{}\"", variant.name)).collect();
    let more = if variants.len() > NAMED_MAX { ", ..." } else { "" };
    match names.as_slice() {
        [name] => format!("the variant {name} sets this itself and would no longer match its name"),
        names => {
            format!("the variants {}{more} set this themselves and would no longer match their names", names.join(", "))
        }
    }
}

fn mistake(change: &Override, problem: String, remedy: &str) -> Mistake {
    let (place, field, context) = (Place::Override(change.text.clone()), String::new(), String::new());
    Mistake { place, field, problem, remedy: remedy.into(), context }
}
