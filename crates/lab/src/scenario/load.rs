//! From a file and overrides to a [`Scenario`], or to mistakes that say where they stand.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::expand::{Origins, expand_relays};
use super::layers::{self, FindBase, Layer, Places};
use super::mistake::{LoadError, Mistake, Place};
use super::overrides::Override;
use super::{Link, RelayMode, Scenario, TextOr, check};

/// Loads the scenario file at `path`, changed by `overrides`. What it extends is named relative to it.
///
/// # Errors
/// If the file cannot be read or says something wrong.
pub fn load_file(path: &Path, overrides: &[Override]) -> Result<Scenario, LoadError> {
    let text = std::fs::read_to_string(path).map_err(|source| LoadError::Unreadable { path: path.into(), source })?;
    let find_base = |from: &Layer, base: &str| {
        let path = Path::new(&from.name).with_file_name(base);
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(Layer { name: path.display().to_string(), text })
    };
    let mut scenario = load_layers(Layer { name: path.display().to_string(), text }, &find_base, overrides)?;
    scenario.directory = path.parent().unwrap_or(Path::new("")).into();
    Ok(scenario)
}

/// Loads the scenario `text`, which stands in the file `name` and extends no other, changed by `overrides`.
///
/// # Errors
/// If it says something wrong.
pub fn load(name: &str, text: &str, overrides: &[Override]) -> Result<Scenario, LoadError> {
    let nothing = |_: &Layer, _: &str| Err("there are no files beside this one".into());
    load_layers(Layer { name: name.into(), text: text.into() }, &nothing, overrides)
}

/// Loads the scenario in `top` and the files it extends, changed by `overrides`.
///
/// # Errors
/// If one of them is missing or says something wrong.
pub fn load_layers(top: Layer, find_base: &FindBase<'_>, overrides: &[Override]) -> Result<Scenario, LoadError> {
    let layers = layers::read(top, find_base)?;
    let map = Places::new(&layers);
    let mut document = layers::merge(&layers)?;
    let mut overridden = Vec::new();
    // How many relays there are comes first: the other changes may be about any of them.
    let (counts, others): (Vec<_>, Vec<_>) = overrides.iter().partition(|change| change.sets("count"));
    apply(&counts, &mut document, &mut overridden)?;
    let origins = expand_relays(&mut document).map_err(|complaint| {
        LoadError::Mistakes(vec![complaint.located(|field| place_of(field, &overridden, &map, None))])
    })?;
    apply(&others, &mut document, &mut overridden)?;
    complete_wifi(&mut document);
    let place = |field: &str| place_of(field, &overridden, &map, Some(&origins));
    let mut scenario: Scenario = serde_path_to_error::deserialize(document)
        .map_err(|error| LoadError::Mistakes(vec![field_mistake(&error, place)]))?;
    scenario.name_relays();
    scenario.give_wifi_links();
    scenario.fix_overridden_paths(&overridden);
    let complaints = check::complaints(&scenario);
    if complaints.is_empty() {
        return Ok(scenario);
    }
    let located = complaints.into_iter().map(|complaint| complaint.located(place));
    Err(LoadError::Mistakes(located.collect()))
}

/// Applies `changes`; adds the paths of the fields they set, each with the text of its override.
fn apply(changes: &[&Override], document: &mut Table, overridden: &mut Vec<(String, String)>) -> Result<(), LoadError> {
    for change in changes {
        let paths =
            change.apply(document).map_err(|problem| LoadError::Mistakes(vec![override_mistake(change, problem)]))?;
        overridden.extend(paths.into_iter().map(|path| (path, change.text.clone())));
    }
    Ok(())
}

/// A relay's `wifi` that says something leaves the rest as it is for relays that say nothing.
fn complete_wifi(document: &mut Table) {
    let Ok(defaults) = Table::try_from(Link::wifi()) else { return };
    let relays = document.get_mut("relays").and_then(Value::as_array_mut).into_iter().flatten();
    for wifi in relays.filter_map(|relay| relay.get_mut("wifi")?.as_table_mut()) {
        for (key, value) in &defaults {
            wifi.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}

impl Scenario {
    fn name_relays(&mut self) {
        for (index, relay) in self.relays.iter_mut().enumerate() {
            if relay.name.is_empty() {
                relay.name = format!("relay-{}", index + 1);
            }
        }
    }
}

impl Scenario {
    /// Without a shared channel every relay has a Wi-Fi link of its own.
    fn give_wifi_links(&mut self) {
        if self.wlan.is_none() && self.cooperation.relays != RelayMode::MultiHomed {
            for relay in &mut self.relays {
                relay.wifi.get_or_insert_with(Link::wifi);
            }
        }
    }

    /// Paths on the command line are relative to the working directory, wherever the scenario file is.
    fn fix_overridden_paths(&mut self, overridden: &[(String, String)]) {
        let is_overridden = |field: &str| overridden.iter().any(|(path, _)| path == field);
        let fix = |path: &mut Option<PathBuf>| {
            *path = path.take().map(|path| std::path::absolute(&path).unwrap_or(path));
        };
        if is_overridden("workload.path") {
            fix(&mut self.workload.path);
        }
        for (index, relay) in self.relays.iter_mut().enumerate() {
            for (which, link) in [("cellular", &mut relay.cellular), ("wifi", &mut relay.wifi)] {
                match link.as_mut().map(|link| &mut link.rate) {
                    Some(TextOr::Table(model)) if is_overridden(&format!("relays[{index}].{which}.rate.trace")) => {
                        fix(&mut model.trace);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// An override takes the blame for what it set; the last one wins.
fn place_of(field: &str, overridden: &[(String, String)], map: &Places<'_>, origins: Option<&Origins>) -> Place {
    let blamed = overridden.iter().rev().find(|(path, _)| field.starts_with(path.as_str()) || path.starts_with(field));
    match blamed {
        Some((_, text)) if !field.is_empty() => Place::Override(text.clone()),
        _ => map.place(&origins.map_or_else(|| field.into(), |origins| origins.in_file(field))),
    }
}

fn override_mistake(change: &Override, problem: String) -> Mistake {
    let place = Place::Override(change.text.clone());
    Mistake { place, field: String::new(), problem, remedy: String::new() }
}

fn field_mistake(error: &serde_path_to_error::Error<toml::de::Error>, place: impl Fn(&str) -> Place) -> Mistake {
    let message = error.inner().message();
    let mut field = match error.path().to_string() {
        path if path == "." => String::new(),
        path => path,
    };
    let names = quoted(message);
    if let Some(missing) = message.strip_prefix("missing field").and(names.first()) {
        let dot = if field.is_empty() { "" } else { "." };
        field = format!("{field}{dot}{missing}");
        let remedy = format!("add a line `{missing} = ...` to this section");
        return Mistake { place: place(&field), field, problem: "is missing".into(), remedy };
    }
    let problem = plain(message);
    Mistake { place: place(&field), remedy: remedy(message, &names), field, problem }
}

/// The words between backticks: what serde got, then what it expected.
fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

/// serde's message up to the list of what it expected, which becomes the remedy.
fn plain(message: &str) -> String {
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let end = if unknown { message.find(", expected") } else { None };
    message[..end.unwrap_or(message.len())].replace("variant", "value").replace('`', "\"")
}

fn remedy(message: &str, names: &[&str]) -> String {
    let known = names.get(1..).unwrap_or_default();
    if message.starts_with("unknown") && !known.is_empty() {
        return suggest(names[0], known);
    }
    if message.starts_with("invalid type") && message.contains("expected a string") {
        return "write a text in quotes; a quantity has a unit, like \"10 ms\" or \"3 Mbit/s\"".into();
    }
    let expected = message.rsplit("expected ").next().unwrap_or_default();
    let remedy = match expected.trim() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "write a whole number from 0 on, without quotes",
        "f32" | "f64" => "write a number without quotes, like 1.5",
        "a boolean" => "write true or false, without quotes",
        "a sequence" => "write a list: [ ..., ... ]",
        _ => "",
    };
    remedy.into()
}

/// The nearest of `known` to `given`, or all of them.
fn suggest(given: &str, known: &[&str]) -> String {
    let nearest =
        known.iter().map(|name| (strsim::jaro_winkler(given, name), *name)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((similarity, name)) if similarity > 0.75 => {
            format!("did you mean \"{name}\"? Known: {}", known.join(", "))
        }
        _ => format!("known: {}", known.join(", ")),
    }
}
