//! How long packets of one server wait on their way here, by its own timestamps (RFC 7323). Sans-IO.
//!
//! ```text
//! offset   when a packet came, less what the server's clock showed when it was sent
//! base     the offset without a queue:   offset - round trip's wait  <=  base  <=  offset
//! wait     offset - base
//! ```
//!
//! Where a server's clock stands nobody knows, but how fast it goes can be seen. A packet waits no longer than the round trip that it ends
//! did, which bounds the base from below; with each packet both bounds come closer, and once they are near each other the wait is known. The
//! idea is LEDBAT's (RFC 6817 section 2), which has both clocks' timestamps as well.

use units::{Duration, Instant};

/// Ticks of clocks that are in use, nanoseconds: of Linux and most others, of older kernels, and of Linux where a route asks for it.
const TICKS: [i64; 4] = [1_000_000, 4_000_000, 10_000_000, 1_000];
/// For so long a clock is watched until its tick is known, and by how much it may seem wrong then: queues come and go meanwhile.
const WATCHED: Duration = Duration::from_secs(2);
const TOLERANCE: f64 = 0.3;
/// Bounds of the base that are so near each other, besides a tick, say where it is. If they contradict each other by more, the way is another one by now.
const NEAR_NANOS: i64 = 5_000_000;
/// For so long bounds are remembered, and those of the time before: clocks drift by 0.1 ms in a second at most.
const PERIOD: Duration = Duration::from_secs(60);

/// Where the base is, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: i64,
    most: i64,
}

const ANYWHERE: Bounds = Bounds { least: i64::MIN, most: i64::MAX };

impl Bounds {
    fn and(self, other: Self) -> Self {
        Self { least: self.least.max(other.least), most: self.most.min(other.most) }
    }

    fn is_near(self, tick: i64) -> bool {
        (-NEAR_NANOS..=NEAR_NANOS + tick).contains(&self.most.saturating_sub(self.least))
    }
}

/// What is known of a server's clock from one flow.
#[derive(Debug, Default)]
pub struct OneWay {
    since: Option<Instant>,
    /// What it showed last, and ticks since then.
    last: u32,
    passed: i64,
    /// Of which tick it is.
    tick: Option<usize>,
    /// By tick, since the one in use is not known from the beginning; of this period, and of the one before.
    bounds: Option<[[Bounds; TICKS.len()]; 2]>,
    period_ends: Instant,
}

impl OneWay {
    /// A packet came that the server had sent at `value`, and its round trip was in queues for `both`: how long it was itself, if that is known.
    pub fn heed(&mut self, value: u32, both: Duration, now: Instant) -> Option<Duration> {
        let last = if self.since.is_some() { self.last } else { value };
        let span = now.saturating_since(*self.since.get_or_insert(now));
        self.passed += i64::from(i32::from_ne_bytes(value.wrapping_sub(last).to_ne_bytes()));
        self.last = value;
        let passed = self.passed;
        if self.tick.is_none() && span >= WATCHED {
            self.tick = tick(passed, span);
        }
        // It may have shown it for a tick.
        let offset = |tick: i64| nanos(span).saturating_sub(passed.saturating_mul(tick));
        let found = TICKS.map(|tick| Bounds { least: offset(tick) - tick - nanos(both), most: offset(tick) });
        let [recent, before] = self.current(now);
        for (bounds, found) in recent.iter_mut().zip(found) {
            *bounds = bounds.and(found);
        }
        let (recent, before) = (*recent, *before);
        let tick = self.tick?;
        let bounds = recent[tick].and(before[tick]);
        let wait = offset(TICKS[tick]) - bounds.most;
        bounds.is_near(TICKS[tick]).then(|| Duration::from_nanos(u64::try_from(wait).unwrap_or(0)))
    }

    fn current(&mut self, now: Instant) -> &mut [[Bounds; TICKS.len()]; 2] {
        let bounds = self.bounds.get_or_insert([[ANYWHERE; TICKS.len()]; 2]);
        if self.period_ends <= now {
            self.period_ends = now + PERIOD;
            *bounds = [[ANYWHERE; TICKS.len()], bounds[0]];
        }
        bounds
    }
}

/// The tick of a clock that went on by `passed` of them in `span`, if it is one that is known.
fn tick(passed: i64, span: Duration) -> Option<usize> {
    let ratio = |tick: &i64| passed as f64 * *tick as f64 / nanos(span) as f64;
    TICKS.iter().position(|tick| (ratio(tick) - 1.0).abs() < TOLERANCE)
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets every 20 ms of a clock with a tick; the waits are those of each second, down and both ways, in ms. What is known at the end of each.
    fn run(tick_ms: f64, waits: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut one_way = OneWay::default();
        let mut known = Vec::new();
        for (second, (down, both)) in waits.iter().enumerate() {
            let mut shortest = None;
            for step in 0..50 {
                let sent_ms = second as u64 * 1000 + step * 20;
                let value = u32::MAX.wrapping_add((sent_ms as f64 / tick_ms) as u32);
                let came = Instant::from_millis(sent_ms + 30 + down);
                let wait =
                    one_way.heed(value, Duration::from_millis(*both), came).map(|wait| wait.as_nanos() / 1_000_000);
                shortest = shortest.min(wait).or(wait);
            }
            known.push(shortest);
        }
        known
    }

    #[test]
    fn a_queue_is_on_the_way_here_or_on_the_other() {
        for tick_ms in [1.0, 4.0, 10.0, 0.001] {
            let waits = run(tick_ms, &[(0, 0), (0, 0), (0, 0), (40, 40), (0, 60), (30, 90)]);
            assert_eq!(waits, [None, None, Some(0), Some(40), Some(0), Some(30)], "{tick_ms}");
        }
    }

    #[test]
    fn whoever_comes_to_a_full_queue_does_not_know_which_way_it_is() {
        let waits = run(1.0, &[(40, 100), (40, 100), (40, 100), (0, 0), (40, 100)]);
        assert_eq!(waits, [None, None, None, Some(0), Some(40)]);
    }

    #[test]
    fn a_clock_that_nobody_has_tells_nothing() {
        assert_eq!(run(2.5, &[(0, 0); 4]), [None; 4]);
        let mut one_way = OneWay::default();
        assert!((0..500).all(|step| one_way.heed(7, Duration::ZERO, Instant::from_millis(step * 20)).is_none()));
    }
}
