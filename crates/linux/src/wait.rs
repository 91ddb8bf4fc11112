//! Waiting for devices and for the time, to the microsecond.

use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use units::{Duration, Instant};

use crate::clock::Clock;
use crate::{Error, Result};

/// Waits until one of `devices` can be read, `until` has come or `stop` was triggered. Tells which devices can be
/// read in `ready`; false means stop.
///
/// # Errors
/// If a device is gone.
pub(crate) fn wait(
    clock: &Clock,
    until: Option<Instant>,
    stop: BorrowedFd<'_>,
    devices: &[BorrowedFd<'_>],
    ready: &mut Vec<usize>,
) -> Result<bool> {
    ready.clear();
    let mut fds = smallvec::SmallVec::<[PollFd<'_>; 16]>::new();
    fds.push(PollFd::from_borrowed_fd(stop, PollFlags::IN));
    fds.extend(devices.iter().map(|device| PollFd::from_borrowed_fd(*device, PollFlags::IN)));
    let timeout = until.map(|until| timespec(until.saturating_since(clock.now())));
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(true),
        Err(errno) => return Err(Error::system("wait for packets")(errno)),
    }
    ready.extend((0..devices.len()).filter(|index| !fds[index + 1].revents().is_empty()));
    Ok(fds[0].revents().is_empty())
}

/// Wakes the calling thread as soon as its time has come. By default the kernel may be 50 us late, to save energy.
pub(crate) fn be_punctual() {
    // Where the kernel refuses, times are less exact and all else works.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

fn timespec(span: Duration) -> Timespec {
    const NANOS_PER_SEC: u64 = 1_000_000_000;
    let nanos = span.as_nanos();
    Timespec { tv_sec: (nanos / NANOS_PER_SEC) as i64, tv_nsec: (nanos % NANOS_PER_SEC) as _ }
}
