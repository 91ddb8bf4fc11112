//! What a run yields: one object, the same for every backend, with units in the names.

mod schema;
mod table;

pub use schema::{Manifest, Results, Series, SubflowResults, SubflowSeries, Totals};
pub use table::{quantity, summary};
