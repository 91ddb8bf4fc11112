//! A short soak, the same each time, and the cases that once failed.

use std::path::Path;
use std::time::Duration;

use soak::campaign::{Plan, campaign};
use soak::case::Case;
use soak::hunt::{draw, try_case};
use soak::run::Outcome;

/// Drawn once; nothing is special about it.
const SEED: u64 = 8684;
const CASES: u64 = 300;

#[test]
fn some_hundred_cases_hold() {
    let plan =
        Plan { seed: SEED, first: 0, cases_max: CASES, time: Duration::MAX, shrinking_time: Duration::from_secs(60) };
    let done = campaign(&plan, &mut |_, _, _| {});
    let failures: Vec<_> = done.failures.values().map(|failure| failure.describe(SEED)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert_eq!((done.cases, done.cut_short), (CASES, 0));
    assert!(done.numbers.received_bytes > 10_000_000, "the cases do next to nothing: {:?}", done.numbers);
}

#[test]
fn cases_that_once_failed_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let file = entry.expect("it can be read").path();
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let case = Case::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        match try_case(&case) {
            Outcome::Passed(_) => {}
            other => panic!("{}: {other:?}", file.display()),
        }
    }
}

#[test]
fn a_case_is_drawn_from_its_seed_and_runs_alike_each_time() {
    for number in 0..10 {
        let case = draw(SEED, number).case();
        assert_eq!(case, draw(SEED, number).case());
        assert_ne!(case, draw(SEED + 1, number).case());
        assert_eq!(try_case(&case), try_case(&case));
    }
}

#[test]
fn the_text_of_a_case_says_all_of_it() {
    for number in 0..200 {
        let case = draw(SEED, number).case();
        let read = Case::parse(&case.to_text()).unwrap_or_else(|error| panic!("{error}\n{}", case.to_text()));
        assert_eq!(read, case);
    }
}
