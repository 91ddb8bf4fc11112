//! Many runs of a scenario: every variant at every point of the grid with every seed.
//!
//! ```text
//! plan       variants, points and seeds -> jobs
//! workers    jobs -> records, on all cores
//! record     what one run leaves: one line of JSON
//! journal    the records so far, on disk; a killed sweep goes on where it was
//! summary    records -> means with intervals, and comparisons seed by seed
//! ```

mod journal;
mod plan;
mod record;
mod summary;
mod workers;

pub use journal::{Journal, JournalError};
pub use plan::{Case, Job, Plan, PlanError};
pub use record::{Manifest, Record};
pub use summary::{CaseSummary, Comparison, Summary, csv};
pub use workers::{Progress, run};
