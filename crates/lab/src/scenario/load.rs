//! From a file and overrides to a [`Scenario`], or to mistakes that say where they stand.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::{Table, Value};
use units::ByteCount;

use super::check::Complaint;
use super::expand::{Origins, expand_relays};
use super::field_path::is_within;
use super::layers::{self, FindBase, Layer, Places, overlay};
use super::mistake::{LoadError, Mistake, Place};
use super::overrides::Override;
use super::{Link, RelayMode, Scenario, TextOr, check, shape};

/// Longest scenario file.
const FILE_BYTES_MAX: u64 = 16_000_000;

/// Loads the scenario file at `path`, changed by `overrides`. What it extends is named relative to it.
///
/// # Errors
/// If the file cannot be read or says something wrong.
pub fn load_file(path: &Path, overrides: &[Override]) -> Result<Scenario, LoadError> {
    ScenarioFile::read(path)?.load(overrides)
}

/// A scenario file that may be loaded several times, changed each time: a pipe can be read only once.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    path: PathBuf,
    text: String,
}

impl ScenarioFile {
    /// The file at `path`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let text = read(path).map_err(|why| LoadError::Unreadable { path: path.into(), why })?;
        Ok(Self { path: path.into(), text })
    }

    /// Its scenario, changed by `overrides`. What it extends is named relative to it.
    ///
    /// # Errors
    /// If it says something wrong, or what it extends cannot be read.
    pub fn load(&self, overrides: &[Override]) -> Result<Scenario, LoadError> {
        let find_base = |from: &Layer, base: &str| {
            let path = Path::new(&from.name).with_file_name(base);
            let text = read(&path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
            Ok(Layer { name: path.display().to_string(), text })
        };
        let top = Layer { name: self.path.display().to_string(), text: self.text.clone() };
        let mut scenario = load_layers(top, &find_base, overrides)?;
        scenario.directory = self.path.parent().unwrap_or(Path::new("")).into();
        Ok(scenario)
    }
}

/// The text in the file at `path`, or in words why there is none. Devices and pipes may never end.
fn read(path: &Path) -> Result<String, String> {
    let mut octets = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut octets).map_err(|error| error.to_string())?;
    if octets.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {}, and no scenario", ByteCount(FILE_BYTES_MAX)));
    }
    String::from_utf8(octets).map_err(|_| "it is no text (UTF-8)".into())
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
/// If one of them is missing or says something wrong: all mistakes that can be told apart.
pub fn load_layers(top: Layer, find_base: &FindBase<'_>, overrides: &[Override]) -> Result<Scenario, LoadError> {
    let layers = layers::read(top, find_base)?;
    let mut document = layers::merge(&layers)?;
    let mut blame = Blame { map: Places::new(&layers), overridden: Vec::new(), origins: Origins::default() };
    let mut found = Vec::new();
    // How many relays there are comes first: the other changes may be about any of them.
    let (counts, others): (Vec<_>, Vec<_>) = overrides.iter().partition(|change| change.counts_relays());
    found.extend(blame.apply(&counts, &mut document));
    let (origins, complaints) = expand_relays(&mut document);
    found.extend(complaints.into_iter().map(|complaint| blame.located(complaint)));
    blame.origins = origins;
    found.extend(blame.apply(&others, &mut document));
    complete_wifi(&mut document);
    found.extend(shape::complaints(&document).into_iter().map(|complaint| blame.located(complaint)));
    if !found.is_empty() {
        return Err(LoadError::mistakes(found));
    }
    let mut scenario: Scenario = serde_path_to_error::deserialize(document)
        .map_err(|error| LoadError::mistakes(vec![blame.located(shape::unforeseen(&error))]))?;
    scenario.name_relays();
    scenario.give_wifi_links();
    scenario.fix_overridden_paths(&blame);
    scenario.file.clone_from(&layers[0].name);
    let typed = overrides.iter().filter(|change| change.stands_at().is_none());
    scenario.overrides = typed.map(|change| change.text.clone()).collect();
    let complaints = check::complaints(&scenario);
    if complaints.is_empty() {
        return Ok(scenario);
    }
    Err(LoadError::mistakes(complaints.into_iter().map(|complaint| blame.located(complaint)).collect()))
}

/// Who is to blame for what a field says.
struct Blame<'a> {
    map: Places<'a>,
    /// The fields that overrides set, in the order in which they did.
    overridden: Vec<(String, Override)>,
    origins: Origins,
}

impl Blame<'_> {
    /// Applies `changes`; gives what is wrong with them.
    fn apply(&mut self, changes: &[&Override], document: &mut Table) -> Vec<Mistake> {
        let mut found = Vec::new();
        for change in changes {
            let applied = match change.is_of("extends") {
                true => Err("files are put together before fields are changed".into()),
                false => change.apply(document),
            };
            match applied {
                Ok(paths) => self.overridden.extend(paths.into_iter().map(|path| (path, (*change).clone()))),
                Err(problem) => found.push(self.refused(change, problem)),
            }
        }
        found
    }

    fn refused(&self, change: &Override, problem: String) -> Mistake {
        let remedy = match change.is_of("extends") {
            true => "write a file that extends the other one",
            false => "",
        };
        let place = self.place_of_override(change);
        Mistake { place, field: String::new(), problem, remedy: remedy.into(), context: String::new() }
    }

    fn place_of_override(&self, change: &Override) -> Place {
        match change.stands_at() {
            None => Place::Override(change.text.clone()),
            // Variants and grids may come from the command line themselves.
            Some(field) => match self.setter(field, |change| change.stands_at().is_none()) {
                Some(change) => Place::Override(change.text.clone()),
                None => self.map.place(field),
            },
        }
    }

    /// The last override that set `field` or something of it, of those that are `wanted`.
    fn setter(&self, field: &str, wanted: fn(&Override) -> bool) -> Option<&Override> {
        let sets = |path: &str| !field.is_empty() && (is_within(field, path) || is_within(path, field));
        let mut latest = self.overridden.iter().rev();
        latest.find(|(path, change)| sets(path) && wanted(change)).map(|(_, change)| change)
    }

    /// An override takes the blame for what it set; the last one wins.
    fn place(&self, field: &str) -> Place {
        match self.setter(field, |_| true) {
            Some(change) => self.place_of_override(change),
            None => self.map.place(&self.origins.in_file(field)),
        }
    }

    fn located(&self, complaint: Complaint) -> Mistake {
        complaint.located(|field| self.place(field))
    }

    /// Whether the command line says what stands at `field`.
    fn is_typed(&self, field: &str) -> bool {
        let last = self.overridden.iter().rev().find(|(path, _)| is_within(field, path));
        last.is_some_and(|(_, change)| change.stands_at().is_none())
    }
}

/// A relay's `wifi` that says something leaves the rest as it is for relays that say nothing.
fn complete_wifi(document: &mut Table) {
    let Ok(defaults) = Table::try_from(Link::wifi()) else { return };
    let relays = document.get_mut("relays").and_then(Value::as_array_mut).into_iter().flatten();
    for wifi in relays.filter_map(|relay| relay.get_mut("wifi")?.as_table_mut()) {
        let given = core::mem::replace(wifi, defaults.clone());
        overlay(wifi, given);
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
    fn fix_overridden_paths(&mut self, blame: &Blame<'_>) {
        let fix = |path: &mut Option<PathBuf>| {
            *path = path.take().map(|path| std::path::absolute(&path).unwrap_or(path));
        };
        if blame.is_typed("workload.path") {
            fix(&mut self.workload.path);
        }
        let links = self.relays.iter_mut().enumerate().flat_map(|(index, relay)| {
            [("cellular", &mut relay.cellular), ("wifi", &mut relay.wifi)]
                .map(|(hop, link)| (format!("relays[{index}].{hop}"), link))
        });
        for (field, link) in links.chain([("bottleneck".into(), &mut self.bottleneck)]) {
            match link.as_mut().map(|link| &mut link.rate) {
                Some(TextOr::Table(model)) if blame.is_typed(&format!("{field}.rate.trace")) => fix(&mut model.trace),
                _ => {}
            }
        }
    }
}
