//! A short soak against this machine's kernel, and cases that once failed.

use std::path::Path;

use interop::available;
use soak_kernel::campaign::{Plan, campaign};
use soak_kernel::case::Case;
use soak_kernel::draw::draw;
use soak_kernel::trial::{Outcome, try_case};
use units::Duration;

/// Drawn once; it has no special properties.
const SEED: u64 = 8684;
/// No case starts after this time; their number depends on the machine.
const SECONDS: u64 = 8;
const CASES_MAX: u64 = 8;

#[test]
fn a_few_cases_hold() {
    if !available() {
        return;
    }
    let plan = Plan {
        seed: SEED,
        first: 0,
        cases_max: CASES_MAX,
        time: Duration::from_secs(SECONDS),
        shrinking_time: Duration::from_secs(60),
        tries: 2,
    };
    let done = campaign(&plan, &mut |_, _, _| {});
    let failures: Vec<_> = done.failures.values().map(|failure| failure.describe(SEED)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(done.numbers.connections > 0, "no connection was opened: {:?}", done.numbers);
}

#[test]
fn cases_that_once_failed_hold() {
    if !available() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let file = entry.expect("it can be read").path();
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let case = Case::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        match try_case(&case, false) {
            Outcome::Passed(_) => {}
            other => panic!("{}: {other:?}", file.display()),
        }
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[test]
fn a_case_is_drawn_from_its_seed_and_its_text_says_all_of_it() {
    for number in 0..300 {
        let case = draw(SEED, number);
        assert_eq!(case, draw(SEED, number));
        assert_ne!(case, draw(SEED + 1, number));
        let read = Case::parse(&case.to_text()).unwrap_or_else(|error| panic!("{error}\n{}", case.to_text()));
        assert_eq!(read, case);
    }
}
