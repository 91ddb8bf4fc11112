//! Whether this machine can run the tests.

use std::fmt::Display;
use std::sync::OnceLock;

use linux::ability::{Needs, has, rehearse};

/// Whether the tests can run here; says why not.
///
/// # Panics
/// If they cannot although `CI` is `true`.
pub fn available() -> bool {
    static LACKING: OnceLock<Option<String>> = OnceLock::new();
    let rehearsed = || rehearse(Needs { kernel_mptcp: true, ..Needs::default() }).err().map(|error| error.to_string());
    match LACKING.get_or_init(rehearsed) {
        Some(lacking) => leave_out(&format!("interop tests: {lacking}")),
        None => true,
    }
}

/// As [`available`], and whether these programs are there, each with Debian's name of its package.
///
/// # Panics
/// As [`available`].
pub fn available_with(programs: &[(&str, &str)]) -> bool {
    let missing: Vec<&str> =
        programs.iter().filter(|(program, _)| !has(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return available();
    }
    leave_out(&format!("interop tests with other programs (apt-get install {})", missing.join(" ")))
}

/// As [`available`], unless something else is lacking.
///
/// # Panics
/// As [`available`].
pub fn available_unless(what: &str, lacking: Option<impl Display>) -> bool {
    match lacking {
        Some(lacking) => leave_out(&format!("interop tests of {what}: {lacking}")),
        None => available(),
    }
}

/// A person is told in one line what is left out; whoever relies on the tests must not miss it.
fn leave_out(what: &str) -> bool {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "left out: {what} (CI leaves nothing out)");
    eprintln!("left out: {what}");
    false
}
