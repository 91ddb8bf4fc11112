//! The timers of a TCB.

use units::Instant;

/// A timer of a TCB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Timer {
    /// Retransmission time-out (RFC 6298), also of SYN and FIN.
    Retransmit,
    /// RACK's reordering window (RFC 8985 section 6.2).
    Reorder,
    /// Tail loss probe (RFC 8985 section 7).
    TailProbe,
    /// Delayed ACK (RFC 9293 section 3.8.6.3).
    DelayedAck,
    /// Zero-window probe, and override of silly-window avoidance (RFC 9293 section 3.8.6.1).
    Persist,
    /// Keep-alive (RFC 9293 section 3.8.4).
    KeepAlive,
    /// TIME-WAIT (RFC 9293 section 3.6), and the limit on FIN-WAIT-2 without a peer.
    Linger,
    /// User time-out (RFC 9293 section 3.8.3).
    User,
    /// Pacing: when the next segment may leave.
    Pace,
}

const COUNT: usize = 9;
/// All timers in firing order. A tail loss probe due at the same time as a time-out replaces it (RFC 8985 section 7.3).
const ALL: [Timer; COUNT] = [
    Timer::Reorder,
    Timer::TailProbe,
    Timer::Retransmit,
    Timer::DelayedAck,
    Timer::Persist,
    Timer::KeepAlive,
    Timer::Linger,
    Timer::User,
    Timer::Pace,
];

/// Deadline of each timer; [`Instant::FAR_FUTURE`] if stopped.
#[derive(Debug)]
pub(crate) struct TimerTable {
    deadlines: [Instant; COUNT],
    /// Lower bound of all deadlines; the earliest one may have moved later.
    earliest: Instant,
}

impl TimerTable {
    pub(crate) fn new() -> Self {
        Self { deadlines: [Instant::FAR_FUTURE; COUNT], earliest: Instant::FAR_FUTURE }
    }

    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.deadlines[timer as usize] = at;
        self.earliest = self.earliest.min(at);
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        self.deadlines[timer as usize] = Instant::FAR_FUTURE;
    }

    pub(crate) fn stop_all(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.deadlines[timer as usize] != Instant::FAR_FUTURE
    }

    pub(crate) fn deadline(&self, timer: Timer) -> Instant {
        self.deadlines[timer as usize]
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Instant {
        self.deadlines.iter().copied().fold(Instant::FAR_FUTURE, Instant::min)
    }

    /// Whether some deadline is before `at`. Nearly always cheaper than finding the earliest one.
    pub(crate) fn fire_before(&mut self, at: Instant) -> bool {
        if self.earliest < at {
            self.earliest = self.next();
        }
        self.earliest < at
    }

    /// Stops and returns one timer that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Timer> {
        let due = ALL.into_iter().find(|timer| self.deadline(*timer) <= now)?;
        self.stop(due);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_once_in_order_of_the_table() {
        let mut timers = TimerTable::new();
        assert_eq!(timers.next(), Instant::FAR_FUTURE);
        timers.set(Timer::Persist, Instant::from_millis(5));
        timers.set(Timer::Retransmit, Instant::from_millis(7));
        assert_eq!(timers.next(), Instant::from_millis(5));
        assert_eq!(timers.take_due(Instant::from_millis(4)), None);
        assert_eq!(timers.take_due(Instant::from_millis(8)), Some(Timer::Retransmit));
        assert_eq!(timers.take_due(Instant::from_millis(8)), Some(Timer::Persist));
        assert_eq!(timers.take_due(Instant::from_millis(8)), None);
    }
}
