//! When a destination called, by its own clock. The relay compares the times of one destination's calls with each other
//! and with nothing else, so the clocks of the two devices need not agree.

use units::{Duration, Instant};

/// Octets of the time in a call.
pub const CALL_TIME_BYTES: usize = 8;

/// The time of a call: nanoseconds since 1970 by the destination's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallTime(u64);

impl CallTime {
    /// Returns the octets, in network byte order.
    pub const fn octets(self) -> [u8; CALL_TIME_BYTES] {
        self.0.to_be_bytes()
    }

    /// Reads the octets.
    pub const fn read(octets: [u8; CALL_TIME_BYTES]) -> Self {
        Self(u64::from_be_bytes(octets))
    }
}

/// Gives each call of a destination a later time than the call before. It reads the device's clock only once: a clock
/// that is set back later changes nothing before the next start.
#[derive(Debug)]
pub struct CallClock {
    at_start: CallTime,
    started_at: Instant,
    last: Option<CallTime>,
}

impl CallClock {
    /// Creates the clock of a device for which it is `since_1970` at `now`.
    pub const fn new(since_1970: Duration, now: Instant) -> Self {
        Self { at_start: CallTime(since_1970.as_nanos()), started_at: now, last: None }
    }

    /// Returns the time of the next call.
    pub fn next(&mut self, now: Instant) -> CallTime {
        let at = self.at_start.0.saturating_add(now.saturating_since(self.started_at).as_nanos());
        let least = self.last.map_or(0, |last| last.0.saturating_add(1));
        *self.last.insert(CallTime(at.max(least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_later_than_the_one_before() {
        let start = Instant::from_secs(7);
        let mut clock = CallClock::new(Duration::from_secs(1_000), start);
        let calls =
            [start, start, start + Duration::from_nanos(1), start + Duration::from_secs(1)].map(|now| clock.next(now));
        assert_eq!(calls.map(|call| call.0 - 1_000_000_000_000), [0, 1, 2, 1_000_000_000]);
        assert_eq!(CallTime::read(calls[3].octets()), calls[3]);
    }
}
