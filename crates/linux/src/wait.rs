//! Waits for devices and for a time, to the microsecond.

use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use units::{Duration, Instant};

use crate::clock::Clock;
use crate::{Error, Result};

/// A watchful loop stops sleeping this long before its time, because the kernel may take this long to wake it.
const WATCH: Duration = Duration::from_micros(100);
/// If a look without anything to do takes longer than this, another thread wanted the core.
const LOOK_MAX: Duration = Duration::from_micros(100);
/// How long the loop then only sleeps: a thread that needs little of a core gets it sooner than one that takes all of
/// it.
const REST: Duration = Duration::from_millis(20);

/// Waits until one of `devices` is readable, `until` has come or `stop` is triggered. Puts the readable devices into
/// `ready`; false means stop.
///
/// # Errors
/// If a device is gone.
pub fn wait<'a>(
    clock: &Clock,
    until: Option<Instant>,
    stop: BorrowedFd<'a>,
    devices: impl IntoIterator<Item = BorrowedFd<'a>>,
    ready: &mut Vec<usize>,
) -> Result<bool> {
    let mut fds = poll_fds(stop, devices);
    look(&mut fds, until.map(|until| until.saturating_since(clock.now())), ready)
}

/// Waits for a time without waking too late, while a core is free: it does not sleep for the last [`WATCH`].
#[derive(Debug)]
pub(crate) struct Watch {
    resting_until: Instant,
}

impl Default for Watch {
    fn default() -> Self {
        Self { resting_until: Instant::ZERO }
    }
}

impl Watch {
    /// Like [`wait`].
    ///
    /// # Errors
    /// As [`wait`].
    pub(crate) fn wait<'a>(
        &mut self,
        clock: &Clock,
        until: Option<Instant>,
        stop: BorrowedFd<'a>,
        devices: impl IntoIterator<Item = BorrowedFd<'a>>,
        ready: &mut Vec<usize>,
    ) -> Result<bool> {
        let mut fds = poll_fds(stop, devices);
        loop {
            let now = clock.now();
            let left = until.map(|until| until.saturating_since(now));
            let sleep = if now < self.resting_until { left } else { left.map(|left| left.saturating_sub(WATCH)) };
            let goes_on = look(&mut fds, sleep, ready)?;
            let after = clock.now();
            if sleep == Some(Duration::ZERO) && after.saturating_since(now) > LOOK_MAX {
                self.resting_until = after + REST;
            }
            if !goes_on || !ready.is_empty() || until.is_some_and(|until| until <= after) {
                return Ok(goes_on);
            }
        }
    }
}

type PollFds<'a> = smallvec::SmallVec<[PollFd<'a>; 16]>;

fn poll_fds<'a>(stop: BorrowedFd<'a>, devices: impl IntoIterator<Item = BorrowedFd<'a>>) -> PollFds<'a> {
    core::iter::once(stop).chain(devices).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect()
}

/// Waits once, for `patience` at most.
fn look(fds: &mut PollFds<'_>, patience: Option<Duration>, ready: &mut Vec<usize>) -> Result<bool> {
    ready.clear();
    match poll(fds, patience.map(timespec).as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(true),
        Err(errno) => return Err(Error::system("wait for packets")(errno)),
    }
    ready.extend((1..fds.len()).filter(|index| !fds[*index].revents().is_empty()).map(|index| index - 1));
    Ok(fds[0].revents().is_empty())
}

/// Makes the kernel wake the calling thread exactly at its time. By default it may be 50 us late, to save energy.
pub(crate) fn be_punctual() {
    // If the kernel refuses, times are less exact but everything else works.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

fn timespec(span: Duration) -> Timespec {
    const NANOS_PER_SEC: u64 = 1_000_000_000;
    let nanos = span.as_nanos();
    Timespec { tv_sec: (nanos / NANOS_PER_SEC) as i64, tv_nsec: (nanos % NANOS_PER_SEC) as _ }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_watch_ends_with_its_time_a_device_or_a_stop() {
        let (stop, mut stopper) = UnixStream::pair().unwrap();
        let (device, mut writer) = UnixStream::pair().unwrap();
        let (clock, mut watch, mut ready) = (Clock::start(), Watch::default(), Vec::new());
        let mut wait = |until, ready: &mut Vec<usize>| {
            watch.wait(&clock, until, stop.as_fd(), [stop.as_fd(), device.as_fd()], ready).unwrap()
        };
        let until = clock.now() + WATCH + Duration::from_millis(1);
        assert!(wait(Some(until), &mut ready) && ready.is_empty());
        assert!(clock.now() >= until);
        assert!(wait(Some(Instant::ZERO), &mut ready) && ready.is_empty(), "a time that has passed");
        writer.write_all(&[0]).unwrap();
        assert!(wait(None, &mut ready));
        assert_eq!(ready, [1]);
        stopper.write_all(&[0]).unwrap();
        assert!(!wait(Some(clock.now() + WATCH), &mut ready));
    }
}
