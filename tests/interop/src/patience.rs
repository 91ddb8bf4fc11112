//! Waiting for other threads, other processes and the kernel.
//!
//! Waits are counted in polls, not in time: a machine that pauses for seconds uses only one poll.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(20);
/// Half a minute if the machine does not pause.
const POLLS_MAX: u32 = 1500;

/// Tells another thread to end when it is dropped, also if the test fails.
pub struct Ended<'a>(pub &'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until `holds` returns true.
///
/// # Panics
/// If it does not within the polls.
pub fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    assert!(holds_in_time(holds), "waited in vain until {what}");
}

/// Waits for `holds` to return true, and returns whether it did within the polls.
#[expect(clippy::disallowed_methods, reason = "others work in real time")]
pub(crate) fn holds_in_time(mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..POLLS_MAX {
        if holds() {
            return true;
        }
        thread::sleep(INTERVAL);
    }
    holds()
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
