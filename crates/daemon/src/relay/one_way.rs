//! How long packets of one server wait on their way here, according to the server's own timestamps (RFC 7323). Sans-IO.
//!
//! ```text
//! offset   time of a packet's arrival, less the server's clock at its departure
//! base     the offset without a queue:   offset - round trip's wait  <=  base  <=  offset
//! wait     offset - base
//! ```
//!
//! The zero of a server's clock is unknown, but its rate can be measured. A packet waits no longer than the whole round
//! trip that it ends, which bounds the base from below. Each packet tightens the two bounds, and once they are close,
//! the wait is known. The idea is LEDBAT's (RFC 6817 section 2), which has the timestamps of both clocks.

use units::{Duration, Instant};

/// Clock ticks in use, nanoseconds: Linux and most others, older kernels (two), and Linux if a route asks for it.
const TICKS: [i64; 4] = [1_000_000, 4_000_000, 10_000_000, 1_000];
/// Time over which a clock is watched to find its tick, and the relative error allowed then, because queues vary
/// meanwhile.
const WATCHED: Duration = Duration::from_secs(2);
const TOLERANCE: f64 = 0.3;
/// Distance below which the bounds determine the base, besides a tick. If they contradict each other by more, the path
/// has changed.
const NEAR_NANOS: i64 = 5_000_000;
/// Lifetime of bounds; those of the previous period count too. Clocks drift by at most 0.1 ms per second.
const PERIOD: Duration = Duration::from_secs(60);
/// Ticks by which a timestamp may differ from what its clock can show: packets overtake each other and wait, for up to
/// 10 s here, even with the fastest clock.
const SLACK: i64 = 10_000_000;
/// Maximum ticks in a microsecond, of the fastest clock.
const TICKS_PER_MICRO_MAX: f64 = 1.0 + TOLERANCE;

/// Bounds of the base, nanoseconds.
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

/// Knowledge about a server's clock, from one flow.
#[derive(Debug, Default)]
pub struct OneWay {
    since: Option<Instant>,
    /// Last timestamp, and ticks since the first.
    last: u32,
    passed: i64,
    /// Index of its tick in [`TICKS`], once known.
    tick: Option<usize>,
    /// Bounds for each tick, as the actual one is not known at first: of this period and of the one before.
    bounds: Option<[[Bounds; TICKS.len()]; 2]>,
    period_ends: Instant,
}

impl OneWay {
    /// Handles a packet that the server sent at `value` and whose round trip waited for `both` in total. Returns the
    /// wait of this packet, if known.
    pub fn observe(&mut self, value: u32, both: Duration, now: Instant) -> Option<Duration> {
        let last = if self.since.is_some() { self.last } else { value };
        let span = now.saturating_since(*self.since.get_or_insert(now));
        let step = i64::from(i32::from_ne_bytes(value.wrapping_sub(last).to_ne_bytes()));
        let passed = self.passed.saturating_add(step);
        if step < -SLACK || !(-SLACK..=ticks_max(span)).contains(&passed) {
            // No clock goes like that (RFC 7323 section 5.4): this is another one, or a lie.
            *self = Self { since: Some(now), last: value, ..Self::default() };
            return None;
        }
        (self.passed, self.last) = (passed, value);
        if self.tick.is_none() && span >= WATCHED {
            self.tick = tick(passed, span);
        }
        // The clock may have shown this value for up to a tick.
        let offset = |tick: i64| nanos(span).saturating_sub(passed.saturating_mul(tick));
        let least = |tick: i64| offset(tick).saturating_sub(tick).saturating_sub(nanos(both));
        let found = TICKS.map(|tick| Bounds { least: least(tick), most: offset(tick) });
        let [recent, before] = self.current(now);
        for (bounds, found) in recent.iter_mut().zip(found) {
            *bounds = bounds.and(found);
        }
        let (recent, before) = (*recent, *before);
        let tick = self.tick?;
        let bounds = recent[tick].and(before[tick]);
        let wait = offset(TICKS[tick]).saturating_sub(bounds.most);
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

/// Returns the maximum of ticks that a clock passes in `span`.
fn ticks_max(span: Duration) -> i64 {
    (nanos(span) as f64 / 1e3 * TICKS_PER_MICRO_MAX) as i64 + SLACK
}

/// Returns the index of the tick of a clock that advanced by `passed` ticks in `span`, if it is a known one.
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

    /// Simulates packets every 20 ms with a clock of this tick. `waits` has each second's waits, down and both ways, in
    /// ms. Returns the shortest wait found in each second.
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
                    one_way.observe(value, Duration::from_millis(*both), came).map(|wait| wait.as_nanos() / 1_000_000);
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
        assert!((0..500).all(|step| one_way.observe(7, Duration::ZERO, Instant::from_millis(step * 20)).is_none()));
    }

    /// Sums of such steps would leave the range of the arithmetic within seconds.
    #[test]
    fn steps_that_no_clock_takes_tell_nothing() {
        let mut one_way = OneWay::default();
        let mut at_ms = 0;
        let mut see = |one_way: &mut OneWay, value: u32| {
            at_ms += 20;
            one_way.observe(value, Duration::ZERO, Instant::from_millis(at_ms))
        };
        assert!((0..150).filter_map(|step| see(&mut one_way, step * 2)).count() > 40, "a clock with a tick of 10 ms");
        let mut value = 300_u32;
        for (count, leap) in [(300, 0x7fff_ffff), (900, -0x7fff_ffff_i32), (300, i32::MIN), (300, -20_000_000)] {
            for _ in 0..count {
                value = value.wrapping_add_signed(leap);
                assert_eq!(see(&mut one_way, value), None, "{leap}");
            }
        }
        assert!((0..150).filter_map(|step| see(&mut one_way, value + step * 2)).count() > 40, "a clock again");
    }
}
