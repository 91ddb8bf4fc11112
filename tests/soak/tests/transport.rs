//! A short soak of the transport level, the same each time, and the cases that once failed.

use soak::hunt;
use soak::kind::{Kind, Registration, find};
use soak::transport::Transport;

use crate::support::{SEED, check_regressions, run_some};

fn transport() -> &'static Registration {
    find("transport").expect("it is registered")
}

#[test]
fn some_hundred_cases_of_the_transport_level_hold() {
    let done = run_some(transport(), 300);
    assert!(done.numbers.received_bytes > 10_000_000, "the cases do next to nothing: {:?}", done.numbers);
}

#[test]
fn cases_that_once_failed_hold() {
    check_regressions(transport());
}

#[test]
fn a_case_is_drawn_from_its_seed_and_runs_alike_each_time() {
    for number in 0..10 {
        let case = hunt::case::<Transport>(SEED, number);
        assert_eq!(case, hunt::case::<Transport>(SEED, number));
        assert_ne!(case, hunt::case::<Transport>(SEED + 1, number));
        assert_eq!(hunt::try_case::<Transport>(&case), hunt::try_case::<Transport>(&case));
    }
}

#[test]
fn the_text_of_a_case_says_all_of_it() {
    for number in 0..200 {
        let case = hunt::case::<Transport>(SEED, number);
        let text = Transport::to_text(&case);
        let read = Transport::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, case);
    }
}
