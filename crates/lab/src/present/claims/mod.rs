//! The papers' claims compared with measurements of this version: claims are data, evaluated on runs of shipped
//! scenarios.
//!
//! A claim names scenarios, the variants to compare, quantities, and tolerances that were fixed before the first
//! measurement. Runs of two variants with the same seed are paired. A claim is reproduced if the means meet its
//! tolerances and, for an ordering, the 95 % interval of the paired difference excludes zero.
//!
//! ```text
//! list       the claims, by paper; a new claim is one entry there
//! quantity   one number for every run, or pair of runs, of a scenario
//! check      conditions that quantities must meet
//! exact      what can be computed without runs
//! printed    paper mode: its changes to a scenario
//! evaluate   verdicts from runs
//! conditions environments in which claims are measured
//! repeated   runs that repeat others: no further samples, no further tests
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
mod repeated;
mod table;
pub mod users;

use std::collections::BTreeMap;

use serde::Serialize;

pub use check::{Check, Finding};
pub use evaluate::{evaluate, needs};
pub use list::claims;
pub use printed::{AS_PRINTED, Printed, as_printed};
pub use quantity::{Metric, Quantity};
pub use repeated::Fingerprint;
pub use table::{to_json, to_text};

use crate::run::sweep::Record;

/// Accepted share of false results among those that a map states to hold or to differ under its conditions.
const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// A claim of one of the papers.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its number, C01 to C66.
    pub id: &'static str,
    /// The place of the statement in the paper.
    pub source: &'static str,
    /// The paper's statement.
    pub paper: &'static str,
    /// The evidence; all of it must hold.
    pub evidence: &'static [Evidence],
}

/// Evidence for or against a claim.
#[derive(Clone, Copy, Debug)]
pub enum Evidence {
    /// Runs of a scenario.
    Runs {
        /// The runs needed.
        needs: Needs,
        /// The checks; all must hold. The table shows the first one first.
        checks: &'static [Check],
    },
    /// A computation without runs, and its required result.
    Exact {
        /// The computed number.
        what: &'static str,
        /// Computes it; returns `None` if that is impossible.
        measured: fn() -> Option<f64>,
        /// The number according to the paper.
        expected: f64,
        /// Accepted relative deviation.
        tolerance: f64,
    },
    /// The mean of the first measurements of other claims.
    Mean {
        /// Their numbers.
        of: &'static [&'static str],
        /// Smallest mean accepted.
        low: f64,
        /// Largest mean accepted.
        high: f64,
    },
}

/// The runs needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs {
    /// A shipped scenario.
    pub scenario: &'static str,
    /// Changes to it, each in the notation of `--set`.
    pub set: &'static [&'static str],
}

/// The available runs.
pub type Runs = BTreeMap<Needs, Vec<Record>>;

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Reproduced,
    /// It does not hold.
    NotReproduced,
    /// It cannot be right or wrong.
    Informative,
    /// No run yielded the numbers that it needs.
    NotMeasured,
}

/// The papers as printed, or as corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As corrected.
    #[default]
    Build,
    /// As printed.
    Paper,
}

/// A claim, compared with the measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The claim's number.
    pub id: String,
    /// The paper's statement.
    pub paper: String,
    /// The place of the statement in the paper.
    pub source: String,
    /// The first finding's mean, ratio or difference; null if there was nothing to measure.
    pub measured: Option<f64>,
    /// Its 95 % interval; null with a single seed, or for exact numbers.
    pub interval: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// The mode of the runs.
    pub mode: Mode,
    /// The requirements, and the measurements.
    pub findings: Vec<Finding>,
    /// Number of seeds with runs of every variant; the minimum over all scenarios, 0 without runs, 1 if all seeds gave the
    /// same runs.
    pub seeds: usize,
    /// Number of runs with faults; they count nevertheless.
    pub faulty_runs: usize,
}
