//! Runs jobs on all cores.

use core::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::{Job, Journal, JournalError, Plan, Record, numbers};

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs finished, those of an earlier start included.
    pub finished: usize,
    /// Runs in all.
    pub all: usize,
    /// Runs finished with faults.
    pub faulty: usize,
}

/// Runs what is missing in `journal` on `workers` threads; `progress` is called after every run.
///
/// # Errors
/// If the journal cannot be written; the runs under way are abandoned.
pub fn run(
    plan: &Plan,
    journal: &mut Journal,
    workers: usize,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), JournalError> {
    let missing = missing(plan, journal);
    let all = plan.cases.len() * plan.seeds.len();
    let faulty = journal.records().iter().filter(|record| !record.faults.is_empty()).count();
    let mut state = Progress { finished: all - missing.len(), all, faulty };
    progress(state);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers.clamp(1, missing.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(|| work(plan, &missing, &next, sender));
        }
        drop(sender);
        for record in receiver {
            state.finished += 1;
            state.faulty += usize::from(!record.faults.is_empty());
            let written = journal.add(record);
            if written.is_err() {
                // No worker takes another job.
                next.store(missing.len(), Ordering::Relaxed);
                return written;
            }
            progress(state);
        }
        Ok(())
    })
}

/// The runs of `plan` that are not in `journal`.
fn missing(plan: &Plan, journal: &Journal) -> Vec<Job> {
    let numbers = numbers(plan);
    let case = |record: &Record| numbers.get(&(record.variant.as_str(), record.point.as_slice())).copied();
    let there: BTreeSet<(usize, u64)> =
        journal.records().iter().filter_map(|record| Some((case(record)?, record.seed))).collect();
    plan.jobs().filter(|job| !there.contains(&(job.case, job.seed))).collect()
}

fn work(plan: &Plan, jobs: &[Job], next: &AtomicUsize, sender: Sender<Record>) {
    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
        if sender.send(run_one(plan, *job)).is_err() {
            return;
        }
    }
}

fn run_one(plan: &Plan, job: Job) -> Record {
    let case = &plan.cases[job.case];
    let mut scenario = case.scenario.clone();
    scenario.seed = job.seed;
    // A defect that one run hits must not take the others with it.
    match catch_unwind(AssertUnwindSafe(|| crate::run::run(&scenario, None, &mut |_| {}))) {
        Ok(Ok(run)) => Record::new(case, job.seed, &run),
        Ok(Err(error)) => Record::failed(case, job.seed, error.to_string()),
        Err(panic) => Record::failed(case, job.seed, format!("the simulator panicked: {}", said(&*panic))),
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_quoted() {
        assert_eq!(said(&"plain"), "plain");
        assert_eq!(said(&String::from("made")), "made");
        assert_eq!(said(&7), "without a word");
    }
}
