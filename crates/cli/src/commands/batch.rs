//! Many runs, which Ctrl-C may interrupt.

use std::sync::{Mutex, PoisonError};

use lab::run::sweep::{How, Journal, JournalError, Plan, Progress, run_in_turns, run_with};
use lab::run::{Recordings, RunError};
use lab::scenario::Scenario;

use crate::console::RunsBar;
use crate::failure::Failure;
use crate::interruptible::Interruptible;

/// How the runs that are missing follow each other.
type InOrder = fn(&Plan, &mut Journal, usize, &How<'_>, &mut dyn FnMut(Progress)) -> Result<(), JournalError>;

/// Runs what is missing in `journal` with `how`, in real time, `jobs` runs at a time.
///
/// # Errors
/// If a run cannot go on, or on an interruption; finished runs are in the journal.
pub fn complete(plan: &Plan, journal: &mut Journal, jobs: usize, what: &str, how: &How<'_>) -> Result<(), Failure> {
    watched(plan, journal, jobs, what, how, run_in_turns)
}

/// Runs what is missing in `journal` in the simulator.
///
/// # Errors
/// As [`complete`].
pub fn simulated(plan: &Plan, journal: &mut Journal, jobs: usize, what: &str) -> Result<(), Failure> {
    let backend = Interruptible::new()?;
    let how =
        |scenario: &Scenario| lab::run::run_on(&mut backend.clone(), scenario, Recordings::default(), &mut |_| {});
    watched(plan, journal, jobs, what, &how, run_with)
}

/// Runs what is missing in `journal`, with a bar on standard error, and says what is kept if it cannot go on.
fn watched(
    plan: &Plan,
    journal: &mut Journal,
    jobs: usize,
    what: &str,
    how: &How<'_>,
    in_order: InOrder,
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
    let (bar, mut kept) = (RunsBar::new(what), String::new());
    let ran = in_order(plan, journal, jobs, &noted, &mut |progress| {
        kept = format!("{} of {} runs are kept", progress.finished, progress.all);
        bar.show(progress);
    });
    drop(bar);
    ran.map_err(|error| Failure::Failed(error.to_string()))?;
    match broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => Ok(()),
        Some(why) => Err(Failure::Failed(format!("{why}\n  help: {kept}; the same command goes on"))),
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
    let how = |scenario: &Scenario| ns3_radio::run(scenario, Recordings::default(), &mut |_| {});
    // In virtual time, a run that had faults would have them again.
    watched(plan, journal, jobs, what, &how, run_with)
}
