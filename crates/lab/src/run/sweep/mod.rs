//! Many runs of a scenario: every variant at every point of the grid with every seed.
//!
//! ```text
//! plan       variants, points and seeds -> jobs
//! axes       what it goes through after the command line, and what that may not change
//! choice     one run of all that
//! workers    jobs -> records, on all cores
//! record     what one run leaves: one line of JSON
//! build      which build of this program it was
//! journal    the records so far, on disk; a killed sweep goes on where it was
//! samples    records by variant and point, for who compares them
//! ```

mod axes;
mod build;
mod choice;
mod journal;
mod plan;
mod record;
mod samples;
mod workers;

pub use choice::{ChoiceError, choose};
pub use journal::{Journal, JournalError};
pub(crate) use plan::described;
pub use plan::{Case, Job, Plan, PlanError};
pub use record::{Manifest, Record};
pub use samples::sorted;
pub(crate) use samples::{Samples, numbers, samples};
pub use workers::{How, Progress, run, run_in_turns};
