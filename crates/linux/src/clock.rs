//! The monotonic clock, as the sans-IO crates count time.

use rustix::time::{ClockId, clock_gettime};
use units::{Duration, Instant};

/// The machine's monotonic clock. All threads of a process share its zero, so their times compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: std::time::Instant,
}

impl Clock {
    /// A clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "the one place where real time enters")]
    pub fn start() -> Self {
        Self { zero: std::time::Instant::now() }
    }

    /// Time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.zero.elapsed().into()
    }
}

/// A clock that goes on while the machine is asleep (`CLOCK_BOOTTIME`); the monotonic one stands still then.
#[derive(Clone, Copy, Debug)]
pub struct SleepClock {
    zero: Duration,
}

impl SleepClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { zero: read(ClockId::Boottime) }
    }

    /// Time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO + read(ClockId::Boottime).saturating_sub(self.zero)
    }
}

/// What this machine's clocks show at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time awake since it was started (`CLOCK_MONOTONIC`).
    pub awake: Duration,
    /// Time since it was started (`CLOCK_BOOTTIME`).
    pub up: Duration,
    /// Since 1970, as far as it knows (`CLOCK_REALTIME`).
    pub wall: Duration,
}

impl Times {
    /// Those of now.
    pub fn now() -> Self {
        Self { awake: read(ClockId::Monotonic), up: read(ClockId::Boottime), wall: read(ClockId::Realtime) }
    }
}

/// What has become of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// The machine was asleep for so long.
    Slept(Duration),
    /// Its wall clock was set forward by so much.
    SetForward(Duration),
    /// Its wall clock was set back by so much.
    SetBack(Duration),
}

/// Notices that time has not passed as it does, between two looks.
#[derive(Clone, Copy, Debug)]
pub struct Jumps {
    last: Times,
}

impl Jumps {
    /// A clock is read after the other: what differs by less is no jump.
    const SLEEP_MIN: Duration = Duration::from_millis(500);
    /// A wall clock that is corrected little by little is none either.
    const SET_MIN: Duration = Duration::from_secs(5);

    /// From `now` on.
    pub const fn since(now: Times) -> Self {
        Self { last: now }
    }

    /// What has happened since the last look; a sleep before a clock that was set meanwhile, which the next look tells.
    pub fn look(&mut self, now: Times) -> Option<Jump> {
        let last = self.last;
        let (awake, up) = (now.awake.saturating_sub(last.awake), now.up.saturating_sub(last.up));
        let slept = up.saturating_sub(awake);
        if slept >= Self::SLEEP_MIN {
            // The wall clock goes on with the sleep.
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

/// What a clock shows; before its zero, that.
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
            // Both: one after the other.
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
