//! Turns a file and overrides into a [`Scenario`], or into mistakes with their places.

use core::ptr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::{Table, Value};
use units::ByteCount;

use super::check::Complaint;
use super::expand::{Origins, expand_relays};
use super::field_path::{FieldPath, is_within};
use super::layers::{self, FindBase, Layer, Places, overlay};
use super::mistake::{LoadError, Mistake, Place};
use super::overrides::Override;
use super::{Link, RelayMode, Scenario, TextOr, check, shape};

/// Maximum size of a scenario file.
const FILE_BYTES_MAX: u64 = 16_000_000;

/// The texts of scenarios that ship with the program, by their path: `base/linux.toml`.
pub type Library = dyn Fn(&Path) -> Option<&'static str>;

/// Loads the scenario file at `path`, changed by `overrides`. Files that it extends are relative to it.
///
/// # Errors
/// If the file cannot be read or is invalid.
pub fn load_file(path: &Path, overrides: &[Override]) -> Result<Scenario, LoadError> {
    ScenarioFile::read(path)?.load(overrides, &|_| None)
}

/// Loads the scenario of the `library` at `path`, whose text is `text`, changed by `overrides`.
///
/// # Errors
/// If it is invalid.
pub fn load_shipped(path: &str, text: &str, overrides: &[Override], library: &Library) -> Result<Scenario, LoadError> {
    let top = Layer { name: path.into(), text: text.into(), ships: true };
    load_layers(top, &|from, base| find_base(from, base, library), overrides)
}

/// The file that `from` names `base`: beside it, or else in the `library`, where names may lack `.toml`.
fn find_base(from: &Layer, base: &str, library: &Library) -> Result<Layer, String> {
    let shipped = |path: &Path| {
        let complete = PathBuf::from(format!("{}.toml", path.display()));
        let found = [path, &complete].into_iter().find_map(|path| Some((path, library(path)?)));
        found.map(|(path, text)| Layer { name: path.display().to_string(), text: text.into(), ships: true })
    };
    let path = Path::new(&from.name).with_file_name(base);
    if from.ships {
        return shipped(&path).ok_or_else(|| format!("there is no shipped scenario {}", path.display()));
    }
    // As on the command line, a folder of that name does not hide the scenario.
    let is_beside = path.exists() && !path.is_dir();
    if let Some(layer) = shipped(Path::new(base)).filter(|_| !is_beside) {
        return Ok(layer);
    }
    let text = read(&path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
    Ok(Layer { name: path.display().to_string(), text, ships: false })
}

/// A scenario file that can be loaded several times with different changes: a pipe can be read only once.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    path: PathBuf,
    text: String,
}

impl ScenarioFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let text = read(path).map_err(|why| LoadError::Unreadable { path: path.into(), why })?;
        Ok(Self { path: path.into(), text })
    }

    /// Loads its scenario, changed by `overrides`. Files that it extends are relative to it; what is not there may be
    /// in the `library`.
    ///
    /// # Errors
    /// If it is invalid, or files that it extends cannot be read.
    pub fn load(&self, overrides: &[Override], library: &Library) -> Result<Scenario, LoadError> {
        let top = Layer { name: self.path.display().to_string(), text: self.text.clone(), ships: false };
        let mut scenario = load_layers(top, &|from, base| find_base(from, base, library), overrides)?;
        scenario.directory = self.path.parent().unwrap_or(Path::new("")).into();
        Ok(scenario)
    }
}

/// Returns the text in the file at `path`, or explains why there is none. Refuses devices and pipes, which may never
/// end.
fn read(path: &Path) -> Result<String, String> {
    let mut octets = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut octets).map_err(|error| error.to_string())?;
    if octets.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {}, too large for a scenario", ByteCount(FILE_BYTES_MAX)));
    }
    String::from_utf8(octets).map_err(|_| "it is not UTF-8 text".into())
}

/// Loads the scenario `text`, which comes from the file `name` and extends no other, changed by `overrides`.
///
/// # Errors
/// If it is invalid.
pub fn load(name: &str, text: &str, overrides: &[Override]) -> Result<Scenario, LoadError> {
    let nothing = |_: &Layer, _: &str| Err("there are no other files".into());
    load_layers(Layer { name: name.into(), text: text.into(), ships: false }, &nothing, overrides)
}

/// Loads the scenario in `top` and the files it extends, changed by `overrides`.
///
/// # Errors
/// If one of them is missing or invalid: all mistakes that can be told apart.
pub fn load_layers(top: Layer, find_base: &FindBase<'_>, overrides: &[Override]) -> Result<Scenario, LoadError> {
    let layers = layers::read(top, find_base)?;
    let changes: Vec<&Override> = overrides.iter().collect();
    let (scenario, blame) = read_scenario(&layers, &changes)?;
    let complaints = check::complaints(&scenario);
    if complaints.is_empty() {
        return Ok(scenario);
    }
    let located = |complaint: Complaint| match cause(&complaint, &blame, &layers, &changes) {
        None => blame.located(complaint),
        Some(change) => {
            let mut mistake = complaint.located(|_| blame.place_of_override(change));
            if scenario.has(&mistake.field) {
                mistake.field += " (default)";
            }
            mistake
        }
    };
    Err(LoadError::mistakes(complaints.into_iter().map(located).collect()))
}

/// The change without which `complaint` would not exist, if neither a file nor a change sets its field: what it is by
/// default contradicts that change.
fn cause<'a>(
    complaint: &Complaint,
    blame: &Blame<'_>,
    layers: &[Layer],
    changes: &[&'a Override],
) -> Option<&'a Override> {
    let field = complaint.field();
    let helps = |left_out: &&&Override| {
        let others: Vec<&Override> = changes.iter().copied().filter(|change| !ptr::eq(*change, **left_out)).collect();
        read_scenario(layers, &others)
            .is_ok_and(|(scenario, _)| check::complaints(&scenario).iter().all(|other| other.field() != field))
    };
    if blame.is_written(field) { None } else { changes.iter().rev().find(helps).copied() }
}

/// The scenario in `layers`, changed by `overrides`, before its values are checked.
fn read_scenario<'a>(layers: &'a [Layer], overrides: &[&Override]) -> Result<(Scenario, Blame<'a>), LoadError> {
    let mut document = layers::merge(layers)?;
    let mut blame = Blame { map: Places::new(layers), overridden: Vec::new(), origins: Origins::default() };
    let mut found = Vec::new();
    // Changes to the number of relays come first, because the others may refer to any relay.
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
    scenario.fix_paths(&blame, layers);
    scenario.file.clone_from(&layers[0].name);
    let typed = overrides.iter().filter(|change| change.stands_at().is_none());
    scenario.overrides = typed.map(|change| change.text.clone()).collect();
    Ok((scenario, blame))
}

/// Attributes mistakes to the places that set the fields.
struct Blame<'a> {
    map: Places<'a>,
    /// The fields that overrides set, in chronological order.
    overridden: Vec<(String, Override)>,
    origins: Origins,
}

impl Blame<'_> {
    /// Applies `changes`; returns the mistakes in them.
    fn apply(&mut self, changes: &[&Override], document: &mut Table) -> Vec<Mistake> {
        let mut found = Vec::new();
        for change in changes {
            let applied = match change.is_of("extends") {
                true => Err("files are merged before fields are changed".into()),
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
            true => "write a file that extends the other file",
            false => "",
        };
        let place = self.place_of_override(change);
        Mistake { place, field: String::new(), problem, remedy: remedy.into(), context: String::new() }
    }

    fn place_of_override(&self, change: &Override) -> Place {
        match change.stands_at() {
            None => Place::Override(change.text.clone()),
            // Variants and grids may themselves come from the command line.
            Some(field) => match self.setter(field, |change| change.stands_at().is_none()) {
                Some(change) => Place::Override(change.text.clone()),
                None => self.map.place(field),
            },
        }
    }

    /// The last override for which `wanted` holds that set `field` or part of it.
    fn setter(&self, field: &str, wanted: fn(&Override) -> bool) -> Option<&Override> {
        let sets = |path: &str| !field.is_empty() && (is_within(field, path) || is_within(path, field));
        let mut latest = self.overridden.iter().rev();
        latest.find(|(path, change)| sets(path) && wanted(change)).map(|(_, change)| change)
    }

    /// The place of `field`: that of the last override that set it, or its place in the file.
    fn place(&self, field: &str) -> Place {
        match self.setter(field, |_| true) {
            Some(change) => self.place_of_override(change),
            None => self.map.place(&self.origins.in_file(field)),
        }
    }

    /// Returns whether a file or a change sets `field`, or part of it.
    fn is_written(&self, field: &str) -> bool {
        self.setter(field, |_| true).is_some() || self.map.contains(&self.origins.in_file(field))
    }

    fn located(&self, complaint: Complaint) -> Mistake {
        complaint.located(|field| self.place(field))
    }

    /// The file whose value `field` has, by index.
    fn layer(&self, field: &str) -> usize {
        let last = self.overridden.iter().rev().find(|(path, _)| is_within(field, path));
        let stands_at = last.and_then(|(_, change)| change.stands_at());
        self.map.layer(&stands_at.map_or_else(|| self.origins.in_file(field), String::from))
    }

    /// Returns whether the value of `field` comes from the command line.
    fn is_typed(&self, field: &str) -> bool {
        let last = self.overridden.iter().rev().find(|(path, _)| is_within(field, path));
        last.is_some_and(|(_, change)| match change.stands_at() {
            None => true,
            // A variant or a grid that was typed itself.
            Some(at) => self.setter(at, |change| change.stands_at().is_none()).is_some(),
        })
    }
}

/// Completes every relay's `wifi` table with the defaults for relays without one.
fn complete_wifi(document: &mut Table) {
    let Ok(defaults) = Table::try_from(Link::wifi()) else { return };
    let relays = document.get_mut("relays").and_then(Value::as_array_mut).into_iter().flatten();
    for wifi in relays.filter_map(|relay| relay.get_mut("wifi")?.as_table_mut()) {
        let given = core::mem::replace(wifi, defaults.clone());
        overlay(wifi, given);
    }
}

impl Scenario {
    /// Returns whether `field` has a value.
    fn has(&self, field: &str) -> bool {
        let path = field.parse::<FieldPath>();
        Value::try_from(self).is_ok_and(|value| path.is_ok_and(|path| path.find(&value).is_some()))
    }

    fn name_relays(&mut self) {
        for (index, relay) in self.relays.iter_mut().enumerate() {
            if relay.name.is_empty() {
                relay.name = format!("relay-{}", index + 1);
            }
        }
    }
}

impl Scenario {
    /// The scenario with `changes`, except those of the number of relays, which has been settled, and those of relays that
    /// it does not have. `None` if that is no scenario; whether its values make sense is not checked.
    pub(crate) fn changed(&self, changes: &[Override]) -> Option<Self> {
        let mut bare = self.clone();
        // Which relays have a Wi-Fi link by default depends on other settings.
        bare.relays.iter_mut().for_each(|relay| relay.wifi = relay.wifi.take().filter(|wifi| *wifi != Link::wifi()));
        let mut document = Table::try_from(&bare).ok()?;
        for change in changes.iter().filter(|change| !change.counts_relays()) {
            let _ = change.apply(&mut document);
        }
        complete_wifi(&mut document);
        let mut scenario: Self = document.try_into().ok()?;
        scenario.name_relays();
        scenario.give_wifi_links();
        Some(scenario)
    }

    /// Gives every relay a Wi-Fi link of its own if there is no shared channel.
    fn give_wifi_links(&mut self) {
        if self.wlan.is_none() && self.cooperation.relays != RelayMode::MultiHomed {
            for relay in &mut self.relays {
                relay.wifi.get_or_insert_with(Link::wifi);
            }
        }
    }

    /// Makes paths from the command line relative to the working directory, and those from a file that the scenario
    /// extends to that file, instead of to the scenario file.
    fn fix_paths(&mut self, blame: &Blame<'_>, layers: &[Layer]) {
        let fix = |path: &mut Option<PathBuf>, field: &str| {
            *path = path.take().map(|path| match blame.is_typed(field) {
                true => std::path::absolute(&path).unwrap_or(path),
                false => folder(&layers[0], &layers[blame.layer(field)]).join(path),
            });
        };
        fix(&mut self.workload.path, "workload.path");
        let links = self.relays.iter_mut().enumerate().flat_map(|(index, relay)| {
            [("cellular", &mut relay.cellular), ("wifi", &mut relay.wifi)]
                .map(|(hop, link)| (format!("relays[{index}].{hop}"), link))
        });
        for (field, link) in links.chain([("bottleneck".into(), &mut self.bottleneck)]) {
            let Some(link) = link else { continue };
            for (name, rate) in [("rate", &mut link.rate), ("uplink.rate", &mut link.uplink.rate)] {
                if let TextOr::Table(model) = rate {
                    fix(&mut model.trace, &format!("{field}.{name}.trace"));
                }
            }
        }
    }
}

/// The folder of the file `of`, relative to that of `top` where it can be.
fn folder<'a>(top: &'a Layer, of: &'a Layer) -> &'a Path {
    let [top, of] = [top, of].map(|layer| Path::new(&layer.name).parent().unwrap_or(Path::new("")));
    of.strip_prefix(top).unwrap_or(of)
}
