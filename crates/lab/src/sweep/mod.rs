//! Many runs of a scenario: every variant at every point of the grid with every seed.
//!
//! ```text
//! plan       variants, points and seeds -> jobs
//! axes       what it goes through after the command line, and what that may not change
//! choice     one run of all that
//! workers    jobs -> records, on all cores
//! record     what one run leaves: one line of JSON
//! values     its numbers by name
//! course     how it went over time, in few numbers
//! journal    the records so far, on disk; a killed sweep goes on where it was
//! metric     the values that people compare
//! summary    records -> means with intervals, and comparisons seed by seed
//! ```

mod axes;
mod choice;
mod course;
mod journal;
mod metric;
mod plan;
mod record;
mod summary;
mod values;
mod workers;

pub use choice::{ChoiceError, choose};
pub use course::Course;
pub use journal::{Journal, JournalError};
pub(crate) use metric::{Better, Kind, METRICS, Metric};
pub use plan::{Case, Job, Plan, PlanError};
pub use record::{Manifest, Record};
pub use summary::{CaseSummary, Comparison, Summary, csv};
pub(crate) use summary::{Samples, numbers, samples, sorted};
pub use workers::{Progress, run};
