//! Waiting in real time. Waits are counted in polls, not in time: a machine that pauses for seconds uses only one poll.

use std::thread;
use std::time::Duration;

/// Interval between polls.
const POLL: Duration = Duration::from_millis(20);
/// Polls per second if the machine does not pause.
pub const POLLS_PER_SECOND: u32 = 50;

/// Sleeps for one poll.
pub fn pause() {
    pause_for(POLL);
}

/// Sleeps for `time`.
#[expect(clippy::disallowed_methods, reason = "kernels work in real time")]
pub fn pause_for(time: Duration) {
    thread::sleep(time);
}
