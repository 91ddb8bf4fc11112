//! Helpers for the tests of all kinds.

use std::path::Path;
use std::time::Duration;

use soak::campaign::{Campaign, Failure, Listener, Plan, campaign};
use soak::kind::Registration;
use soak::outcome::Outcome;

/// Drawn once; it has no special properties.
pub const SEED: u64 = 8684;

struct Silent;

impl Listener for Silent {
    fn begins(&mut self, _: &'static Registration, _: u64) {}

    fn ended(&mut self, _: &[Campaign]) {}

    fn failed(&mut self, _: &Campaign, _: &Failure) {}
}

/// Runs the first cases of a kind, none of which may fail or be cut short.
pub fn run_some(kind: &'static Registration, cases: u64) -> Campaign {
    let shrinking_time = Duration::from_secs(60);
    let plan = Plan { seed: SEED, first: 0, cases_max: cases, time: Duration::MAX, shrinking_time };
    let done = campaign(&plan, &[kind], &mut Silent).pop().expect("there is one kind");
    let failures: Vec<_> = done.failures.values().map(|failure| failure.describe(kind, SEED)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert_eq!((done.cases, done.cut_short), (cases, 0));
    done
}

/// Runs the cases of a kind that failed once.
pub fn check_regressions(kind: &Registration) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(kind.name);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let file = entry.expect("it can be read").path();
        let text = std::fs::read_to_string(&file).expect("it can be read");
        match (kind.replay)(&text, false).unwrap_or_else(|error| panic!("{}: {error}", file.display())) {
            Outcome::Passed(_) => {}
            other => panic!("{}: {other:?}", file.display()),
        }
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}
