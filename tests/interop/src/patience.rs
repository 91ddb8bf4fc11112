//! Waiting for what other threads, other processes and the kernel do.
//!
//! Patience is counted in polls, not in time: a machine that stands still for seconds uses up one of them.

use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(20);
/// Half a minute of a machine that runs.
const POLLS_MAX: u32 = 1500;

/// Waits until `holds` does.
///
/// # Panics
/// If it does not in time.
#[expect(clippy::disallowed_methods, reason = "others work in real time")]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..POLLS_MAX {
        if holds() {
            return;
        }
        thread::sleep(INTERVAL);
    }
    assert!(holds(), "waited in vain until {what}");
}

/// Measures something in real time until it is as it should be, three times at most: others use this machine too, and what is broken is so every time.
///
/// # Errors
/// What was wrong each time, if it never was as it should be.
pub fn in_three_tries(mut measure: impl FnMut() -> Result<(), String>) -> Result<(), Vec<String>> {
    let mut wrong = Vec::new();
    while wrong.len() < 3 {
        match measure() {
            Ok(()) => return Ok(()),
            Err(what) => wrong.push(what),
        }
    }
    Err(wrong)
}
