//! Runs as many cases as fit into a given time.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::hunt::Smallest;
use crate::kind::Registration;
use crate::outcome::{Fault, Numbers, Outcome};

/// Extent of a campaign.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all cases.
    pub seed: u64,
    /// The first case of each kind.
    pub first: u64,
    /// Maximum number of cases of each kind.
    pub cases_max: u64,
    /// No case starts after this time.
    pub time: Duration,
    /// Time for making one failing case smaller.
    pub shrinking_time: Duration,
}

/// Results of the cases of one kind.
#[derive(Debug)]
pub struct Campaign {
    /// The kind.
    pub kind: &'static Registration,
    /// Number of cases that ran.
    pub cases: u64,
    /// Of these, the number that were cut short.
    pub cut_short: u64,
    /// Sums over the cases that passed.
    pub numbers: Numbers,
    /// Values that were drawn.
    pub coverage: Coverage,
    /// Failures by kind of fault.
    pub failures: BTreeMap<String, Failure>,
    /// Time spent, without making cases smaller.
    spent: Duration,
}

/// Cases that fail in the same way.
#[derive(Debug)]
pub struct Failure {
    /// The first of their numbers.
    pub numbers: Vec<u64>,
    /// Number of such cases.
    pub count: u64,
    /// The first of them, made smaller.
    pub smallest: Smallest,
}

/// How many numbers are kept of the cases that fail in the same way.
const NUMBERS_MAX: usize = 5;

#[expect(clippy::disallowed_methods, reason = "a campaign lasts as long as a person says")]
fn clock() -> Instant {
    Instant::now()
}

/// Receives the progress of a campaign: a case is about to begin, is over, or has failed in a new way.
pub trait Listener {
    /// Case `number` begins next.
    fn begins(&mut self, kind: &'static Registration, number: u64);

    /// The case is over.
    fn ended(&mut self, campaigns: &[Campaign]);

    /// The case failed in a new way, and was made smaller.
    fn failed(&mut self, campaign: &Campaign, failure: &Failure);
}

/// Runs cases of all `kinds`, each for its share of the time.
pub fn campaign(plan: &Plan, kinds: &[&'static Registration], listener: &mut dyn Listener) -> Vec<Campaign> {
    let begin = clock();
    let mut campaigns: Vec<Campaign> = kinds.iter().map(|kind| Campaign::new(kind)).collect();
    while begin.elapsed() < plan.time {
        let open = campaigns.iter_mut().filter(|campaign| campaign.cases < plan.cases_max);
        let Some(next) = open.min_by_key(|campaign| campaign.spent / campaign.kind.share) else { break };
        next.one(plan, listener);
        listener.ended(&campaigns);
    }
    campaigns
}

impl Campaign {
    fn new(kind: &'static Registration) -> Self {
        Self {
            kind,
            cases: 0,
            cut_short: 0,
            numbers: Numbers::default(),
            coverage: Coverage::default(),
            failures: BTreeMap::new(),
            spent: Duration::ZERO,
        }
    }

    /// Returns the number of failed cases.
    pub fn failed(&self) -> u64 {
        self.failures.values().map(|failure| failure.count).sum()
    }

    /// Runs the next case.
    fn one(&mut self, plan: &Plan, listener: &mut dyn Listener) {
        let number = plan.first.saturating_add(self.cases);
        listener.begins(self.kind, number);
        let begin = clock();
        let drawn = (self.kind.draw)(plan.seed, number);
        self.coverage.add(drawn.values());
        self.cases += 1;
        let outcome = drawn.try_it();
        self.spent += begin.elapsed();
        match outcome {
            Outcome::Passed(numbers) => self.numbers = self.numbers + numbers,
            Outcome::CutShort => self.cut_short += 1,
            Outcome::Failed(fault) => {
                if let Some(known) = self.failures.get_mut(&fault.kind) {
                    return known.count_another(number);
                }
                let begin = clock();
                let smallest = drawn.shrink(fault.clone(), &|| begin.elapsed() < plan.shrinking_time);
                let failure = Failure { numbers: vec![number], count: 1, smallest };
                listener.failed(self, &failure);
                self.failures.insert(fault.kind, failure);
            }
        }
    }
}

impl Failure {
    fn count_another(&mut self, number: u64) {
        self.count += 1;
        self.numbers.truncate(NUMBERS_MAX - 1);
        self.numbers.push(number);
    }

    /// Describes the failure for a person, including the case.
    pub fn describe(&self, kind: &Registration, seed: u64) -> String {
        let Smallest { text: case, fault: Fault { kind: fault, detail }, runs } = &self.smallest;
        let (mut text, number) = (String::new(), self.numbers[0]);
        let _ = writeln!(text, "# {fault}\n# seed {seed}, {} case {number}; made smaller in {runs} runs", kind.name);
        let _ = writeln!(text, "# as drawn: make soak KIND={} SEED={seed} CASE={number}", kind.name);
        for line in detail.lines() {
            let _ = writeln!(text, "# {line}");
        }
        text + "\n" + case
    }

    /// Writes the case into a folder, and returns the file's path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, kind: &Registration, seed: u64, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join(format!("{}-{seed}-{}.toml", kind.name, self.numbers[0]));
        std::fs::write(&file, self.describe(kind, seed))?;
        Ok(file)
    }
}
