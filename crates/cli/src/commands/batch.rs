//! Many runs on a backend that is not the simulator.

use std::sync::{Mutex, PoisonError};

use lab::run::sweep::{Journal, Plan, run_in_turns};
use lab::run::{Recordings, Run, RunError};
use lab::scenario::Scenario;

use crate::console::RunsBar;
use crate::failure::Failure;

/// Runs what is missing in `journal` with `how`, `jobs` runs at a time.
///
/// # Errors
/// If a run cannot go on, or on an interruption; finished runs are in the journal.
pub fn complete(
    plan: &Plan,
    journal: &mut Journal,
    jobs: usize,
    what: &str,
    how: &(dyn Fn(&Scenario) -> Result<Run, RunError> + Sync),
) -> Result<(), Failure> {
    let broken = Mutex::new(None);
    let note = |why: String| {
        broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    };
    let noted = |scenario: &Scenario| {
        let ran = how(scenario);
        match &ran {
            Ok(run) if run.interrupted => note("interrupted".into()),
            Err(RunError::Backend(error)) => note(error.to_string()),
            _ => {}
        }
        ran
    };
    let bar = RunsBar::new(what);
    let ran = run_in_turns(plan, journal, jobs, &noted, &mut |progress| bar.show(progress));
    drop(bar);
    ran.map_err(|error| Failure::Failed(error.to_string()))?;
    match broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => Ok(()),
        Some(why) => Err(Failure::Failed(format!("{why}\n  help: finished runs are kept; the same command continues"))),
    }
}

/// Runs what is missing in `journal` with the radio of ns-3.
///
/// # Errors
/// As [`complete`], and if ns-3's models cannot do what a case requires.
pub fn with_ns3(plan: &Plan, journal: &mut Journal, jobs: usize, what: &str) -> Result<(), Failure> {
    ns3_radio::rehearse()?;
    for case in &plan.cases {
        ns3_radio::check(&case.scenario)?;
    }
    complete(plan, journal, jobs, what, &|scenario| ns3_radio::run(scenario, Recordings::default(), &mut |_| {}))
}
