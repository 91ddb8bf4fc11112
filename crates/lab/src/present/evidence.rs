//! Conclusions from the runs of a sweep: means by case, and comparisons of two cases, as far as the runs permit.
//!
//! Runs with faults are no valid samples, so nothing is concluded from them. If nothing in a scenario is random, all
//! seeds yield the same run: it counts once, however often it was repeated.

use crate::measure::statistics::{Interval, Paired};
use crate::run::sweep::{Plan, Record, Samples, numbers, samples, sorted};

/// The values of a sweep, and their reliability. Cases are those of the plan.
pub(super) struct Evidence {
    /// Samples by case.
    pub samples: Vec<Samples>,
    cases: Vec<CaseRuns>,
}

/// The runs of a case.
#[derive(Clone, Debug, Default)]
pub(super) struct CaseRuns {
    /// Number of runs.
    pub runs: usize,
    /// Number of runs with faults.
    pub faulty: usize,
    /// The first fault.
    pub fault: Option<String>,
    /// Whether there are several runs and all are identical to the last bit.
    pub identical: bool,
}

impl Evidence {
    /// Evaluates the records of `plan`, in any order.
    pub fn new(plan: &Plan, records: &[Record]) -> Self {
        let numbers = numbers(plan);
        let mut by_case: Vec<Vec<&Record>> = vec![Vec::new(); plan.cases.len()];
        for record in sorted(plan, records) {
            if let Some(case) = numbers.get(&(record.variant.as_str(), record.point.as_slice())) {
                by_case[*case].push(record);
            }
        }
        let cases = by_case.iter().map(|records| CaseRuns::new(records)).collect();
        Self { samples: samples(plan, records), cases }
    }

    /// The runs of a case.
    pub fn runs(&self, case: usize) -> &CaseRuns {
        &self.cases[case]
    }

    /// The mean of a value over the seeds, with its interval.
    pub fn interval(&self, case: usize, name: &str) -> Option<Interval> {
        let mut values: Vec<f64> = self.samples[case].get(name)?.values().copied().collect();
        if self.cases[case].identical {
            values.truncate(1);
        }
        Interval::of(&values)
    }

    /// The comparison of two cases on their common seeds, and the difference for each seed.
    pub fn paired(&self, case: usize, baseline: usize, name: &str) -> Option<(Paired, Vec<f64>)> {
        let (new, old) = (self.samples[case].get(name)?, self.samples[baseline].get(name)?);
        let mut both: Vec<_> = new.iter().filter_map(|(seed, new)| Some((*new, *old.get(seed)?))).collect();
        if without_chance([case, baseline].map(|case| &self.cases[case])) {
            both.truncate(1);
        }
        let (new, old): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        let differences = new.iter().zip(&old).map(|(new, old)| new - old).collect();
        let paired = Paired::compare(&new, &old)?;
        let is_faulty = [case, baseline].iter().any(|case| self.cases[*case].faulty > 0);
        Some((if is_faulty { paired.withheld() } else { paired }, differences))
    }

    /// A note that cases yielded the same run with all seeds; `None` if none did.
    pub fn note_on_identical(&self) -> Option<String> {
        let same = self.cases.iter().filter(|runs| runs.identical && runs.faulty == 0).count();
        match self.cases.len() {
            _ if same == 0 => None,
            all if all == same => Some(
                "all seeds gave the same run: nothing in this scenario is random, so there are neither intervals nor verdicts".into(),
            ),
            all => Some(format!("all seeds gave the same run in {same} of {all} rows, those without an interval: nothing in them is random")),
        }
    }
}

/// Whether nothing is random in any of these cases, so that all seeds gave the same runs: then one seed stands for all.
pub(super) fn without_chance<'a>(cases: impl IntoIterator<Item = &'a CaseRuns>) -> bool {
    cases.into_iter().all(|runs| runs.identical)
}

impl CaseRuns {
    /// Evaluates the records of one case.
    pub fn new(records: &[&Record]) -> Self {
        let gave = |record: &Record| (record.values.clone(), record.course.clone(), record.goodput_points_bps.clone());
        let began = records.iter().all(|record| !record.values.is_empty());
        Self {
            runs: records.len(),
            faulty: records.iter().filter(|record| !record.faults.is_empty()).count(),
            fault: records.iter().find_map(|record| record.faults.first().cloned()),
            identical: began && records.len() > 1 && records.iter().all(|record| gave(record) == gave(records[0])),
        }
    }
}
