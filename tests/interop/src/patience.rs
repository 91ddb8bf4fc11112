//! Waiting for other threads, other processes and the kernel.
//!
//! Waits are counted in polls, not in time: a machine that pauses for seconds uses only one poll.

use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(20);
/// Half a minute if the machine does not pause.
const POLLS_MAX: u32 = 1500;

/// Waits until `holds` returns true.
///
/// # Panics
/// If it does not within the polls.
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

/// Measures something in real time until the result is right, at most three times: other programs use this machine too,
/// but a real fault fails every time.
///
/// # Errors
/// The problem of each try, if none was right.
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
