//! Scenario files to runs, results and reports.
//!
//! ```text
//! scenario    a TOML file and overrides -> a checked Scenario, or mistakes that name line, field and remedy
//! ```

pub mod scenario;
