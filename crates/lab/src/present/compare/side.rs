//! One of two results to compare: the files of a run or of a sweep.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::measure::results::{FileDigest, Results, Totals};
use crate::run::sweep::{JournalError, ONLY_VARIANT, Record, read_journal};
use crate::run::{inputs, interrupted_after, nothing_arrived};
use crate::scenario::Scenario;

/// The file of a run, in its folder.
const OF_RUN: &str = "results.json";
/// The file of a sweep, in its folder.
const OF_SWEEP: &str = "runs.jsonl";

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One run.
    Run,
    /// A sweep: any number of runs.
    Sweep,
}

/// A run or a sweep, as its files describe it.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub kind: Kind,
    /// The scenario's name.
    pub scenario: String,
    /// Version of the program that made it.
    pub version: String,
    /// The backend: `simulator`, or as options of the command.
    pub backend: String,
    /// Changes by the command line, each in the notation of `--set`.
    pub overrides: Vec<String>,
    /// The settings, as the scenario's file would state them.
    #[serde(skip)]
    pub(super) settings: serde_json::Value,
    /// The files that it depends on.
    #[serde(skip)]
    pub(super) files: Vec<FileDigest>,
    /// The runs.
    #[serde(skip)]
    pub(super) records: Vec<Record>,
}

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum SideError {
    /// The file or folder cannot be read.
    #[error("cannot read {}: {source}\n  help: name the folder that anabranch run or sweep wrote with --out", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The folder has no results.
    #[error("{} has neither {OF_RUN} of a run nor {OF_SWEEP} of a sweep\n  help: name a folder that anabranch run or sweep wrote with --out", path.display())]
    Nothing {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has the results of a run and those of a sweep.
    #[error("{0} has results of a run and of a sweep\n  help: name one of them: {0}/{OF_RUN} or {0}/{OF_SWEEP}", path.display())]
    Both {
        /// The folder.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} holds no results: {problem}\n  help: name {OF_RUN} of a run, {OF_SWEEP} of a sweep, or their folder", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The sweep's file is damaged.
    #[error("{0}\n  help: name the results of another run or sweep, or repeat this one")]
    Damaged(JournalError),
    /// No run is finished yet.
    #[error("{} holds no finished run yet\n  help: run the sweep to its end", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Side {
    /// Reads the results at `path`: those of a run (`results.json`, or what `run --json` printed) or of a sweep
    /// (`runs.jsonl`), or the folder of either.
    ///
    /// # Errors
    /// If they cannot be read, or are something else.
    pub fn read(path: &Path) -> Result<Self, SideError> {
        let file = if path.is_dir() { within(path)? } else { path.to_path_buf() };
        let unreadable = |source| SideError::Unreadable { path: file.clone(), source };
        let octets = inputs::read(&file).map_err(unreadable)?;
        if is_sweep(&octets) {
            return Self::of_sweep(file, &octets);
        }
        let text = inputs::text(octets).map_err(unreadable)?;
        Self::of_run(file, &text)
    }

    fn of_sweep(path: PathBuf, octets: &[u8]) -> Result<Self, SideError> {
        let (manifest, records) = read_journal(&path, octets).map_err(SideError::Damaged)?;
        if records.is_empty() {
            return Err(SideError::Empty { path });
        }
        let backend = if manifest.world.is_empty() { "simulator".into() } else { manifest.world };
        Ok(Self {
            path,
            kind: Kind::Sweep,
            scenario: manifest.scenario,
            version: manifest.version,
            backend,
            overrides: manifest.overrides,
            settings: manifest.settings,
            files: manifest.files,
            records,
        })
    }

    fn of_run(path: PathBuf, text: &str) -> Result<Self, SideError> {
        let other = |error: serde_json::Error| SideError::Other { path: path.clone(), problem: error.to_string() };
        let results: Results = serde_json::from_str(text).map_err(other)?;
        let scenario: Scenario = serde_json::from_value(results.manifest.content.clone()).map_err(other)?;
        let variant = results.manifest.variant.clone().unwrap_or_else(|| ONLY_VARIANT.into());
        let record = Record {
            faults: fault(&scenario, &results.totals).into_iter().collect(),
            ..Record::measured(variant, results.manifest.seed, &scenario, &results.reproducible())
        };
        let manifest = results.manifest;
        let backend = manifest.backend_options();
        Ok(Self {
            path,
            kind: Kind::Run,
            scenario: manifest.scenario,
            version: manifest.version,
            backend,
            overrides: manifest.overrides,
            settings: manifest.content,
            files: manifest.files,
            records: vec![record],
        })
    }
}

/// What a run of `scenario` with these totals took for its fault, as far as they tell.
fn fault(scenario: &Scenario, totals: &Totals) -> Option<String> {
    if totals.interrupted {
        return Some(interrupted_after(totals.duration_s));
    }
    if scenario.workload.ends() {
        return totals.fault(scenario.duration, None);
    }
    // Runs in which nothing arrived do not count as completed, either.
    nothing_arrived(scenario, totals)
        .or_else(|| (!totals.completed).then(|| format!("its connections ended after {:.1} s", totals.duration_s)))
        .or_else(|| totals.difference())
}

/// The file of results within `folder`.
fn within(folder: &Path) -> Result<PathBuf, SideError> {
    let [of_run, of_sweep] = [OF_RUN, OF_SWEEP].map(|name| folder.join(name));
    match (of_run.exists(), of_sweep.exists()) {
        (true, false) => Ok(of_run),
        (false, true) => Ok(of_sweep),
        (true, true) => Err(SideError::Both { path: folder.into() }),
        (false, false) => Err(SideError::Nothing { path: folder.into() }),
    }
}

/// Returns whether a file begins with the manifest of a sweep: results of a run have it in a field.
fn is_sweep(octets: &[u8]) -> bool {
    octets.starts_with(b"{\"scenario\":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sweep::{Manifest, Plan};
    use crate::scenario::load_file;

    #[test]
    fn what_a_lasting_run_took_for_a_fault_is_one_in_its_results() {
        let text = "name = \"x\"\nduration = \"10 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
                    cellular = { rate = \"1 Mbit/s\", delay = \"5 ms\" }\n";
        let scenario = crate::scenario::load("x.toml", text, &[]).unwrap();
        let whole = Totals { completed: true, intact: true, delivered_bytes: 9, duration_s: 10.0, ..Totals::default() };
        assert_eq!(fault(&scenario, &whole), None);
        let said = |totals: Totals| fault(&scenario, &totals).unwrap();
        let nothing = Totals { completed: false, intact: false, delivered_bytes: 0, ..whole.clone() };
        assert!(said(nothing).contains("nothing arrived within 10 s"));
        let interrupted = Totals { completed: false, interrupted: true, duration_s: 2.0, ..whole.clone() };
        assert!(said(interrupted).contains("interrupted after 2.0 s"));
        let given_up = Totals { completed: false, duration_s: 4.0, ..whole.clone() };
        assert!(said(given_up).contains("ended after 4.0 s"));
        assert!(said(Totals { intact: false, ..whole }).contains("differ"));
    }

    #[test]
    fn runs_name_their_backend_as_sweeps_do() {
        let text = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
                    cellular = { rate = \"1 Mbit/s\", delay = \"5 ms\" }\n";
        let load = |overrides: &[_]| crate::scenario::load("x.toml", text, overrides);
        let results = crate::run::run(&load(&[]).unwrap(), None, &mut |_| {}).unwrap().results;
        let plan = Plan::new(load, &[], None).unwrap();
        let record = serde_json::to_string(&Record::default()).unwrap();
        for (backend, world) in [
            ("simulator", ""),
            ("ns3", "--backend ns3"),
            ("linux", "--backend linux"),
            ("linux", "--backend linux --source engine"),
        ] {
            let mut run = results.clone();
            (run.manifest.backend, run.manifest.world) = (backend.into(), world.into());
            let run = Side::of_run("r".into(), &run.to_json()).unwrap();
            let manifest = Manifest::new(&Plan { world: world.into(), ..plan.clone() });
            let manifest = serde_json::to_string(&manifest).unwrap();
            let sweep = Side::of_sweep("s".into(), format!("{manifest}\n{record}\n").as_bytes()).unwrap();
            assert_eq!(run.backend, sweep.backend);
        }
        // As earlier versions wrote them.
        let mut earlier = results;
        earlier.manifest.backend = "ns3".into();
        assert_eq!(Side::of_run("r".into(), &earlier.to_json()).unwrap().backend, "--backend ns3");
    }

    /// Results state the scenario as JSON.
    #[test]
    fn every_shipped_scenario_is_read_back_from_results() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"));
        let mut read = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let plan = Plan::new(|overrides| load_file(&path, overrides), &[], None).unwrap();
            for case in &plan.cases {
                let content = serde_json::to_value(&case.scenario).unwrap();
                let again: Scenario =
                    serde_json::from_value(content.clone()).unwrap_or_else(|error| panic!("{path:?}: {error}"));
                assert_eq!(serde_json::to_value(&again).unwrap(), content, "{path:?}");
            }
            read += 1;
        }
        assert!(read > 20, "{read}");
    }
}
