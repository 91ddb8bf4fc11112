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
