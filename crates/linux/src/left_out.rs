//! Tests that this machine cannot run.

/// Prints one line about `what`, a test or a part of one, that is left out.
///
/// # Panics
/// If `CI` is `true`, which relies on all tests.
#[track_caller]
pub fn leave_out(what: &str, why: impl core::fmt::Display) {
    let line = format!("left out: {what}: {why}");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{line} (CI leaves nothing out)");
    eprintln!("{line}");
}

/// Returns whether this process is root's, which `what` takes; otherwise leaves it out.
#[track_caller]
pub fn is_root(what: &str) -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        leave_out(what, "that takes root");
    }
    is
}
