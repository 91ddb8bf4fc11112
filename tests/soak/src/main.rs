//! Runs random scenarios for any length of time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use soak::campaign::{Campaign, Failure, Listener, Plan, campaign};
use soak::kind::{KINDS, Registration, find};
use soak::outcome::Outcome;

/// Interval between lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(15);
/// A case that takes longer hangs; this process cannot find out why.
const CASE_TIME_MAX: Duration = Duration::from_secs(600);

/// Random scenarios in virtual time, with checks of everything that must hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seed of all cases; by default from the clock.
    #[arg(long)]
    seed: Option<u64>,
    /// Only cases of this kind: transport or lab. By default all kinds take turns.
    #[arg(long, value_parser = find)]
    kind: Option<&'static Registration>,
    /// Run only this case of the seed and kind, once, and print it.
    #[arg(long, requires = "seed", requires = "kind", conflicts_with = "replay")]
    case: Option<u64>,
    /// Run only the case in this file.
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Print every segment of the single case.
    #[arg(long)]
    segments: bool,
    /// Duration in seconds.
    #[arg(long, default_value_t = 3600)]
    seconds: u64,
    /// The first case of each kind.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Maximum number of cases of each kind.
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,
    /// Seconds for making a case smaller that fails in a new way.
    #[arg(long, default_value_t = 60)]
    shrink_seconds: u64,
    /// Folder for failing cases.
    #[arg(long, default_value = "out/soak")]
    out: PathBuf,
}

#[expect(clippy::disallowed_methods, reason = "a person wants a new seed each time")]
fn seed_of_the_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

#[expect(clippy::disallowed_methods, reason = "progress is told in real time")]
fn clock() -> Instant {
    Instant::now()
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match (&arguments.replay, arguments.case, arguments.seed, arguments.kind) {
        (Some(file), _, _, kind) => replay(file, kind, arguments.segments),
        (None, Some(number), Some(seed), Some(kind)) => Ok(show_and_run(kind, seed, number, arguments.segments)),
        _ => Ok(soak(&arguments)),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::from(2)
        }
    }
}

/// Runs the case in a file. Its text determines the kind, unless one is given.
fn replay(file: &Path, kind: Option<&'static Registration>, list: bool) -> Result<bool, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut refusals = Vec::new();
    for kind in KINDS.iter().filter(|known| kind.is_none_or(|kind| kind.name == known.name)) {
        match (kind.replay)(&text, list) {
            Ok(outcome) => return Ok(tell_outcome(&outcome)),
            Err(refusal) => refusals.push(format!("no {} case: {refusal}", kind.name)),
        }
    }
    Err(format!("{}: {}", file.display(), refusals.join("\n")))
}

fn show_and_run(kind: &Registration, seed: u64, number: u64, list: bool) -> bool {
    let drawn = (kind.draw)(seed, number);
    println!("{}", drawn.text());
    tell_outcome(&if list { drawn.list_it() } else { drawn.try_it() })
}

fn tell_outcome(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Passed(numbers) => {
            println!("passed: {numbers:?}");
            true
        }
        Outcome::CutShort => {
            println!("cut short: it takes too many events");
            true
        }
        Outcome::Failed(fault) => {
            println!("failed: {}\n{}", fault.kind, fault.detail);
            false
        }
    }
}

fn soak(arguments: &Arguments) -> bool {
    let seed = arguments.seed.unwrap_or_else(seed_of_the_clock);
    let plan = Plan {
        seed,
        first: arguments.first,
        cases_max: arguments.cases,
        time: Duration::from_secs(arguments.seconds),
        shrinking_time: Duration::from_secs(arguments.shrink_seconds),
    };
    let kinds: Vec<&Registration> = arguments.kind.map_or_else(|| KINDS.iter().collect(), |kind| vec![kind]);
    let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
    println!("seed {seed}, {}, for {} s: the same again with SEED={seed}", names.join(" and "), arguments.seconds);
    let begin = clock();
    let at = Arc::default();
    watch_for_hangs(seed, Arc::clone(&at));
    let done = campaign(&plan, &kinds, &mut Told { seed, out: &arguments.out, at, begin, told: begin });
    tell_end(seed, &plan, &done, begin.elapsed());
    done.iter().all(|campaign| campaign.failures.is_empty())
}

/// The case that runs now.
type At = Arc<Mutex<Option<(&'static str, u64)>>>;

/// Reports progress to a person.
struct Told<'a> {
    seed: u64,
    out: &'a Path,
    at: At,
    begin: Instant,
    told: Instant,
}

impl Listener for Told<'_> {
    fn begins(&mut self, kind: &'static Registration, number: u64) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some((kind.name, number));
    }

    fn ended(&mut self, campaigns: &[Campaign]) {
        if self.told.elapsed() >= TELL_EVERY {
            self.told = clock();
            campaigns.iter().for_each(|campaign| println!("{}", progress(campaign, self.begin.elapsed())));
        }
    }

    fn failed(&mut self, campaign: &Campaign, failure: &Failure) {
        let (seed, kind) = (self.seed, campaign.kind);
        println!("FAILED: {}", failure.smallest.fault.kind);
        println!("  as drawn: make soak KIND={} SEED={seed} CASE={}", kind.name, failure.numbers[0]);
        match failure.write(kind, seed, self.out) {
            Ok(file) => println!("  made smaller: make soak REPLAY={}", file.display()),
            Err(error) => {
                let text = failure.describe(kind, seed);
                println!("  the smaller case cannot be written to {}: {error}\n{text}", self.out.display());
            }
        }
    }
}

/// Ends the program if a case does not end; time for shrinking counts for its case.
fn watch_for_hangs(seed: u64, at: At) {
    let now = move || *at.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::spawn(move || {
        loop {
            let before = now();
            std::thread::park_timeout(CASE_TIME_MAX);
            if let Some((kind, number)) = before.filter(|_| now() == before) {
                let seconds = CASE_TIME_MAX.as_secs();
                println!(
                    "FAILED: a case takes longer than {seconds} s: make soak KIND={kind} SEED={seed} CASE={number}"
                );
                std::process::exit(1);
            }
        }
    });
}

fn progress(campaign: &Campaign, elapsed: Duration) -> String {
    let (dimensions, values) = campaign.coverage.size();
    let rate = campaign.cases as f64 / elapsed.as_secs_f64();
    format!(
        "{:>6} s  {:<9} {:>8} cases, {rate:.1}/s; {:>5} failed in {} ways; {values} values of {dimensions} dimensions; {} h simulated",
        elapsed.as_secs(),
        campaign.kind.name,
        campaign.cases,
        campaign.failed(),
        campaign.failures.len(),
        campaign.numbers.seconds / 3600
    )
}

fn tell_end(seed: u64, plan: &Plan, done: &[Campaign], elapsed: Duration) {
    for campaign in done {
        println!("\n{} cases, drawn, in how many of them:\n{}", campaign.kind.name, campaign.coverage);
        println!("{}", progress(campaign, elapsed));
        println!(
            "{} connections, {:.1} GB received, {} million events; {} cases cut short",
            campaign.numbers.connections,
            campaign.numbers.received_bytes as f64 / 1e9,
            campaign.numbers.events / 1_000_000,
            campaign.cut_short
        );
    }
    for campaign in done {
        for (fault, failure) in &campaign.failures {
            println!("FAILED {} times: {fault}\n  {} cases {:?}", failure.count, campaign.kind.name, failure.numbers);
        }
    }
    if done.iter().any(|campaign| !campaign.failures.is_empty()) {
        println!("Next: read the files of the cases that failed; pin each in tests/soak/regressions once it passes.");
        return;
    }
    println!("All held. Next: another seed, or go on:");
    for campaign in done {
        println!("  make soak KIND={} SEED={seed} FIRST={}", campaign.kind.name, plan.first + campaign.cases);
    }
}
