//! What one run leaves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Case, Course, Plan};
use crate::results::Results;
use crate::run::Run;

/// What a journal belongs to: its first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of everything the runs depend on but their seeds.
    pub content: String,
    /// Version of this program.
    pub version: String,
}

/// One run: one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// The seed.
    pub seed: u64,
    /// Every number of the totals and of the papers' metrics by name, of the latter with `analysis.` or `whole.` before
    /// it.
    pub values: BTreeMap<String, f64>,
    /// How it went over time; empty if it could not begin.
    #[serde(default)]
    pub course: Course,
    /// What was wrong with the run; empty if nothing was.
    pub faults: Vec<String>,
}

impl Manifest {
    /// Of a plan.
    pub fn new(plan: &Plan) -> Self {
        let mut digest = Sha256::new();
        for case in &plan.cases {
            let mut scenario = case.scenario.clone();
            scenario.seed = 0;
            let content = serde_json::to_vec(&scenario).expect("scenarios have text keys and finite numbers");
            digest.update(case.variant.as_bytes());
            digest.update(content);
        }
        let content = digest.finalize().iter().map(|octet| format!("{octet:02x}")).collect();
        Self { scenario: plan.scenario.name.clone(), content, version: env!("CARGO_PKG_VERSION").into() }
    }
}

impl Record {
    /// Of a run of `case`.
    pub fn new(case: &Case, seed: u64, run: &Run) -> Self {
        let (variant, point) = (case.variant.clone(), case.point.clone());
        let course = Course::new(&case.scenario, &run.results.series);
        Self { variant, point, seed, values: values(&run.results.reproducible()), course, faults: run.faults.clone() }
    }

    /// Of a run of `case` that could not begin.
    pub fn failed(case: &Case, seed: u64, why: String) -> Self {
        let (variant, point) = (case.variant.clone(), case.point.clone());
        Self { variant, point, seed, values: BTreeMap::new(), course: Course::default(), faults: vec![why] }
    }
}

/// Every number of `results` that is no series.
fn values(results: &Results) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    add(&mut values, "", &serde_json::to_value(&results.totals).expect("totals are finite"));
    if let Some(metrics) = &results.metrics {
        add(&mut values, "analysis.", &serde_json::to_value(&metrics.summary).expect("metrics are finite"));
        add(&mut values, "whole.", &serde_json::to_value(&metrics.totals).expect("metrics are finite"));
        values.extend(metrics.jain_index.map(|index| ("jain_index".into(), index)));
    }
    let local: Vec<f64> = results.relays.iter().filter_map(|relay| relay.local_ratio()).collect();
    if !local.is_empty() {
        values.insert("local_ratio_mean".into(), local.iter().sum::<f64>() / local.len() as f64);
        values.insert("local_ratio_min".into(), local.iter().copied().fold(f64::INFINITY, f64::min));
    }
    values
}

fn add(values: &mut BTreeMap<String, f64>, prefix: &str, object: &serde_json::Value) {
    for (name, value) in object.as_object().into_iter().flatten() {
        let number = value.as_f64().or_else(|| value.as_bool().map(|flag| f64::from(u8::from(flag))));
        values.extend(number.map(|number| (format!("{prefix}{name}"), number)));
        add(values, &format!("{prefix}{name}."), value);
    }
}
