//! Scenario files to runs, results and reports.
//!
//! ```text
//! link_nodes  what files say of links -> nodes of a network
//! scenario    a TOML file and overrides -> a checked Scenario, or mistakes that name line, field and remedy
//! run         a Scenario -> Results, in the simulator
//! metrics     the papers' metrics, from what happens to a connection
//! measure     what hosts and paths say -> series and totals, for every backend
//! results     the schema that every backend yields, and its text form
//! sweep       many runs on all cores, resumable; means, intervals, comparisons
//! report      results -> one HTML file with plots
//! claims      what the papers say beside what is measured, with a verdict
//! statistics  means with intervals, paired comparisons, correlations over runs
//! pcapng      packet captures
//! shell       commands that people paste
//! ```

pub mod claims;
pub mod link_nodes;
pub mod measure;
pub mod metrics;
pub mod pcapng;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod shell;
pub mod statistics;
pub mod sweep;
