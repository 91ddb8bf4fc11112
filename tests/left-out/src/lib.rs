//! Tests that this machine cannot run: they say so in one line and pass, but fail where all tests are relied upon.

use std::fmt::Display;
use std::os::unix::fs::MetadataExt as _;

/// Prints one line about `what`, a test or a part of one, that is left out.
///
/// # Panics
/// If `CI` is `true`, which relies on all tests.
#[track_caller]
pub fn leave_out(what: &str, why: impl Display) {
    let line = format!("left out: {what}: {why}");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{line} (CI leaves nothing out)");
    eprintln!("{line}");
}

/// Returns whether this process is root's, which `what` takes; otherwise leaves it out.
///
/// # Panics
/// As [`leave_out`].
#[track_caller]
pub fn is_root(what: &str) -> bool {
    // The owner of a process's folder is its effective user.
    let is = std::fs::metadata("/proc/self").is_ok_and(|folder| folder.uid() == 0);
    if !is {
        leave_out(what, "that takes root");
    }
    is
}
