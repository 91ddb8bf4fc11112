//! Runs jobs on all cores.

use core::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::build::this_build;
use super::{Job, Journal, JournalError, Plan, Record, numbers, sorted};
use crate::run::{Run, RunError};
use crate::scenario::Scenario;

/// Progress of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs finished, including those of an earlier start.
    pub finished: usize,
    /// All runs.
    pub all: usize,
    /// Runs finished with faults.
    pub faulty: usize,
}

/// Runs one scenario.
pub type How<'a> = dyn Fn(&Scenario) -> Result<Run, RunError> + Sync + 'a;

/// Runs what is missing in `journal` in the simulator on `workers` threads; calls `progress` after every run. Repeats
/// runs that had faults in another build of this program.
///
/// # Errors
/// If the journal cannot be written; runs under way are abandoned.
pub fn run(
    plan: &Plan,
    journal: &mut Journal,
    workers: usize,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), JournalError> {
    run_with(plan, journal, workers, &|scenario| crate::run::run(scenario, None, &mut |_| {}), progress)
}

/// Like [`run`], but `how` runs a scenario. Runs that the user interrupts, or that the machine cannot run, are not kept,
/// and the remaining ones do not start: `how` knows which of the two it was.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    plan: &Plan,
    journal: &mut Journal,
    workers: usize,
    how: &How<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), JournalError> {
    journal.forget(plan, |record| !record.faults.is_empty() && record.build != this_build());
    let jobs = missing(plan, journal);
    run_jobs(plan, &jobs, journal, workers, how, progress)
}

/// Like [`run_with`], in real time. The variants alternate, seed by seed, because a temporary disturbance of the machine
/// then affects all of them. Runs that had faults are repeated: they may succeed this time.
///
/// # Errors
/// As [`run`].
pub fn run_in_turns(
    plan: &Plan,
    journal: &mut Journal,
    workers: usize,
    how: &How<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), JournalError> {
    journal.forget(plan, |record| !record.faults.is_empty());
    let mut jobs = missing(plan, journal);
    jobs.sort_by_key(|job| (job.seed, job.case));
    run_jobs(plan, &jobs, journal, workers, how, progress)
}

fn run_jobs(
    plan: &Plan,
    missing: &[Job],
    journal: &mut Journal,
    workers: usize,
    how: &How<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), JournalError> {
    let all = plan.cases.len() * plan.seeds.len();
    let faulty = sorted(plan, journal.records()).into_iter().filter(|record| !record.faults.is_empty()).count();
    let mut state = Progress { finished: all - missing.len(), all, faulty };
    progress(state);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers.clamp(1, missing.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(|| work(plan, missing, how, &next, sender));
        }
        drop(sender);
        for record in receiver {
            state.finished += 1;
            state.faulty += usize::from(!record.faults.is_empty());
            let written = journal.add(record);
            if written.is_err() {
                // Stops workers from taking another job.
                next.store(missing.len(), Ordering::Relaxed);
                return written;
            }
            progress(state);
        }
        Ok(())
    })
}

/// The runs of `plan` that are not in `journal`.
pub(super) fn missing(plan: &Plan, journal: &Journal) -> Vec<Job> {
    let numbers = numbers(plan);
    let case = |record: &Record| numbers.get(&(record.variant.as_str(), record.point.as_slice())).copied();
    let there: BTreeSet<(usize, u64)> =
        journal.records().iter().filter_map(|record| Some((case(record)?, record.seed))).collect();
    plan.jobs().filter(|job| !there.contains(&(job.case, job.seed))).collect()
}

fn work(plan: &Plan, jobs: &[Job], how: &How<'_>, next: &AtomicUsize, sender: Sender<Record>) {
    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
        let Some(record) = run_one(plan, *job, how) else {
            next.store(jobs.len(), Ordering::Relaxed);
            return;
        };
        if sender.send(record).is_err() {
            return;
        }
    }
}

/// Runs a job; returns `None` if the user interrupted it, or the machine cannot run it.
fn run_one(plan: &Plan, job: Job, how: &How<'_>) -> Option<Record> {
    let case = &plan.cases[job.case];
    let mut scenario = case.scenario.clone();
    scenario.seed = job.seed;
    // A defect that one run hits must not end the others.
    match catch_unwind(AssertUnwindSafe(|| how(&scenario))) {
        Ok(Ok(run)) => (!run.interrupted).then(|| Record::new(case, job.seed, &run)),
        Ok(Err(RunError::Backend(_))) => None,
        Ok(Err(error)) => Some(Record::failed(case, job.seed, error.to_string())),
        Err(panic) => Some(Record::failed(case, job.seed, format!("the run panicked: {}", said(&*panic)))),
    }
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_quoted() {
        assert_eq!(said(&"plain"), "plain");
        assert_eq!(said(&String::from("made")), "made");
        assert_eq!(said(&7), "without a message");
    }
}
