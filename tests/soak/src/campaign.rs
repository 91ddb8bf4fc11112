//! As many cases as fit into a time.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::hunt::{Smallest, draw, try_case};
use crate::judge::Fault;
use crate::run::{Numbers, Outcome};

/// How long to go on, and from where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All cases grow from it.
    pub seed: u64,
    /// The first case.
    pub first: u64,
    /// No more than so many cases.
    pub cases_max: u64,
    /// No new case after that time.
    pub time: Duration,
    /// Time spent on making one failing case smaller.
    pub shrinking_time: Duration,
}

/// What came of a campaign.
#[derive(Debug, Default)]
pub struct Campaign {
    /// Cases run.
    pub cases: u64,
    /// Of these, cut short.
    pub cut_short: u64,
    /// The sums over those that passed.
    pub numbers: Numbers,
    /// What was drawn.
    pub coverage: Coverage,
    /// What failed, by kind.
    pub failures: BTreeMap<String, Failure>,
}

/// Cases that fail in the same way.
#[derive(Debug)]
pub struct Failure {
    /// Their numbers, the first of them.
    pub numbers: Vec<u64>,
    /// How many there are.
    pub count: u64,
    /// The first, made smaller.
    pub smallest: Smallest,
}

/// Numbers kept of the cases that fail in the same way.
const NUMBERS_MAX: usize = 5;

#[expect(clippy::disallowed_methods, reason = "a campaign lasts as long as a person says")]
fn clock() -> Instant {
    Instant::now()
}

/// Runs cases until the time is over; `tell` hears of each case: its number, and whether something new failed.
pub fn campaign(plan: &Plan, tell: &mut dyn FnMut(&Campaign, u64, Option<&Failure>)) -> Campaign {
    let begin = clock();
    let mut campaign = Campaign::default();
    for number in plan.first..plan.first.saturating_add(plan.cases_max) {
        if begin.elapsed() >= plan.time {
            break;
        }
        let new = campaign.one(plan, number);
        let failure = new.and_then(|kind| campaign.failures.get(&kind));
        tell(&campaign, number, failure);
    }
    campaign
}

impl Campaign {
    /// Runs a case; gives the kind of its fault if that is new.
    fn one(&mut self, plan: &Plan, number: u64) -> Option<String> {
        let drawn = draw(plan.seed, number);
        let case = drawn.case();
        self.coverage.add(&case);
        self.cases += 1;
        match try_case(&case) {
            Outcome::Passed(numbers) => self.numbers = self.numbers + numbers,
            Outcome::CutShort => self.cut_short += 1,
            Outcome::Failed(fault) => {
                if let Some(known) = self.failures.get_mut(&fault.kind) {
                    known.count += 1;
                    known.numbers.truncate(NUMBERS_MAX - 1);
                    known.numbers.push(number);
                    return None;
                }
                let kind = fault.kind.clone();
                let begin = clock();
                let smallest = drawn.shrink(fault, &|| begin.elapsed() < plan.shrinking_time);
                self.failures.insert(kind.clone(), Failure { numbers: vec![number], count: 1, smallest });
                return Some(kind);
            }
        }
        None
    }
}

impl Failure {
    /// What a person needs to know, the case included.
    pub fn describe(&self, seed: u64) -> String {
        let Smallest { case, fault: Fault { kind, detail }, runs } = &self.smallest;
        let mut text = String::new();
        let number = self.numbers[0];
        let _ = writeln!(text, "# {kind}\n# seed {seed}, case {number}; made smaller in {runs} runs");
        let _ = writeln!(text, "# as drawn: make soak SEED={seed} CASE={number}");
        for line in detail.lines() {
            let _ = writeln!(text, "# {line}");
        }
        text + "\n" + &case.to_text()
    }

    /// Writes the case into a folder; gives the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, seed: u64, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join(format!("{seed}-{}.toml", self.numbers[0]));
        std::fs::write(&file, self.describe(seed))?;
        Ok(file)
    }
}
