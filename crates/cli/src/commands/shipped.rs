//! The scenarios that ship, embedded in the command so that they run from anywhere.

use std::path::Path;

use include_dir::{Dir, include_dir};
use lab::scenario::{self, Layer, LoadError, Override, Scenario, ScenarioFile};

static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// Returns names and contents of all scenarios that can be run by name, sorted.
pub fn all() -> Vec<(&'static str, &'static str)> {
    let files = SCENARIOS.files().filter(|file| file.path().extension().is_some_and(|extension| extension == "toml"));
    let mut found: Vec<_> =
        files.filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?))).collect();
    found.sort_unstable();
    found
}

/// A scenario that was found and can be loaded repeatedly.
pub enum Found {
    /// A scenario in a file.
    File(ScenarioFile),
    /// An embedded scenario: its name and its text.
    Shipped(&'static str, &'static str),
}

impl Found {
    /// Loads the scenario, changed by `overrides`.
    pub fn load(&self, overrides: &[Override]) -> Result<Scenario, LoadError> {
        match self {
            Self::File(file) => file.load(overrides),
            Self::Shipped(name, text) => load_shipped(name, text, overrides),
        }
    }
}

/// Loads the scenario that [`find`] returns.
pub fn load(path: &Path, overrides: &[Override]) -> Result<Scenario, LoadError> {
    find(path)?.load(overrides)
}

/// Finds the file at `path`, or the shipped scenario of that name if there is no such file. A folder of that name, such
/// as one with results, does not hide the scenario.
pub fn find(path: &Path) -> Result<Found, LoadError> {
    if path.exists() && !path.is_dir() {
        return ScenarioFile::read(path).map(Found::File);
    }
    let name = path.to_str().and_then(|name| all().into_iter().find(|(shipped, _)| *shipped == name));
    match name {
        Some((name, text)) => Ok(Found::Shipped(name, text)),
        None if is_file_name(path) => ScenarioFile::read(path).map(Found::File),
        None => Err(LoadError::unknown(&path.to_string_lossy(), all().into_iter().map(|(shipped, _)| shipped))),
    }
}

/// Returns whether `path` is meant as a file, not as a name.
fn is_file_name(path: &Path) -> bool {
    path.components().count() > 1 || path.extension().is_some_and(|extension| extension == "toml")
}

/// Loads a shipped scenario.
pub fn load_shipped(name: &str, text: &str, overrides: &[Override]) -> Result<Scenario, LoadError> {
    let top = Layer { name: format!("{name}.toml"), text: text.into() };
    let find_base = |from: &Layer, base: &str| {
        let path = Path::new(&from.name).with_file_name(base);
        let file = SCENARIOS.get_file(&path).and_then(include_dir::File::contents_utf8);
        let text = file.ok_or_else(|| format!("there is no shipped scenario {}", path.display()))?;
        Ok(Layer { name: path.display().to_string(), text: text.into() })
    };
    let scenario = scenario::load_layers(top, &find_base, overrides)?;
    Ok(Scenario { file: name.into(), ..scenario })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_ships_loads() {
        let names: Vec<&str> = all().iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&"demo") && names.contains(&"thesis-4.3") && names.len() > 50, "{names:?}");
        for (name, text) in all() {
            let scenario = load_shipped(name, text, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.name, name);
            assert!(!scenario.description.is_empty(), "{name} says nothing");
        }
    }
}
