//! Many runs on real Linux, one batch after the other.

use std::sync::{Mutex, PoisonError};

use lab::run::sweep::{Journal, Plan, run_in_turns};
use lab::run::{Recordings, Run, RunError};
use lab::scenario::Scenario;
use testbed::{Ends, Held, Stack};

use crate::console::RunsBar;
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
    let broken = Mutex::new(None);
    let note = |why: String| {
        broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    };
    let how = |scenario: &Scenario| -> Result<Run, RunError> {
        let ran = testbed::run(scenario, ends, Recordings::default(), &mut |_| {});
        match &ran {
            Ok(run) if run.interrupted => note("interrupted".into()),
            Err(RunError::Backend(error)) => note(error.to_string()),
            _ => {}
        }
        ran
    };
    let bar = RunsBar::new(what);
    let ran = run_in_turns(plan, journal, jobs, &how, &mut |progress| bar.show(progress));
    drop(bar);
    ran.map_err(|error| Failure::Failed(error.to_string()))?;
    match broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => Ok(()),
        Some(why) => Err(Failure::Failed(format!("{why}\n  help: finished runs are kept; the same command continues"))),
    }
}
