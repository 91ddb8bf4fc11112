//! Presenting: results for people, and beside what the papers say.
//!
//! ```text
//! run, relays  a run as text
//! sweep, csv   a sweep as text, JSON and comma-separated values
//! report       a run or a sweep as one HTML file with plots
//! claims       what the papers say beside what is measured, with a verdict
//! evidence     what of a sweep's runs may be compared
//! field_name   what fields of a grid are called
//! metric       the values that people compare
//! wording      numbers as people read them
//! ```

pub mod claims;
mod csv;
mod evidence;
mod field_name;
mod metric;
mod relays;
pub mod report;
mod run;
mod sweep;
mod wording;

pub use csv::csv;
pub use relays::sparkline;
pub use run::summary;
pub use sweep::{CaseSummary, Comparison, Summary};
pub use wording::quantity;
