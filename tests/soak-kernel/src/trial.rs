//! Runs a case more than once: a failure in real time may be intermittent.

use soak::outcome::Fault;

use crate::case::Case;
pub use crate::run::{Numbers, Outcome};

/// Runs a case once; prints every segment of the engine if `lists`.
pub fn try_case(case: &Case, lists: bool) -> Outcome {
    crate::run::run(case, lists)
}

/// How often a case fails in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Runs that failed in this way.
    pub failed: u32,
    /// All runs.
    pub of: u32,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.failed == self.of {
            true => write!(f, "always ({} of {})", self.failed, self.of),
            false => write!(f, "sometimes ({} of {})", self.failed, self.of),
        }
    }
}

/// Runs a failed case again, `tries` times.
pub fn repeat(case: &Case, fault: &Fault, tries: u32) -> Rate {
    let again = (0..tries).filter(|_| fails(case, fault).is_some()).count();
    Rate { failed: 1 + again as u32, of: 1 + tries }
}

/// Runs a case up to `tries` times; returns the fault if it fails in the same way as `fault`.
pub fn fails_within(case: &Case, fault: &Fault, tries: u32) -> Option<Fault> {
    (0..tries).find_map(|_| fails(case, fault))
}

fn fails(case: &Case, fault: &Fault) -> Option<Fault> {
    match try_case(case, false) {
        Outcome::Failed(found) if found.kind == fault.kind => Some(found),
        _ => None,
    }
}
