//! Many runs on real Linux, one batch after the other.

use lab::run::Recordings;
use lab::run::sweep::{Journal, Plan};
use testbed::{Ends, Held, Stack};

use super::batch;
use crate::failure::Failure;

/// Runs what is missing in `journal`, `jobs` runs at a time. Controllers stay in the kernel from the first run to the
/// last.
///
/// # Errors
/// If the machine lacks something, or on an interruption; finished runs are in the journal.
pub fn complete(plan: &Plan, journal: &mut Journal, ends: Ends, jobs: usize, what: &str) -> Result<(), Failure> {
    testbed::rehearse(ends)?;
    for case in &plan.cases {
        testbed::check(&case.scenario, ends)?;
    }
    let held: Result<Vec<Held>, _> = match ends.source {
        Stack::Kernel => plan.cases.iter().map(|case| Held::of(&case.scenario)).collect(),
        Stack::Engine => Ok(Vec::new()),
    };
    let _held = held?;
    batch::complete(plan, journal, jobs, what, &|scenario| {
        testbed::run(scenario, ends, Recordings::default(), &mut |_| {})
    })
}
