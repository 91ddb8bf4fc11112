//! Scenario files to runs, results and reports.
//!
//! ```text
//! scenario    a TOML file and overrides -> a checked Scenario, or mistakes that name line, field and remedy
//! measure     what happens on hosts and paths -> metrics, series, results; statistics over runs
//! run         a Scenario -> Results, in the simulator or on another backend; sweeps of many runs
//! present     results -> text, files of a sweep, an HTML report, the verdict on a claim
//! ```
//!
//! Each may use those above it.

pub mod measure;
pub mod present;
pub mod run;
pub mod scenario;
