//! The scenarios that ship, embedded in the command so that they run from anywhere.

use std::path::Path;

use include_dir::{Dir, include_dir};
use lab::scenario::{self, LoadError, Override, Scenario, ScenarioFile};

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
            Self::File(file) => file.load(overrides, &text_at),
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
    let scenario = scenario::load_shipped(&format!("{name}.toml"), text, overrides, &text_at)?;
    Ok(Scenario { file: name.into(), ..scenario })
}

/// The text of the shipped file at `path`.
fn text_at(path: &Path) -> Option<&'static str> {
    SCENARIOS.get_file(path)?.contents_utf8()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From any folder, by the names that `run` knows; a file beside the scenario comes first.
    #[test]
    fn a_file_may_extend_what_ships() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        let loaded = |extends: &str| {
            write("mine.toml", &format!("extends = {extends}\nname = \"mine\"\n"));
            load(&folder.path().join("mine.toml"), &[]).map_err(|error| error.to_string())
        };
        for extends in ["\"demo\"", "\"demo.toml\"", "[\"thesis-5.4\", \"base/linux\"]"] {
            let scenario = loaded(extends).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((scenario.name.as_str(), scenario.relays.is_empty()), ("mine", false), "{extends}");
        }
        let linux = loaded("[\"demo\", \"base/linux.toml\"]").unwrap();
        assert_eq!(linux.connection.scheduler, "linux");
        write("base/linux.toml", "connection = { scheduler = \"redundant\" }");
        std::fs::create_dir(folder.path().join("demo")).unwrap();
        assert_eq!(loaded("[\"demo\", \"base/linux.toml\"]").unwrap().connection.scheduler, "redundant");
        write("own/between.toml", "extends = [\"demo\", \"base/linux.toml\"]");
        assert_eq!(loaded("\"own/between.toml\"").unwrap().connection.scheduler, "linux");
        let error = loaded("\"demmo\"").unwrap_err();
        assert!(error.contains("cannot read") && error.contains("of a scenario that ships"), "{error}");
    }

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
