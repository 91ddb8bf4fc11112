//! Demand: the number of octets asked for until a point in time.

use units::{Duration, Instant, Prng, Rate};

use super::modulation::{Modulation, OnOff};

const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;

/// A demand in time, integrated without rounding.
///
/// The rate is constant between changes, or rises or falls linearly from one rate to another. A random process may let
/// only a fraction of it through: [`Self::on_off`], [`Self::redrawn`].
#[derive(Clone, Debug)]
pub struct Demand {
    /// In order of time; the rate is zero before the first piece.
    pieces: Vec<Piece>,
    next_piece: usize,
    piece: Piece,
    modulation: Option<Modulation>,
    /// Octets demanded, times [`BIT_NANOS_PER_BYTE`].
    bit_nanos: u128,
    now: Instant,
}

/// A new rate from a point in time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Time of the change.
    pub at: Instant,
    /// The rate from then on.
    pub rate: Rate,
}

/// One step of a staircase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time of the step.
    pub at: Instant,
    /// Change of the rate at that time, bit/s; negative for a fall.
    pub rise_bps: i64,
}

/// A linear transition from one rate to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slope {
    /// Start of the transition.
    pub begin: Instant,
    /// Duration of the transition; zero for a step.
    pub lasts: Duration,
    /// The rate from its end on.
    pub to: Rate,
}

/// A rate from `begin` on, which changes linearly from one value to another within `lasts`. The next piece follows
/// then.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: Instant,
    from: Rate,
    to: Rate,
    lasts: Duration,
}

impl Demand {
    /// Demands `rate` from `start` on.
    pub fn constant(rate: Rate, start: Instant) -> Self {
        Self::steps(vec![Change { at: start, rate }])
    }

    /// Demands the rates of `changes`, which must be in order of time.
    pub fn steps(changes: Vec<Change>) -> Self {
        Self::pieces(changes.iter().map(|change| Piece::flat(change.at, change.rate)).collect())
    }

    /// Demands `base` from `start` on, raised or lowered at each of `steps`, which must be in order of time and later
    /// than `start`. The rate never falls below zero: the rest of a larger step down is ignored.
    pub fn staircase(base: Rate, start: Instant, steps: &[Step]) -> Self {
        let mut rate = base;
        let mut changes = vec![Change { at: start, rate }];
        for step in steps {
            rate = Rate::from_bps(rate.as_bps().saturating_add_signed(step.rise_bps));
            changes.push(Change { at: step.at, rate });
        }
        Self::steps(changes)
    }

    /// Demands the rate of `begin` from `start` on, changes linearly to the rate of `end` between the times of the two,
    /// and stays there.
    pub fn ramp(start: Instant, begin: Change, end: Change) -> Self {
        let lasts = end.at.saturating_since(begin.at);
        Self::slopes(begin.rate, start, &[Slope { begin: begin.at, lasts, to: end.rate }])
    }

    /// Demands `base` from `start` on, then follows `slopes`, which must be in order of time and must not overlap.
    pub fn slopes(base: Rate, start: Instant, slopes: &[Slope]) -> Self {
        let mut rate = base;
        let mut pieces = vec![Piece::flat(start, rate)];
        for slope in slopes {
            if !slope.lasts.is_zero() {
                pieces.push(Piece { begin: slope.begin, from: rate, to: slope.to, lasts: slope.lasts });
            }
            rate = slope.to;
            pieces.push(Piece::flat(slope.begin + slope.lasts, rate));
        }
        Self::pieces(pieces)
    }

    fn pieces(pieces: Vec<Piece>) -> Self {
        let piece = Piece::flat(Instant::ZERO, Rate::ZERO);
        Self { pieces, next_piece: 0, piece, modulation: None, bit_nanos: 0, now: Instant::ZERO }
    }

    /// Scales all rates to `percent` percent. Must be called before the first octets are asked for.
    pub fn percent(mut self, percent: u32) -> Self {
        let scaled = |rate: Rate| Rate::from_bps((u128::from(rate.as_bps()) * u128::from(percent) / 100) as u64);
        for piece in &mut self.pieces {
            (piece.from, piece.to) = (scaled(piece.from), scaled(piece.to));
        }
        self
    }

    /// Counts the demand only while an on-off process is on. The process begins in its stationary state: on with
    /// probability on / (on + off).
    pub fn on_off(self, means: OnOff, prng: Prng) -> Self {
        Self { modulation: Some(Modulation::on_off(means, prng)), ..self }
    }

    /// Multiplies the rate by a fraction, uniform in [0, 1) and drawn again after each `every`: traffic of variable bit
    /// rate. Equal generators give equal fractions.
    pub fn redrawn(self, every: Duration, prng: Prng) -> Self {
        Self { modulation: Some(Modulation::redrawn(every, prng)), ..self }
    }

    /// Returns the whole octets demanded until `now`.
    pub fn bytes_until(&mut self, now: Instant) -> u64 {
        while let Some(edge) = self.next_edge().filter(|edge| *edge <= now) {
            self.integrate_to(edge);
            self.pass_edge(edge);
        }
        self.integrate_to(now);
        // Two gigabytes fit into 64-bit arithmetic, which divides several times faster than 128-bit arithmetic.
        match u64::try_from(self.bit_nanos) {
            Ok(bit_nanos) => bit_nanos / BIT_NANOS_PER_BYTE as u64,
            Err(_) => (self.bit_nanos / BIT_NANOS_PER_BYTE) as u64,
        }
    }

    /// Returns when the demand reaches `bytes` or its rate changes, whichever is first; `None` if neither ever happens.
    /// Both as seen from the time of the latest call.
    pub fn next_event(&self, bytes: u64) -> Option<Instant> {
        let edge = self.next_edge();
        let missing = (u128::from(bytes) * BIT_NANOS_PER_BYTE).saturating_sub(self.bit_nanos);
        let Some(wait) = self.effective().time_to_gain(missing, self.now) else { return edge };
        let reached = self.now + wait;
        Some(edge.map_or(reached, |edge| edge.min(reached)))
    }

    fn effective(&self) -> Piece {
        let Some(modulation) = &self.modulation else { return self.piece };
        Piece { from: modulation.of(self.piece.from), to: modulation.of(self.piece.to), ..self.piece }
    }

    fn next_edge(&self) -> Option<Instant> {
        let change = self.pieces.get(self.next_piece).map(|piece| piece.begin);
        // Edges of the random process do not matter while the rate is zero for good.
        let matters = self.piece.from > Rate::ZERO || change.is_some();
        let modulated = self.modulation.as_ref().filter(|_| matters).map(|modulation| modulation.until);
        [change, modulated].into_iter().flatten().min()
    }

    fn integrate_to(&mut self, now: Instant) {
        let piece = self.effective();
        self.bit_nanos += piece.bit_nanos(now).saturating_sub(piece.bit_nanos(self.now));
        self.now = self.now.max(now);
    }

    fn pass_edge(&mut self, edge: Instant) {
        while let Some(piece) = self.pieces.get(self.next_piece).filter(|piece| piece.begin <= edge) {
            self.piece = *piece;
            self.next_piece += 1;
        }
        for modulation in self.modulation.iter_mut().filter(|modulation| modulation.until <= edge) {
            modulation.pass_edge();
        }
    }
}

impl Piece {
    fn flat(begin: Instant, rate: Rate) -> Self {
        Self { begin, from: rate, to: rate, lasts: Duration::ZERO }
    }

    /// The demand of this piece from its start until `now`. It is a function of `now` alone, so nothing is lost between
    /// calls.
    fn bit_nanos(&self, now: Instant) -> u128 {
        let nanos = u128::from(now.saturating_since(self.begin).as_nanos());
        let (from, to) = (u128::from(self.from.as_bps()), u128::from(self.to.as_bps()));
        let flat = from * nanos;
        if from == to || self.lasts.is_zero() {
            return flat;
        }
        let triangle = (nanos * nanos).saturating_mul(from.abs_diff(to)) / (2 * u128::from(self.lasts.as_nanos()));
        if to > from { flat + triangle } else { flat.saturating_sub(triangle) }
    }

    /// How long from `now` until `missing` more is demanded, if ever; accurate to about a nanosecond on a slope.
    fn time_to_gain(&self, missing: u128, now: Instant) -> Option<Duration> {
        let nanos = if self.from == self.to || self.lasts.is_zero() {
            let bps = u128::from(self.from.as_bps());
            (bps > 0).then(|| match u64::try_from(missing) {
                Ok(missing) => missing.div_ceil(self.from.as_bps()),
                Err(_) => u64::try_from(missing.div_ceil(bps)).unwrap_or(u64::MAX / 4),
            })?
        } else {
            let (from, to) = (self.from.as_bps() as f64, self.to.as_bps() as f64);
            let slope = (to - from) / self.lasts.as_nanos() as f64;
            let rate = from + slope * now.saturating_since(self.begin).as_nanos() as f64;
            // slope / 2 x^2 + rate x = missing; this form of its solution is exact for small slopes too.
            let root = (rate * rate + 2.0 * slope * missing as f64).sqrt();
            let nanos = 2.0 * missing as f64 / (rate + root);
            // At least one, because rounding could otherwise stop the progress of time.
            nanos.is_finite().then_some((nanos.ceil() as u64).clamp(1, u64::MAX / 4))?
        };
        Some(Duration::from_nanos(nanos))
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
        // 1 Mbit/s, from 7 s on 1.2, from 13 s on none: 875,000 + 900,000 octets.
        let rates = [(0, 1_000_000), (7000, 1_200_000), (13_000, 0)];
        let changes = rates.map(|(at, bps)| Change { at: ms(at), rate: Rate::from_bps(bps) });
        let mut demand = Demand::steps(changes.to_vec());
        assert_eq!(demand.bytes_until(ms(7000)), 875_000);
        assert_eq!(demand.clone().bytes_until(ms(60_000)), 1_775_000);
        // One call across all edges counts the same as many calls.
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

    #[test]
    fn steps_add_up_to_a_staircase() {
        // SSRS: 1 Mbit/s, 0.2 more at 7, 13, 19 s, 0.2 less at 31, 37, 47 s. Until 50 s that is 50 + 0.2 * (24 + 24 + 28)
        // Mbit.
        let steps = [(7, 1), (13, 1), (19, 1), (31, -1), (37, -1), (47, -1)];
        let steps = steps.map(|(at, sign)| Step { at: Instant::from_secs(at), rise_bps: sign * 200_000 });
        let mut demand = Demand::staircase(Rate::from_mbps(1), Instant::ZERO, &steps);
        assert_eq!(demand.clone().bytes_until(ms(7000)), 875_000);
        assert_eq!(demand.clone().percent(50).bytes_until(ms(50_000)), 4_075_000);
        assert_eq!(demand.bytes_until(ms(50_000)), 8_150_000);
    }

    #[test]
    fn a_staircase_ends_at_the_ground() {
        let steps = [Step { at: ms(1000), rise_bps: -2_000_000 }, Step { at: ms(2000), rise_bps: 800_000 }];
        let mut demand = Demand::staircase(Rate::from_mbps(1), Instant::ZERO, &steps);
        assert_eq!(demand.bytes_until(ms(2000)), 125_000);
        assert_eq!(demand.bytes_until(ms(3000)), 225_000);
    }

    #[test]
    fn a_ramp_is_integrated_as_a_trapezium() {
        // 1 Mbit/s until 2 s, up to 3 Mbit/s at 4 s, and so on: 2 Mbit, then 1.5 and 2.5, then 3 each second.
        let at = |seconds, mbps| Change { at: Instant::from_secs(seconds), rate: Rate::from_mbps(mbps) };
        let mut up = Demand::ramp(Instant::ZERO, at(2, 1), at(4, 3));
        assert_eq!(up.bytes_until(ms(2000)), 250_000);
        assert_eq!(up.bytes_until(ms(3000)), 250_000 + 187_500);
        assert_eq!(up.bytes_until(ms(4000)), 750_000);
        assert_eq!(up.bytes_until(ms(5000)), 750_000 + 375_000);
        // Down to zero: half of 8 Mbit/s for a second.
        let mut down = Demand::ramp(Instant::ZERO, at(1, 8), at(2, 0));
        assert_eq!(down.bytes_until(ms(9000)), 1_000_000 + 500_000);
        assert_eq!(down.next_event(2_000_000), None);
    }

    #[test]
    fn slopes_follow_one_another() {
        // 1 Mbit/s for 1 s, up to 3 within 2 s, at once down to 2, and from 5 s on within 1 s to zero.
        let mbps = Rate::from_mbps;
        let slopes = [(1, 2, 3), (3, 0, 2), (5, 1, 0)];
        let slopes = slopes.map(|(at_s, lasts_s, to)| Slope {
            begin: Instant::from_secs(at_s),
            lasts: Duration::from_secs(lasts_s),
            to: mbps(to),
        });
        let mut demand = Demand::slopes(mbps(1), Instant::ZERO, &slopes);
        // Megabits: 1, then (1 + 3) / 2 * 2 = 4 more, then 2 * 2, then (2 + 0) / 2 * 1, then none.
        let megabits = [(1, 1), (3, 5), (4, 7), (5, 9), (6, 10), (9, 10)];
        for (at_s, wanted) in megabits {
            assert_eq!(demand.bytes_until(Instant::from_secs(at_s)), wanted * 125_000, "{at_s} s");
        }
    }

    #[test]
    fn a_ramp_says_when_octets_are_due() {
        // From 0 to 8 Mbit/s within a second: t^2 / 2 million octets; 1250 are due at 50 ms, 5000 at 100 ms.
        let at = |millis, mbps| Change { at: ms(millis), rate: Rate::from_mbps(mbps) };
        let mut up = Demand::ramp(Instant::ZERO, at(0, 0), at(1000, 8));
        up.bytes_until(Instant::ZERO);
        assert!(up.next_event(1250).unwrap().as_nanos().abs_diff(50_000_000) <= 1);
        assert_eq!(up.bytes_until(ms(50)), 1250);
        assert!(up.next_event(5000).unwrap().as_nanos().abs_diff(100_000_000) <= 1);
        // Down again: t - t^2 / 2 million octets; 180,000 at 200 ms, and never 500,001, so the end of the slope is next.
        let mut down = Demand::ramp(Instant::ZERO, at(0, 8), at(1000, 0));
        down.bytes_until(Instant::ZERO);
        assert!(down.next_event(180_000).unwrap().as_nanos().abs_diff(200_000_000) <= 1);
        assert_eq!(down.next_event(500_001), Some(ms(1000)));
    }

    #[test]
    fn a_ramp_counts_the_same_in_one_call_and_in_many() {
        let at = |millis, bps| Change { at: ms(millis), rate: Rate::from_bps(bps) };
        let ramp = Demand::ramp(Instant::ZERO, at(3, 1_234_567), at(107, 89));
        let (mut once, mut often) = (ramp.clone(), ramp);
        for step in 0..20_000 {
            often.bytes_until(Instant::from_nanos(step * 5_501));
        }
        assert_eq!(often.bytes_until(ms(111)), once.bytes_until(ms(111)));
    }

    #[test]
    fn redrawn_shares_average_a_half_and_split_by_percent() {
        let every = Duration::from_millis(500);
        let demand = Demand::constant(Rate::from_mbps(8), Instant::ZERO).redrawn(every, Prng::new(4));
        let whole = demand.clone().bytes_until(Instant::from_secs(2000)) as f64;
        let tenth = demand.percent(10).bytes_until(Instant::from_secs(2000)) as f64;
        // 4000 uniform draws: a standard error of 0.9 % of the mean.
        assert!((whole / 1e9 - 1.0).abs() < 0.03, "{whole}");
        assert!((tenth / whole - 0.1).abs() < 1e-6, "{tenth} {whole}");
    }
}
