//! Many runs of a scenario: every variant at every point of the grid with every seed.
//!
//! ```text
//! plan       variants, points and seeds -> jobs
//! axes       its dimensions after the command line, and what the command line may not change
//! choice     one run of all these
//! workers    jobs -> records, on all cores
//! record     the result of one run: one line of JSON
//! build      the build of this program that made it
//! content    what a run depends on besides its seed
//! difference what differs between two scenarios
//! journal    the records so far, on disk; a killed sweep continues from there
//! stated     what a sweep's scenario states of its variants
//! samples    records by variant and point, for comparisons
//! ```

mod axes;
mod build;
mod choice;
mod content;
mod difference;
mod journal;
mod plan;
mod record;
mod samples;
mod stated;
mod workers;

pub(crate) use axes::changes_of_case;
pub(crate) use build::this_build;
pub use choice::{ChoiceError, choose};
pub(crate) use content::content_without_files;
#[cfg(test)]
pub(crate) use content::contents;
pub use difference::{Difference, changed_files, differences};
pub use journal::{Journal, JournalError, read_journal};
pub(crate) use plan::described;
pub use plan::{Case, Job, ONLY_VARIANT, Plan, PlanError};
pub use record::{Manifest, Record};
pub use samples::sorted;
pub(crate) use samples::{Samples, numbers, samples};
pub use workers::{How, Progress, run, run_in_turns, run_with};
