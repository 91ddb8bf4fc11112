//! Names what differs between two scenarios, as a person would change it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::Manifest;
use crate::measure::results::FileDigest;
use crate::scenario::shell::quote;
use crate::scenario::{FieldPath, Scenario};

/// Maximum number of settings that an error names.
const NAMED_MAX: usize = 4;
/// Number of hexadecimal digits by which people tell digests apart.
const DIGITS: usize = 8;

/// A setting that has different values in two scenarios.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its path: `relays[0].cellular.delay`.
    pub path: String,
    /// Its values; `None` where it is not set.
    pub values: [Option<String>; 2],
}

/// The settings that differ between two scenarios as JSON, without their names, seeds, variants and grids.
pub fn differences(both: [&Value; 2]) -> Vec<Difference> {
    let leaves = both.map(|scenario| {
        let mut leaves = BTreeMap::new();
        for (key, value) in scenario.as_object().into_iter().flatten() {
            if !["name", "description", "seed", "variants", "sweep"].contains(&key.as_str()) {
                add_leaves(&mut leaves, key.clone(), value);
            }
        }
        leaves
    });
    unequal(&leaves)
}

/// The values of `leaves` that are not the same.
fn unequal(leaves: &[BTreeMap<String, String>; 2]) -> Vec<Difference> {
    let paths: BTreeSet<&String> = leaves.iter().flat_map(BTreeMap::keys).collect();
    let both = paths.into_iter().map(|path| {
        let values = leaves.each_ref().map(|leaves| leaves.get(path).cloned());
        Difference { path: path.clone(), values }
    });
    both.filter(|difference| difference.values[0] != difference.values[1]).collect()
}

fn add_leaves(leaves: &mut BTreeMap<String, String>, path: String, value: &Value) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| add_leaves(leaves, format!("{path}.{key}"), value));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, value)| add_leaves(leaves, format!("{path}[{index}]"), value));
        }
        // As in scenario files, but the quotes around texts only make the line longer.
        Value::String(text) => drop(leaves.insert(path, text.clone())),
        other => drop(leaves.insert(path, other.to_string())),
    }
}

/// What each variant sets, by name and path.
fn of_variants(scenario: &Value) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    for variant in scenario.get("variants").and_then(Value::as_array).into_iter().flatten() {
        let name = variant.get("name").and_then(Value::as_str).unwrap_or_default();
        for (path, value) in variant.get("set").and_then(Value::as_object).into_iter().flatten() {
            add_leaves(&mut leaves, format!("{path} of the variant \"{name}\""), value);
        }
    }
    leaves
}

fn of_files(files: &[FileDigest]) -> BTreeMap<String, String> {
    let named = |file: &FileDigest| {
        let digest = file.sha256.as_ref().map_or("unreadable".into(), |sha256| format!("SHA-256 {}...", begin(sha256)));
        (format!("the file {}", file.path), digest)
    };
    files.iter().map(named).collect()
}

fn begin(sha256: &str) -> &str {
    sha256.get(..DIGITS).unwrap_or(sha256)
}

/// What variants of the same name set differently in two scenarios as JSON.
fn variant_differences(both: [&Value; 2]) -> Vec<Difference> {
    unequal(&both.map(of_variants))
}

/// Files that both name, with different contents.
pub fn changed_files(both: [&[FileDigest]; 2]) -> Vec<Difference> {
    let files = both.map(of_files);
    unequal(&files).into_iter().filter(|difference| difference.values.iter().all(Option::is_some)).collect()
}

/// Why runs of `theirs` cannot stand beside runs of `ours`: the two, by their differences. `None` if nothing but
/// variants, points and seeds differ. If all runs `are_ours`, of the cases of our sweep, and this has the same cases, it
/// does not matter what is stated besides.
pub(super) fn told_apart([theirs, ours]: [&Manifest; 2], scenario: &Scenario, are_ours: bool) -> Option<[String; 2]> {
    let both = [theirs, ours];
    if theirs.scenario != ours.scenario {
        return Some(both.map(named));
    }
    if theirs.version != ours.version {
        let [their_version, our_version] = both.map(|manifest| &manifest.version);
        let theirs = format!("{} by version {their_version} of this program", named(theirs));
        return Some([theirs, format!("version {our_version}")]);
    }
    if theirs.world != ours.world {
        let [their_world, our_world] = both.map(|manifest| match manifest.world.as_str() {
            "" => "in the simulator",
            world => world,
        });
        return Some([format!("{} {their_world}", named(theirs)), format!("the same {our_world}")]);
    }
    // Versions that did not state their settings, or stated others of the same runs: the digests of the runs decide.
    if theirs.settings.is_null() || are_ours && theirs.content == ours.content {
        return None;
    }
    let varied = axes([&theirs.settings, &ours.settings], scenario);
    let is_varied = |difference: &Difference| {
        let path: Option<FieldPath> = difference.path.parse().ok();
        path.is_some_and(|path| varied.iter().any(|axis| axis.overlaps(&path)))
    };
    let mut found = differences([&theirs.settings, &ours.settings]);
    found.retain(|difference| !is_varied(difference));
    found.extend(changed_files([&theirs.files, &ours.files]));
    by_differences(both, &found)
}

/// As [`told_apart`], for a case whose runs depend on something else now although nothing else differs.
pub(super) fn told_apart_by_case(theirs: &Manifest, ours: &Manifest) -> [String; 2] {
    let both = [theirs, ours];
    let variants = match theirs.settings.is_null() {
        true => Vec::new(),
        false => variant_differences(both.map(|manifest| &manifest.settings)),
    };
    by_differences(both, &variants).unwrap_or_else(|| {
        let sets = both.map(|manifest| said(&manifest.overrides));
        match sets[0] == sets[1] {
            true => [format!("{} before its files changed", named(theirs)), format!("{} as it is now", named(ours))],
            false => [format!("{} {}", named(theirs), sets[0]), format!("the same {}", sets[1])],
        }
    })
}

fn named(manifest: &Manifest) -> String {
    format!("the scenario \"{}\"", manifest.scenario)
}

fn said(overrides: &[String]) -> String {
    match overrides {
        [] => "without --set".to_string(),
        overrides => {
            format!("with --set {}", overrides.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" --set "))
        }
    }
}

/// The two by the values of `found`, and by their `--set` if that differs; `None` if nothing was found.
fn by_differences(both: [&Manifest; 2], found: &[Difference]) -> Option<[String; 2]> {
    let sets = both.map(|manifest| said(&manifest.overrides));
    let list = |side: usize| {
        let one = |difference: &Difference| match &difference.values[side] {
            Some(value) => format!("{} = {value}", difference.path),
            None => format!("no {}", difference.path),
        };
        let more = if found.len() > NAMED_MAX { ", ..." } else { "" };
        let set = if sets[0] == sets[1] { String::new() } else { format!(" ({})", sets[side]) };
        format!("{}{more}{set}", found.iter().take(NAMED_MAX).map(one).collect::<Vec<_>>().join(", "))
    };
    (!found.is_empty()).then(|| [format!("{} with {}", named(both[0]), list(0)), format!("the same with {}", list(1))])
}

/// The fields that the grids vary: what the scenario itself says there concerns no run.
fn axes(both: [&Value; 2], scenario: &Scenario) -> Vec<FieldPath> {
    let theirs = both.into_iter().filter_map(|settings| settings.pointer("/sweep/grid")?.as_object());
    let theirs = theirs.flat_map(|grid| grid.keys().cloned());
    let ours = scenario.sweep.iter().flat_map(|sweep| sweep.grid.keys().cloned());
    theirs.chain(ours).filter_map(|key| key.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_by_their_paths() {
        let old = serde_json::json!({ "name": "a", "seed": 1, "duration": "1 s", "relays": [{ "count": 2 }] });
        let new = serde_json::json!({
            "name": "b", "seed": 2, "duration": "2 s", "relays": [{ "count": 2 }, { "count": 1 }], "sweep": {}
        });
        let difference = |path: &str, old: Option<&str>, new: Option<&str>| Difference {
            path: path.into(),
            values: [old, new].map(|value| value.map(String::from)),
        };
        let expected =
            [difference("duration", Some("1 s"), Some("2 s")), difference("relays[1].count", None, Some("1"))];
        assert_eq!(differences([&old, &new]), expected);
        assert_eq!(differences([&old, &old]), []);
    }
}
