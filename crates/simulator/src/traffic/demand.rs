//! Demand: how many octets are asked for until a point in time.

use units::{Duration, Instant, Prng, Rate};

const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;

/// A demand in time, integrated without rounding.
///
/// The rate is constant between changes; with [`OnOff`] it counts only while on.
#[derive(Clone, Debug)]
pub struct Demand {
    /// In order of time; the rate is zero before the first.
    changes: Vec<Change>,
    next_change: usize,
    on_off: Option<Toggle>,
    rate: Rate,
    /// Octets demanded, times [`BIT_NANOS_PER_BYTE`].
    bit_nanos: u128,
    now: Instant,
}

/// A new rate from a point in time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Instant,
    /// What is demanded from then on.
    pub rate: Rate,
}

/// Means of exponentially distributed times on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// Mean time on.
    pub on: Duration,
    /// Mean time off.
    pub off: Duration,
}

/// Where an on-off process is.
#[derive(Clone, Debug)]
struct Toggle {
    means: OnOff,
    on: bool,
    until: Instant,
    prng: Prng,
}

impl Demand {
    /// `rate` from `start` on.
    pub fn constant(rate: Rate, start: Instant) -> Self {
        Self::steps(vec![Change { at: start, rate }])
    }

    /// The rates of `changes`, which stand in order of time.
    pub fn steps(changes: Vec<Change>) -> Self {
        Self { changes, next_change: 0, on_off: None, rate: Rate::ZERO, bit_nanos: 0, now: Instant::ZERO }
    }

    /// Counts only while an on-off process is on. It begins in its stationary state: on with probability on / (on + off).
    pub fn on_off(mut self, means: OnOff, mut prng: Prng) -> Self {
        let (on_s, off_s) = (means.on.as_secs_f64(), means.off.as_secs_f64());
        let on = prng.unit() * (on_s + off_s) < on_s;
        let mut toggle = Toggle { means, on, until: Instant::ZERO, prng };
        toggle.until = Instant::ZERO + toggle.draw();
        self.on_off = Some(toggle);
        self
    }

    /// Octets demanded until `now`, whole ones.
    pub fn bytes_until(&mut self, now: Instant) -> u64 {
        while let Some(edge) = self.next_edge().filter(|edge| *edge <= now) {
            self.integrate_to(edge);
            self.pass_edge(edge);
        }
        self.integrate_to(now);
        (self.bit_nanos / BIT_NANOS_PER_BYTE) as u64
    }

    /// When the demand reaches `bytes`, or changes before; `None` if neither ever happens. Both as seen from the time of
    /// the latest call.
    pub fn next_event(&self, bytes: u64) -> Option<Instant> {
        let edge = self.next_edge();
        if self.effective_rate() == Rate::ZERO {
            return edge;
        }
        let missing = (u128::from(bytes) * BIT_NANOS_PER_BYTE).saturating_sub(self.bit_nanos);
        let nanos = missing.div_ceil(u128::from(self.rate.as_bps()));
        let reached = self.now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4));
        Some(edge.map_or(reached, |edge| edge.min(reached)))
    }

    fn effective_rate(&self) -> Rate {
        if self.on_off.as_ref().is_some_and(|toggle| !toggle.on) { Rate::ZERO } else { self.rate }
    }

    fn next_edge(&self) -> Option<Instant> {
        let change = self.changes.get(self.next_change).map(|change| change.at);
        // A process that toggles nothing needs no attention.
        let matters = self.rate > Rate::ZERO || change.is_some();
        let toggle = self.on_off.as_ref().filter(|_| matters).map(|toggle| toggle.until);
        [change, toggle].into_iter().flatten().min()
    }

    fn integrate_to(&mut self, now: Instant) {
        let nanos = now.saturating_since(self.now).as_nanos();
        self.bit_nanos += u128::from(self.effective_rate().as_bps()) * u128::from(nanos);
        self.now = self.now.max(now);
    }

    fn pass_edge(&mut self, edge: Instant) {
        while let Some(change) = self.changes.get(self.next_change).filter(|change| change.at <= edge) {
            self.rate = change.rate;
            self.next_change += 1;
        }
        for toggle in self.on_off.iter_mut().filter(|toggle| toggle.until <= edge) {
            toggle.on = !toggle.on;
            toggle.until = edge + toggle.draw();
        }
    }
}

impl Toggle {
    /// How long the present state lasts, at least a microsecond.
    fn draw(&mut self) -> Duration {
        let mean = if self.on { self.means.on } else { self.means.off };
        let exponential = -(1.0 - self.prng.unit()).ln();
        Duration::from_secs_f64(mean.as_secs_f64() * exponential).max(Duration::from_micros(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_constant_rate_counts_from_its_start() {
        let mut demand = Demand::constant(Rate::from_mbps(8), ms(500));
        assert_eq!(demand.next_event(1000), Some(ms(500)));
        assert_eq!(demand.bytes_until(ms(500)), 0);
        assert_eq!(demand.next_event(1000), Some(ms(501)));
        assert_eq!(demand.bytes_until(ms(750)), 250_000);
        assert_eq!(demand.bytes_until(ms(1500)), 1_000_000);
    }

    #[test]
    fn a_staircase_is_integrated_step_by_step() {
        // 1 Mbit/s, from 7 s on 1.2, from 13 s on nothing: 875,000 + 900,000 octets.
        let rates = [(0, 1_000_000), (7000, 1_200_000), (13_000, 0)];
        let changes = rates.map(|(at, bps)| Change { at: ms(at), rate: Rate::from_bps(bps) });
        let mut demand = Demand::steps(changes.to_vec());
        assert_eq!(demand.bytes_until(ms(7000)), 875_000);
        assert_eq!(demand.clone().bytes_until(ms(60_000)), 1_775_000);
        // One call over all edges counts as many calls do.
        assert_eq!((8..60).map(|s| demand.bytes_until(ms(s * 1000))).last(), Some(1_775_000));
        assert_eq!(demand.next_event(u64::MAX), None);
    }

    #[test]
    fn no_octet_is_lost_to_rounding() {
        // A third of a bit in each nanosecond, looked at every nanosecond.
        let mut demand = Demand::constant(Rate::from_bps(333_333_333), Instant::ZERO);
        for nanos in 1..24_000 {
            demand.bytes_until(Instant::from_nanos(nanos));
        }
        // 24 µs at 333,333,333 bit/s are 7999.999992 bit.
        assert_eq!(demand.bytes_until(Instant::from_nanos(24_000)), 999);
        assert_eq!(demand.bytes_until(Instant::from_nanos(24_001)), 1000);
    }

    #[test]
    fn on_off_demands_its_share_in_the_long_run() {
        let means = OnOff { on: Duration::from_millis(100), off: Duration::from_millis(300) };
        let mut demand = Demand::constant(Rate::from_mbps(8), Instant::ZERO).on_off(means, Prng::new(7));
        let seconds = 4000;
        let share = demand.bytes_until(Instant::from_secs(seconds)) as f64 / (seconds as f64 * 1e6);
        // 10,000 cycles: a standard error of the share of about 0.0027.
        assert!((share - 0.25).abs() < 0.01, "{share}");
    }

    #[test]
    fn on_off_wakes_at_its_edges() {
        let means = OnOff { on: Duration::from_millis(100), off: Duration::from_millis(100) };
        let mut demand = Demand::constant(Rate::from_mbps(8), Instant::ZERO).on_off(means, Prng::new(3));
        let (mut now, mut last) = (Instant::ZERO, 0);
        for _ in 0..200 {
            let at = demand.next_event(last + 1000).unwrap();
            assert!(at >= now);
            now = at;
            let bytes = demand.bytes_until(now);
            assert!(bytes >= last && bytes <= last + 1001, "{last} {bytes}");
            last = bytes;
        }
        assert!(last > 0);
    }
}
