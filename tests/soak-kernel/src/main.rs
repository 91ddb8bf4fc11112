//! Runs random cases against this machine's kernel for any length of time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use linux::ability::{Needs, rehearse};
use linux::clock::Clock;
use soak_kernel::campaign::{Campaign, Failure, Plan, campaign};
use soak_kernel::case::Case;
use soak_kernel::draw::draw;
use soak_kernel::trial::{Outcome, try_case};
use units::{Duration, Instant};

/// Interval between lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(15);
/// A case that takes longer, including its repetitions, hangs; this process cannot find out why.
const CASE_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(1200);

/// Random settings of the kernel's MPTCP and of the engine, against each other over emulated paths, in real time (root).
#[derive(Debug, Parser)]
struct Arguments {
    /// Seed of all cases; by default from the clock.
    #[arg(long)]
    seed: Option<u64>,
    /// Run only this case of the seed, and print it.
    #[arg(long, requires = "seed", conflicts_with = "replay")]
    case: Option<u64>,
    /// Run only the case in this file.
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Print every segment of the engine in the single case.
    #[arg(long)]
    segments: bool,
    /// Duration in seconds.
    #[arg(long, default_value_t = 900)]
    seconds: u64,
    /// The first case.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Maximum number of cases.
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,
    /// Number of repetitions of a failing case; also number of runs that a simpler one must pass to count as passing.
    #[arg(long, default_value_t = 3)]
    tries: u32,
    /// Seconds for making a case smaller that fails in a new way.
    #[arg(long, default_value_t = 120)]
    shrink_seconds: u64,
    /// Folder for failing cases.
    #[arg(long, default_value = "out/soak")]
    out: PathBuf,
}

#[expect(clippy::disallowed_methods, reason = "a person wants a new seed each time")]
fn seed_of_the_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(lacking) = rehearse(Needs { kernel_mptcp: true, ..Needs::default() }) {
        left_out::leave_out("the soak against the kernel", lacking);
        return ExitCode::SUCCESS;
    }
    let result = match (&arguments.replay, arguments.case, arguments.seed) {
        (Some(file), ..) => read(file).map(|case| replay(&case, arguments.segments)),
        (None, Some(number), Some(seed)) => Ok(show_and_replay(&draw(seed, number), arguments.segments)),
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

fn show_and_replay(case: &Case, lists: bool) -> bool {
    println!("{}", case.to_text());
    replay(case, lists)
}

fn replay(case: &Case, lists: bool) -> bool {
    match try_case(case, lists) {
        Outcome::Passed(numbers) => {
            println!("passed: {numbers:?}");
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
        tries: arguments.tries,
    };
    println!(
        "against the kernel: seed {seed}, for {} s: the same cases with KIND=kernel SEED={seed}",
        arguments.seconds
    );
    let clock = Clock::start();
    let at = Arc::new(AtomicU64::new(plan.first));
    watch_for_hangs(seed, at.clone());
    let mut told = Instant::ZERO;
    let done = campaign(&plan, &mut |campaign, number, failure| {
        at.store(number + 1, Ordering::Relaxed);
        if let Some(failure) = failure {
            tell_failure(seed, &arguments.out, failure);
        }
        if clock.now() >= told + TELL_EVERY {
            told = clock.now();
            println!("{}", progress(campaign, told));
        }
    });
    tell_end(seed, &plan, &done, clock.now());
    done.failures.is_empty()
}

/// Ends the program if a case does not end; namespaces and devices vanish with it.
fn watch_for_hangs(seed: u64, at: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        loop {
            let before = at.load(Ordering::Relaxed);
            std::thread::park_timeout(CASE_TIME_MAX);
            if at.load(Ordering::Relaxed) == before {
                println!(
                    "FAILED: case {before} takes longer than {} s: make soak KIND=kernel SEED={seed} CASE={before}",
                    CASE_TIME_MAX.as_secs()
                );
                std::process::exit(1);
            }
        }
    });
}

fn tell_failure(seed: u64, out: &Path, failure: &Failure) {
    let number = failure.numbers.first().copied().unwrap_or_default();
    println!("FAILED {}: {}", failure.rate, failure.smallest.fault.kind);
    println!("  as drawn: make soak KIND=kernel SEED={seed} CASE={number}");
    match failure.write(seed, out) {
        Ok(file) => println!("  made smaller: make soak KIND=kernel REPLAY={}", file.display()),
        Err(error) => {
            println!("  the smaller case cannot be written to {}: {error}\n{}", out.display(), failure.describe(seed))
        }
    }
}

fn progress(campaign: &Campaign, elapsed: Instant) -> String {
    let (dimensions, values) = campaign.coverage.size();
    let failed: usize = campaign.failures.values().map(|failure| failure.numbers.len()).sum();
    format!(
        "{:>6} s  {:>6} cases; {failed:>4} failed in {} ways; {values} values of {dimensions} dimensions",
        elapsed.as_millis() / 1000,
        campaign.cases,
        campaign.failures.len(),
    )
}

fn tell_end(seed: u64, plan: &Plan, done: &Campaign, elapsed: Instant) {
    println!("\ndrawn, in how many cases:\n{}", done.coverage);
    println!("{}", progress(done, elapsed));
    println!(
        "{} connections, {} of them over MPTCP to the end, with {} subflows in all; {:.1} MB received",
        done.numbers.connections,
        done.numbers.over_mptcp,
        done.numbers.subflows,
        done.numbers.received_bytes as f64 / 1e6,
    );
    if !done.numbers.lacking.is_empty() {
        let lacking: Vec<_> = done.numbers.lacking.iter().map(String::as_str).collect();
        println!("this kernel cannot be set to: {}", lacking.join(", "));
    }
    for (kind, failure) in &done.failures {
        println!(
            "FAILED {} times, the first one {}: {kind}\n  cases {:?}",
            failure.numbers.len(),
            failure.rate,
            failure.numbers
        );
    }
    match done.failures.is_empty() {
        true => println!(
            "All held. Next: another seed, or go on with KIND=kernel SEED={seed} FIRST={}",
            plan.first + done.cases
        ),
        false => {
            println!("Next: read the files of the cases that failed, and run them again with REPLAY=, with SEGMENTS=1.")
        }
    }
}
