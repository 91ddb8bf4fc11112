//! Runs as many cases as fit into a given time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use linux::clock::Clock;
use soak::coverage::Coverage;
use soak::outcome::Fault;
use units::{Duration, Instant};

use crate::case::Case;
use crate::coverage::values;
use crate::draw::draw;
use crate::smaller::{Smallest, smallest};
use crate::trial::{Numbers, Outcome, Rate, repeat, try_case};

/// Extent of a campaign.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all cases.
    pub seed: u64,
    /// The first case.
    pub first: u64,
    /// Maximum number of cases.
    pub cases_max: u64,
    /// No case starts after this time.
    pub time: Duration,
    /// Time for making one failing case smaller.
    pub shrinking_time: Duration,
    /// Number of runs of a failing case, to find out how often it fails; also of each simpler case.
    pub tries: u32,
}

/// Results of a campaign.
#[derive(Debug, Default)]
pub struct Campaign {
    /// Number of cases that ran.
    pub cases: u64,
    /// Sums over the cases that passed.
    pub numbers: Numbers,
    /// Values that were drawn.
    pub coverage: Coverage,
    /// Failures by kind.
    pub failures: BTreeMap<String, Failure>,
}

/// Cases that fail in the same way.
#[derive(Debug)]
pub struct Failure {
    /// Their numbers.
    pub numbers: BTreeSet<u64>,
    /// How often the first of them fails.
    pub rate: Rate,
    /// The first of them, made smaller.
    pub smallest: Smallest,
}

/// Runs cases until the time is over. Calls `tell` after each case with its number and, if it failed in a new way, the
/// failure.
pub fn campaign(plan: &Plan, tell: &mut dyn FnMut(&Campaign, u64, Option<&Failure>)) -> Campaign {
    let clock = Clock::start();
    let mut campaign = Campaign::default();
    for number in plan.first..plan.first.saturating_add(plan.cases_max) {
        if clock.now() >= Instant::ZERO + plan.time {
            break;
        }
        let new = campaign.one(plan, number);
        let failure = new.and_then(|kind| campaign.failures.get(&kind));
        tell(&campaign, number, failure);
    }
    campaign
}

impl Campaign {
    /// Runs a case; returns the kind of its fault if that is new.
    fn one(&mut self, plan: &Plan, number: u64) -> Option<String> {
        let case = draw(plan.seed, number);
        self.coverage.add(values(&case));
        self.cases += 1;
        let fault = match try_case(&case, false) {
            Outcome::Passed(numbers) => {
                self.numbers.add(numbers);
                return None;
            }
            Outcome::Failed(fault) => fault,
        };
        if let Some(known) = self.failures.get_mut(&fault.kind) {
            known.numbers.insert(number);
            return None;
        }
        let kind = fault.kind.clone();
        let failure = investigate(plan, number, case, fault);
        self.failures.insert(kind.clone(), failure);
        Some(kind)
    }
}

/// Measures how often a case fails, and makes it smaller.
fn investigate(plan: &Plan, number: u64, case: Case, fault: Fault) -> Failure {
    let clock = Clock::start();
    let rate = repeat(&case, &fault, plan.tries);
    let end = Instant::ZERO + plan.shrinking_time;
    let smallest = smallest(case, fault, plan.tries, &|| clock.now() < end);
    Failure { numbers: BTreeSet::from([number]), rate, smallest }
}

impl Numbers {
    fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.over_mptcp += other.over_mptcp;
        self.subflows += other.subflows;
        self.received_bytes += other.received_bytes;
        self.lacking.extend(other.lacking);
    }
}

impl Failure {
    /// Describes the failure for a person, including the case.
    pub fn describe(&self, seed: u64) -> String {
        let Smallest { case, fault: Fault { kind, detail }, tried } = &self.smallest;
        let mut text = String::new();
        let number = self.numbers.first().copied().unwrap_or_default();
        let _ = writeln!(text, "# {kind}\n# seed {seed}, case {number}, as drawn: {}", self.rate);
        let _ = writeln!(text, "# make soak KIND=kernel SEED={seed} CASE={number}; made smaller in {tried} attempts");
        for line in detail.lines() {
            let _ = writeln!(text, "# {}", line.trim_end());
        }
        text + "\n" + &case.to_text()
    }

    /// Writes the case into a folder, and returns the file's path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, seed: u64, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join(format!("kernel-{seed}-{}.toml", self.numbers.first().copied().unwrap_or_default()));
        std::fs::write(&file, self.describe(seed))?;
        Ok(file)
    }
}
