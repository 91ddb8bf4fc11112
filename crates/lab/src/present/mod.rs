//! Presents results to people, compared with the papers where they make claims.
//!
//! ```text
//! run, relays  a run as text
//! sweep, csv   a sweep as text, JSON and comma-separated values
//! compare      two runs or two sweeps beside each other
//! report       a run or a sweep as one HTML file with plots
//! claims       the papers' claims and the measurements, with a verdict
//! evidence     which runs of a sweep may be compared
//! field_name   short names of grid fields
//! metric       the values that people compare
//! wording      numbers in readable form
//! ```

pub mod claims;
mod compare;
mod csv;
mod evidence;
mod field_name;
mod metric;
mod relays;
pub mod report;
mod run;
mod sweep;
mod wording;

pub use compare::{CaseContrast, Contrast, Kind as SideKind, Side, SideError, Unpaired, ValueContrast};
pub use csv::csv;
pub use relays::sparkline;
pub use run::summary;
pub use sweep::{CaseSummary, Comparison, Summary};
pub use wording::{quantity, seeds_of};
