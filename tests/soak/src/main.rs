//! Runs random scenarios for as long as one likes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use soak::campaign::{Campaign, Failure, Plan, campaign};
use soak::case::Case;
use soak::hunt::{draw, list_case, try_case};
use soak::run::Outcome;

/// A line of progress comes this often.
const TELL_EVERY: Duration = Duration::from_secs(15);
/// A case that takes longer hangs: nothing else can be said of it from inside.
const CASE_TIME_MAX: Duration = Duration::from_secs(600);

/// Random scenarios in virtual time, with everything watched that must hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// All cases grow from it; drawn from the clock unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// Only this case of the seed, as text, run once.
    #[arg(long, requires = "seed", conflicts_with = "replay")]
    case: Option<u64>,
    /// Only the case in this file.
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Print every segment of the one case.
    #[arg(long)]
    segments: bool,
    /// How long to go on.
    #[arg(long, default_value_t = 3600)]
    seconds: u64,
    /// The first case.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Cases at most.
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,
    /// Seconds spent on making a case smaller that fails in a new way.
    #[arg(long, default_value_t = 60)]
    shrink_seconds: u64,
    /// Where cases that fail are written.
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
    let result = match (&arguments.replay, arguments.case, arguments.seed) {
        (Some(file), ..) => read(file).map(|case| replay(&case, arguments.segments)),
        (None, Some(number), Some(seed)) => Ok(show_and_replay(&draw(seed, number).case(), arguments.segments)),
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

fn read(file: &Path) -> Result<Case, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Case::parse(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn show_and_replay(case: &Case, list: bool) -> bool {
    println!("{}", case.to_text());
    replay(case, list)
}

fn replay(case: &Case, list: bool) -> bool {
    match if list { list_case(case) } else { try_case(case) } {
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
    println!("seed {seed}, for {} s: the same again with SEED={seed}", arguments.seconds);
    let begin = clock();
    let at = Arc::new(AtomicU64::new(plan.first));
    watch_for_hangs(seed, at.clone());
    let mut told = begin;
    let done = campaign(&plan, &mut |campaign, number, failure| {
        at.store(number + 1, Ordering::Relaxed);
        if let Some(failure) = failure {
            tell_failure(seed, &arguments.out, failure);
        }
        if told.elapsed() >= TELL_EVERY {
            told = clock();
            println!("{}", progress(campaign, begin.elapsed()));
        }
    });
    tell_end(seed, &plan, &done, begin.elapsed());
    done.failures.is_empty()
}

/// Ends the program if a case does not: shrinking counts as the case that it is about.
fn watch_for_hangs(seed: u64, at: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        loop {
            let before = at.load(Ordering::Relaxed);
            std::thread::park_timeout(CASE_TIME_MAX);
            if at.load(Ordering::Relaxed) == before {
                println!(
                    "FAILED: case {before} takes longer than {} s: make soak SEED={seed} CASE={before}",
                    CASE_TIME_MAX.as_secs()
                );
                std::process::exit(1);
            }
        }
    });
}

fn tell_failure(seed: u64, out: &Path, failure: &Failure) {
    println!("FAILED: {}", failure.smallest.fault.kind);
    println!("  as drawn: make soak SEED={seed} CASE={}", failure.numbers[0]);
    match failure.write(seed, out) {
        Ok(file) => println!("  made smaller: make soak REPLAY={}", file.display()),
        Err(error) => {
            println!("  the smaller case cannot be written to {}: {error}\n{}", out.display(), failure.describe(seed))
        }
    }
}

fn progress(campaign: &Campaign, elapsed: Duration) -> String {
    let (dimensions, values) = campaign.coverage.size();
    let rate = campaign.cases as f64 / elapsed.as_secs_f64();
    let failed: u64 = campaign.failures.values().map(|failure| failure.count).sum();
    format!(
        "{:>6} s  {:>8} cases, {rate:.1}/s; {:>5} failed in {} ways; {values} values of {dimensions} dimensions; {} h simulated",
        elapsed.as_secs(),
        campaign.cases,
        failed,
        campaign.failures.len(),
        campaign.numbers.seconds / 3600
    )
}

fn tell_end(seed: u64, plan: &Plan, done: &Campaign, elapsed: Duration) {
    println!("\ndrawn, in how many cases:\n{}", done.coverage);
    println!("{}", progress(done, elapsed));
    println!(
        "{} connections, {:.1} GB received, {} million events; {} cases cut short",
        done.numbers.connections,
        done.numbers.received_bytes as f64 / 1e9,
        done.numbers.events / 1_000_000,
        done.cut_short
    );
    for (kind, failure) in &done.failures {
        println!("FAILED {} times: {kind}\n  cases {:?}", failure.count, failure.numbers);
    }
    match done.failures.is_empty() {
        true => println!("All held. Next: another seed, or go on with SEED={seed} FIRST={}", plan.first + done.cases),
        false => println!(
            "Next: read the files of the cases that failed; pin each in tests/soak/regressions once it passes."
        ),
    }
}
