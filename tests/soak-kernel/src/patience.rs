//! Waiting in real time. Patience is counted in polls, not in time: a machine that stands still for seconds uses up one of them.

use std::thread;
use std::time::Duration;

/// Between two looks.
const POLL: Duration = Duration::from_millis(20);
/// Looks in a second of a machine that runs.
pub const POLLS_PER_SECOND: u32 = 50;

/// Lets a moment pass.
pub fn pause() {
    pause_for(POLL);
}

/// Lets time pass.
#[expect(clippy::disallowed_methods, reason = "kernels work in real time")]
pub fn pause_for(time: Duration) {
    thread::sleep(time);
}
