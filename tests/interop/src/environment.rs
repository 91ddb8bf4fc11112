//! Checks whether this machine can run the tests.

use std::fmt::Display;
use std::sync::OnceLock;

use linux::ability::{Needs, has, rehearse};

/// Returns whether the tests can run here; if not, prints the reason.
///
/// # Panics
/// If they cannot and `CI` is `true`.
pub fn available() -> bool {
    static LACKING: OnceLock<Option<String>> = OnceLock::new();
    let rehearsed = || rehearse(Needs { kernel_mptcp: true, ..Needs::default() }).err().map(|error| error.to_string());
    match LACKING.get_or_init(rehearsed) {
        Some(lacking) => leave_out("interop tests", lacking),
        None => true,
    }
}

/// Does the same as [`available`], and checks for these programs, each with the Debian name of its package.
///
/// # Panics
/// Those of [`available`].
pub fn available_with(programs: &[(&str, &str)]) -> bool {
    let missing: Vec<&str> =
        programs.iter().filter(|(program, _)| !has(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return available();
    }
    leave_out("interop tests with other programs", format!("apt-get install {}", missing.join(" ")))
}

/// Does the same as [`available`], unless something else is missing.
///
/// # Panics
/// Those of [`available`].
pub fn available_unless(what: &str, lacking: Option<impl Display>) -> bool {
    match lacking {
        Some(lacking) => leave_out(&format!("interop tests of {what}"), lacking),
        None => available(),
    }
}

/// Leaves tests out; returns false.
fn leave_out(what: &str, why: impl Display) -> bool {
    left_out::leave_out(what, why);
    false
}
