//! What the papers claim, and what this version measures: claims as data, evaluated on runs of shipped scenarios.
//!
//! A claim names a scenario, the variants to compare, a metric and a tolerance that was fixed before anything was measured.
//! Runs of two variants on the same seed are paired. A claim is reproduced if the mean meets its tolerance, and for an ordering
//! if the 95 % interval of the paired difference excludes zero.
//!
//! A new claim is one entry in `list.rs`.

mod evaluate;
mod list;
mod table;

use serde::Serialize;

pub use evaluate::evaluate;
pub use list::CLAIMS;
pub use table::{to_json, to_text};

/// A claim of one of the papers.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its number, C01 to C66.
    pub id: &'static str,
    /// What the paper says.
    pub paper: &'static str,
    /// Where.
    pub source: &'static str,
    /// What shows it.
    pub evidence: Evidence,
}

/// What shows whether a claim holds.
#[derive(Clone, Copy, Debug)]
pub enum Evidence {
    /// Runs of a scenario.
    Runs {
        /// The scenario that ships.
        scenario: &'static str,
        /// What is changed in it, as after `--set`.
        set: &'static [&'static str],
        /// Part of the grid point's value to which the claim refers; all of them if empty.
        point: &'static str,
        /// What must hold, all of it. The first is what the table shows.
        checks: &'static [Check],
    },
    /// A computation without runs, and what it must give within 1 %.
    Exact {
        /// Computes it.
        measured: fn() -> f64,
        /// What the paper's numbers come to.
        expected: f64,
    },
}

/// A number of a run.
#[derive(Clone, Copy, Debug)]
pub enum Metric {
    /// As [`crate::sweep::Record::values`] names it.
    Value(&'static str),
    /// One over another.
    Quotient(&'static str, &'static str),
}

/// What must hold between variants.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// The mean of a variant lies in a range.
    Within {
        /// The variant.
        variant: &'static str,
        /// The metric.
        metric: Metric,
        /// Smallest mean accepted.
        low: f64,
        /// Largest mean accepted.
        high: f64,
    },
    /// Mean of `new` over mean of `old` lies in a range.
    Ratio {
        /// The variant above.
        new: &'static str,
        /// The variant below.
        old: &'static str,
        /// The metric.
        metric: Metric,
        /// Smallest ratio accepted.
        low: f64,
        /// Largest ratio accepted.
        high: f64,
    },
    /// `less` has the smaller mean on paired seeds, at 95 %.
    Less {
        /// The variant with less.
        less: &'static str,
        /// The variant with more.
        than: &'static str,
        /// The metric.
        metric: Metric,
    },
    /// Nothing must hold: the paper's own numbers contradict each other.
    Show {
        /// The variant.
        variant: &'static str,
        /// The metric.
        metric: Metric,
    },
}

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
    /// What the numbers are, and what they had to be.
    pub what: String,
    /// The mean, ratio or difference; null if there was nothing to measure.
    pub measured: Option<f64>,
    /// Its 95 % interval; null with a single seed, or for what is exact.
    pub interval: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// The mode of the runs.
    pub mode: Mode,
    /// Runs that had faults; they count all the same.
    pub faulty_runs: usize,
}
