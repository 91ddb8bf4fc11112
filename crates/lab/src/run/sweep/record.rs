//! The record of one run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::build::this_build;
use super::{Case, Plan};
use crate::measure::integrity::hexadecimal;
use crate::measure::results::{FileDigest, Results};
use crate::measure::{Course, goodput_points_bps, values};
use crate::run::{Run, inputs};
use crate::scenario::Scenario;

/// Identifies what a journal belongs to: its first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of everything that the runs depend on, except their seeds.
    pub content: String,
    /// Version of this program.
    pub version: String,
    /// Changes by the command line, each in the notation of `--set`.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Backend of the runs, in the form of the command line; empty for the simulator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub world: String,
    /// The whole scenario, with overrides and defaults filled in, without a variant or a point of the grid; null if
    /// unknown.
    #[serde(default)]
    pub settings: serde_json::Value,
    /// The files that any of the cases names, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDigest>,
}

/// The record of one run: one line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// The seed.
    pub seed: u64,
    /// Every number of the totals and of the papers' metrics by name; the latter with prefix `analysis.` or `whole.`.
    /// Numbers of a relay's own traffic with prefix `analysis.` are over the windows of the analysis, the others over
    /// the run.
    pub values: BTreeMap<String, f64>,
    /// Its course over time; empty if it could not begin.
    #[serde(default)]
    pub course: Course,
    /// G1 at the monitor points in the window of analysis; null where no unit was completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goodput_points_bps: Vec<Option<f64>>,
    /// Faults of the run.
    pub faults: Vec<String>,
    /// The build of this program that made it; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build: String,
    /// SHA-256 of what it depends on except its seed; empty until a journal takes it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
}

impl Manifest {
    /// Creates the manifest of a plan.
    pub fn new(plan: &Plan) -> Self {
        let mut digest = Sha256::new();
        for case in &plan.cases {
            let mut scenario = case.scenario.clone();
            scenario.seed = 0;
            let content = serde_json::to_vec(&scenario).expect("scenarios have text keys and finite numbers");
            digest.update(case.variant.as_bytes());
            digest.update(content);
        }
        // Scenarios without files keep the digest from before files were included.
        for path in plan.cases.iter().flat_map(|case| inputs::files(&case.scenario)).collect::<BTreeSet<_>>() {
            digest.update(inputs::digest(&path).unwrap_or_default().finalize());
        }
        let content = hexadecimal(digest);
        let overrides = plan.overrides.iter().map(|change| change.text.clone()).collect();
        let (scenario, version) = (plan.scenario.name.clone(), env!("CARGO_PKG_VERSION").into());
        let settings = serde_json::to_value(&plan.scenario).expect("scenarios have text keys and finite numbers");
        Self { scenario, content, version, overrides, world: plan.world.clone(), settings, files: files(plan) }
    }
}

fn files(plan: &Plan) -> Vec<FileDigest> {
    let named: BTreeMap<PathBuf, PathBuf> = plan.cases.iter().flat_map(|case| inputs::named(&case.scenario)).collect();
    named.iter().map(|(path, place)| inputs::file_digest(path, place)).collect()
}

impl Record {
    /// Creates the record of a run of `case`.
    pub fn new(case: &Case, seed: u64, run: &Run) -> Self {
        Self {
            point: case.point.clone(),
            faults: run.faults.clone(),
            build: this_build().into(),
            ..Self::measured(case.variant.clone(), seed, &case.scenario, &run.results.reproducible())
        }
    }

    /// What a run of the `variant` that is `scenario` measured, without faults and without the build that made it.
    pub(crate) fn measured(variant: String, seed: u64, scenario: &Scenario, results: &Results) -> Self {
        Self {
            variant,
            seed,
            values: values(scenario, results),
            course: Course::new(scenario, &results.series),
            goodput_points_bps: goodput_points_bps(scenario, results),
            ..Self::default()
        }
    }

    /// Creates the record of a run of `case` that could not begin.
    pub fn failed(case: &Case, seed: u64, why: String) -> Self {
        let (variant, point) = (case.variant.clone(), case.point.clone());
        Self { variant, point, seed, faults: vec![why], build: this_build().into(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load_file;

    /// If the column of a relay without a subflow were missing, a mean over runs would be one over those in which it
    /// had one.
    #[test]
    fn a_relay_without_a_subflow_has_carried_nothing() {
        let throughputs = |workload: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"2 s\"\nworkload = {{ kind = \"{workload}\" }}\n\
                 connection = {{ mptcp = false }}\n[[relays]]\ncount = 2\n\
                 cellular = {{ rate = \"1 Mbit/s\", delay = \"5 ms\" }}\n"
            );
            let scenario = crate::scenario::load("x.toml", &text, &[]).unwrap();
            let results = crate::run::run(&scenario, None, &mut |_| {}).unwrap().results;
            let values = crate::measure::values(&scenario, &results);
            let names = results.relays.iter().map(|relay| format!("path.{}.throughput_bps", relay.name));
            names.map(|name| values.get(&name).copied()).collect::<Vec<_>>()
        };
        let [first, second] = throughputs("bulk")[..] else { panic!("two relays") };
        assert!(first.unwrap() > 5e5 && second == Some(0.0), "{first:?} {second:?}");
        assert_eq!(throughputs("none"), [None, None], "there is no connection");
    }

    #[test]
    fn what_the_files_of_a_scenario_hold_belongs_to_its_runs() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        let content = |workload: &str, rate: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"1 s\"\nworkload = {workload}\n[[relays]]\n\
                 cellular = {{ rate = {rate}, delay = \"5 ms\" }}\n"
            );
            write("x.toml", &text);
            let load = |overrides: &[_]| load_file(&directory.path().join("x.toml"), overrides);
            Manifest::new(&Plan::new(load, &[], None).unwrap()).content
        };
        let bulk = "{ kind = \"bulk\" }";
        for (file, workload, rate) in
            [("t", bulk, "{ trace = \"t\" }"), ("octets", "{ kind = \"file\", path = \"octets\" }", "\"3 Mbit/s\"")]
        {
            write(file, "12\n");
            let before = content(workload, rate);
            assert_eq!(content(workload, rate), before, "{file}");
            write(file, "100\n");
            assert_ne!(content(workload, rate), before, "{file}");
            std::fs::remove_file(directory.path().join(file)).unwrap();
            assert_ne!(content(workload, rate), before, "{file}");
        }
    }
}
