//! A position in a trace that loops forever.

use units::Instant;

use super::{OPPORTUNITY_BYTES, Trace};

/// Hands out the opportunities of a trace in order. The rest of an opportunity serves later packets at the same time;
/// capacity that no packet waits for is wasted.
#[derive(Clone, Debug)]
pub(crate) struct TraceCursor {
    trace: Trace,
    /// The next opportunity to use.
    next: usize,
    /// Start of the current repetition; like all times inside, it counts from the beginning of the trace.
    base_ms: u64,
    /// The opportunity in use, and the octets left in it.
    current: Instant,
    left_bytes: u32,
}

impl TraceCursor {
    pub(crate) fn new(trace: Trace) -> Self {
        Self { trace, next: 0, base_ms: 0, current: Instant::ZERO, left_bytes: 0 }
    }

    /// Returns when a packet of `wire_len` octets that arrives at `now` has been delivered. It can still use an
    /// opportunity at its time of arrival.
    pub(crate) fn departure(&mut self, now: Instant, wire_len: u32) -> Instant {
        let now = now + self.trace.offset;
        if self.current < now {
            self.left_bytes = 0;
            self.skip_before(now);
        }
        let mut rest_bytes = wire_len;
        while rest_bytes > self.left_bytes {
            rest_bytes -= self.left_bytes;
            self.take_next();
        }
        self.left_bytes -= rest_bytes;
        self.current.saturating_sub(self.trace.offset)
    }

    fn take_next(&mut self) {
        self.current = self.next_time();
        self.left_bytes = OPPORTUNITY_BYTES;
        self.next += 1;
        if self.next == self.trace.times_ms.len() {
            self.next = 0;
            self.base_ms += u64::from(self.trace.period_ms());
        }
    }

    fn next_time(&self) -> Instant {
        Instant::from_millis(self.base_ms + u64::from(self.trace.times_ms[self.next]))
    }

    /// Skips the opportunities before `now`.
    fn skip_before(&mut self, now: Instant) {
        if self.next_time() >= now {
            return;
        }
        let now_ms = now.as_nanos().div_ceil(1_000_000);
        let period_ms = u64::from(self.trace.period_ms());
        // The last time of one repetition may equal the first of the next: stay in the earlier one, so that it counts.
        let repetitions = (now_ms - self.base_ms).saturating_sub(1) / period_ms;
        if repetitions > 0 {
            self.base_ms += repetitions * period_ms;
            self.next = 0;
        }
        let within_ms = now_ms - self.base_ms;
        self.next += self.trace.times_ms[self.next..].partition_point(|time_ms| u64::from(*time_ms) < within_ms);
        debug_assert!(self.next < self.trace.times_ms.len(), "the last time is the period, which is not before now");
    }
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    fn departures(trace: &str, packets: &[(u64, u32)]) -> Vec<u64> {
        let mut cursor = TraceCursor::new(Trace::parse(trace).unwrap());
        packets
            .iter()
            .map(|(at_us, wire_len)| cursor.departure(Instant::from_micros(*at_us), *wire_len).as_millis())
            .collect()
    }

    #[test]
    fn opportunities_loop_and_unused_ones_are_wasted() {
        // Period 10 ms: opportunities at 0, 10, 10 (the next repetition's 0), 20, 20 ...
        assert_eq!(departures("0\n10\n", &[(0, 1500), (0, 1500), (0, 1500), (0, 1500)]), [0, 10, 10, 20]);
        assert_eq!(departures("0\n10\n", &[(1, 1500), (10_000, 1500), (10_001, 1500)]), [10, 10, 20]);
        // Far ahead: 1 000 000 ms is both an end and a start.
        assert_eq!(departures("0\n10\n", &[(1_000_000_000, 1500); 3]), [1_000_000, 1_000_000, 1_000_010]);
        assert_eq!(departures("3\n10\n", &[(999_994_000, 1500), (999_994_000, 1500)]), [1_000_000, 1_000_003]);
    }

    #[test]
    fn a_trace_may_start_within_itself() {
        let trace = Trace::parse("1\n4\n10\n").unwrap().starting_at(Duration::from_millis(4));
        let mut cursor = TraceCursor::new(trace);
        let departures = [0; 5].map(|now| cursor.departure(Instant::from_millis(now), 1500).as_millis());
        assert_eq!(departures, [0, 6, 7, 10, 16]);
        assert_eq!(cursor.departure(Instant::from_millis(1_000_003), 1500).as_millis(), 1_000_006);
    }

    #[test]
    fn an_arrival_within_a_millisecond_waits_for_the_next() {
        assert_eq!(departures("1\n2\n3\n", &[(1_001, 100), (1_500, 100), (2_500, 100)]), [2, 2, 3]);
    }

    #[test]
    fn small_packets_share_and_large_ones_span() {
        assert_eq!(departures("1\n2\n3\n", &[(0, 700), (0, 800), (0, 1), (0, 2999), (0, 1500)]), [1, 1, 2, 3, 4]);
    }
}
