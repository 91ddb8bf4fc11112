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
        Some(lacking) => leave_out(&format!("interop tests: {lacking}")),
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
    leave_out(&format!("interop tests with other programs (apt-get install {})", missing.join(" ")))
}

/// Does the same as [`available`], unless something else is missing.
///
/// # Panics
/// Those of [`available`].
pub fn available_unless(what: &str, lacking: Option<impl Display>) -> bool {
    match lacking {
        Some(lacking) => leave_out(&format!("interop tests of {what}: {lacking}")),
        None => available(),
    }
}

/// Prints one line about the tests that are left out; panics if `CI` is `true`, which relies on all tests.
fn leave_out(what: &str) -> bool {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "left out: {what} (CI leaves nothing out)");
    eprintln!("left out: {what}");
    false
}
