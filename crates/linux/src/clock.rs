//! The monotonic clock, in the time units of the sans-IO crates.

use rustix::time::{ClockId, clock_gettime};
use units::{Duration, Instant};

/// The machine's monotonic clock. All threads of a process share its zero, so their times can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: std::time::Instant,
}

impl Clock {
    /// Creates a clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "the one place where real time enters")]
    pub fn start() -> Self {
        Self { zero: std::time::Instant::now() }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.zero.elapsed().into()
    }
}

/// A clock that continues while the machine is asleep (`CLOCK_BOOTTIME`), when the monotonic one stands still.
#[derive(Clone, Copy, Debug)]
pub struct SleepClock {
    zero: Duration,
}

impl SleepClock {
    /// Creates a clock that starts now.
    pub fn start() -> Self {
        Self { zero: read(ClockId::Boottime) }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO + read(ClockId::Boottime).saturating_sub(self.zero)
    }
}

/// What this machine's clocks show at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time since the machine started, without sleep (`CLOCK_MONOTONIC`).
    pub awake: Duration,
    /// Time since the machine started (`CLOCK_BOOTTIME`).
    pub up: Duration,
    /// Time since 1970, as far as the machine knows it (`CLOCK_REALTIME`).
    pub wall: Duration,
}

impl Times {
    /// Reads the clocks.
    pub fn now() -> Self {
        Self { awake: read(ClockId::Monotonic), up: read(ClockId::Boottime), wall: read(ClockId::Realtime) }
    }
}

/// An irregularity of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// The machine was asleep for this long.
    Slept(Duration),
    /// The wall clock was set forward by this much.
    SetForward(Duration),
    /// The wall clock was set back by this much.
    SetBack(Duration),
}

/// Notices between two looks that time has passed irregularly.
#[derive(Clone, Copy, Debug)]
pub struct Jumps {
    last: Times,
}

impl Jumps {
    /// The clocks are read one after the other: a smaller difference is no sleep.
    const SLEEP_MIN: Duration = Duration::from_millis(500);
    /// A wall clock that is corrected gradually has not been set.
    const SET_MIN: Duration = Duration::from_secs(5);

    /// Compares with `now` first.
    pub const fn since(now: Times) -> Self {
        Self { last: now }
    }

    /// Returns what has happened since the last look. If the clock was also set during a sleep, this look returns the
    /// sleep and the next one the setting.
    pub fn look(&mut self, now: Times) -> Option<Jump> {
        let last = self.last;
        let (awake, up) = (now.awake.saturating_sub(last.awake), now.up.saturating_sub(last.up));
        let slept = up.saturating_sub(awake);
        if slept >= Self::SLEEP_MIN {
            // The wall clock advances during the sleep.
            self.last = Times { awake: now.awake, up: now.up, wall: last.wall + up };
            return Some(Jump::Slept(slept));
        }
        self.last = now;
        let (expected, wall) = (last.wall + up, now.wall);
        let (forward, back) = (wall.saturating_sub(expected), expected.saturating_sub(wall));
        match () {
            () if forward >= Self::SET_MIN => Some(Jump::SetForward(forward)),
            () if back >= Self::SET_MIN => Some(Jump::SetBack(back)),
            () => None,
        }
    }
}

/// Returns the time that a clock shows, or zero if it is before the clock's zero.
fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times([awake, up, wall]: [u64; 3]) -> Times {
        Times { awake: Duration::from_secs(awake), up: Duration::from_secs(up), wall: Duration::from_secs(wall) }
    }

    #[test]
    fn a_sleep_and_a_clock_that_is_set_are_told_apart() {
        let mut jumps = Jumps::since(times([100, 100, 1000]));
        for (now, jump) in [
            ([101, 101, 1001], None),
            ([102, 3702, 4602], Some(Jump::Slept(Duration::from_secs(3600)))),
            ([103, 3703, 4603], None),
            ([104, 3704, 4604 + 86_400], Some(Jump::SetForward(Duration::from_secs(86_400)))),
            ([105, 3705, 4605], Some(Jump::SetBack(Duration::from_secs(86_400)))),
            // Slewed, and read a little later.
            ([106, 3706, 4608], None),
            // Both: first the sleep, then the setting.
            ([107, 3807, 9999], Some(Jump::Slept(Duration::from_secs(100)))),
            ([108, 3808, 10_000], Some(Jump::SetForward(Duration::from_secs(5290)))),
            ([109, 3809, 10_001], None),
        ] {
            assert_eq!(jumps.look(times(now)), jump, "{now:?}");
        }
    }

    #[test]
    fn nothing_jumps_here() {
        let mut jumps = Jumps::since(Times::now());
        assert!((0..1000).all(|_| jumps.look(Times::now()).is_none()));
        assert!(SleepClock::start().now() < Instant::from_secs(1));
    }
}
