//! What the papers claim, and what this version measures: claims as data, evaluated on runs of shipped scenarios.
//!
//! A claim names scenarios, the variants to compare, quantities and tolerances that were fixed before anything was measured.
//! Runs of two variants on the same seed are paired. A claim is reproduced if the means meet its tolerances, and for an ordering
//! if the 95 % interval of the paired difference excludes zero.
//!
//! ```text
//! list       the claims, by paper; a new claim is one entry there
//! quantity   one number for every run, or pair of runs, of a scenario
//! check      what must hold of quantities
//! exact      what can be computed without runs
//! printed    paper mode: what it changes in a scenario
//! evaluate   from runs to a verdict
//! conditions worlds in which claims are looked at
//! map        claims by conditions: where each holds
//! users      modules by conditions: what a person would notice
//! table      verdicts for people and programs
//! ```

mod check;
pub mod conditions;
mod evaluate;
mod exact;
mod list;
pub mod map;
mod printed;
mod quantity;
mod table;
pub mod users;

use std::collections::BTreeMap;

use serde::Serialize;

pub use check::{Check, Finding};
pub use evaluate::{evaluate, needs};
pub use list::claims;
pub use printed::{AS_PRINTED, Printed, as_printed};
pub use quantity::{Metric, Quantity};
pub use table::{to_json, to_text};

use crate::run::sweep::Record;

/// Share of what is said to hold, or to differ, under the conditions of a map that may not.
const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// A claim of one of the papers.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its number, C01 to C66.
    pub id: &'static str,
    /// Where the paper says it.
    pub source: &'static str,
    /// What it says.
    pub paper: &'static str,
    /// What shows it, all of it.
    pub evidence: &'static [Evidence],
}

/// What shows whether a claim holds.
#[derive(Clone, Copy, Debug)]
pub enum Evidence {
    /// Runs of a scenario.
    Runs {
        /// What to run.
        needs: Needs,
        /// What must hold, all of it. The first is what the table shows first.
        checks: &'static [Check],
    },
    /// A computation without runs, and what it must give.
    Exact {
        /// What is computed.
        what: &'static str,
        /// Computes it; `None` if it cannot.
        measured: fn() -> Option<f64>,
        /// What the paper's numbers come to.
        expected: f64,
        /// By how much it may be off, a ratio.
        tolerance: f64,
    },
    /// The mean of what is measured first of other claims.
    Mean {
        /// Their numbers.
        of: &'static [&'static str],
        /// Smallest mean accepted.
        low: f64,
        /// Largest mean accepted.
        high: f64,
    },
}

/// What must be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs {
    /// A scenario that ships.
    pub scenario: &'static str,
    /// What is changed in it, as after `--set`.
    pub set: &'static [&'static str],
}

/// The runs there are.
pub type Runs = BTreeMap<Needs, Vec<Record>>;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Reproduced,
    /// It does not.
    NotReproduced,
    /// It cannot be right or wrong.
    Informative,
    /// No run gave the numbers that it is about.
    NotMeasured,
}

/// As printed in the papers, or as corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As corrected.
    #[default]
    Build,
    /// As printed.
    Paper,
}

/// A claim beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The claim's number.
    pub id: String,
    /// What the paper says.
    pub paper: String,
    /// Where it says so.
    pub source: String,
    /// The first finding's mean, ratio or difference; null if there was nothing to measure.
    pub measured: Option<f64>,
    /// Its 95 % interval; null with a single seed, or for what is exact.
    pub interval: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// The mode of the runs.
    pub mode: Mode,
    /// What had to hold, and what was measured.
    pub findings: Vec<Finding>,
    /// Seeds with which every variant was run; the fewest of all scenarios, 0 without runs.
    pub seeds: usize,
    /// Runs that had faults; they count all the same.
    pub faulty_runs: usize,
}
