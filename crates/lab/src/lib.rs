//! From scenario files to runs, results and reports.
//!
//! ```text
//! scenario    a TOML file and overrides -> a checked Scenario, or mistakes with line, field and remedy
//! measure     what hosts and paths do -> metrics, series, results; statistics over runs
//! run         a Scenario -> Results, in the simulator or on another backend; sweeps of many runs
//! present     results -> text, files of a sweep, an HTML report, the verdict on a claim
//! ```
//!
//! Each module may use the modules listed above it.

pub mod measure;
pub mod present;
pub mod run;
pub mod scenario;
