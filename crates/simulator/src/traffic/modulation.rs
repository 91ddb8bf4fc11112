//! Factors of a demand: on and off, or a fraction that is drawn again at intervals.

use units::{Duration, Instant, Prng, Rate};

/// Minimum duration of a state.
const STATE_MIN: Duration = Duration::from_micros(1);

/// Means of exponentially distributed times on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// Mean time on.
    pub on: Duration,
    /// Mean time off.
    pub off: Duration,
}

/// A random process that lets a fraction of a rate through; the fraction is constant between edges.
#[derive(Clone, Debug)]
pub(super) struct Modulation {
    process: Process,
    share_q32: u64,
    /// When the present state ends.
    pub until: Instant,
    prng: Prng,
}

#[derive(Clone, Copy, Debug)]
enum Process {
    OnOff(OnOff),
    /// A fraction uniform in [0, 1), each for this duration.
    Redrawn(Duration),
}

const ONE_Q32: u64 = 1 << 32;

impl Modulation {
    /// Starts in the stationary state: on with probability on / (on + off). The rest of an exponential time is
    /// exponential, too.
    pub fn on_off(means: OnOff, mut prng: Prng) -> Self {
        let (on_s, off_s) = (means.on.as_secs_f64(), means.off.as_secs_f64());
        let on = prng.unit() * (on_s + off_s) < on_s;
        let share_q32 = if on { ONE_Q32 } else { 0 };
        Self::begin(Process::OnOff(means), share_q32, prng)
    }

    pub fn redrawn(every: Duration, mut prng: Prng) -> Self {
        let share_q32 = prng.below(ONE_Q32);
        Self::begin(Process::Redrawn(every), share_q32, prng)
    }

    fn begin(process: Process, share_q32: u64, prng: Prng) -> Self {
        let mut modulation = Self { process, share_q32, until: Instant::ZERO, prng };
        modulation.until = Instant::ZERO + modulation.draw_duration();
        modulation
    }

    /// Returns the part of `rate` that it lets through.
    pub fn of(&self, rate: Rate) -> Rate {
        Rate::from_bps(((u128::from(rate.as_bps()) * u128::from(self.share_q32)) >> 32) as u64)
    }

    /// Moves to the next state.
    pub fn pass_edge(&mut self) {
        self.share_q32 = match self.process {
            Process::OnOff(_) => ONE_Q32 - self.share_q32,
            Process::Redrawn(_) => self.prng.below(ONE_Q32),
        };
        let lasts = self.draw_duration();
        self.until += lasts;
    }

    fn draw_duration(&mut self) -> Duration {
        let OnOff { on, off } = match self.process {
            Process::OnOff(means) => means,
            Process::Redrawn(every) => return every.max(STATE_MIN),
        };
        let mean = if self.share_q32 == ONE_Q32 { on } else { off };
        let exponential = -libm::log(1.0 - self.prng.unit());
        Duration::from_secs_f64(mean.as_secs_f64() * exponential).max(STATE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Durations of the states, and the rates that they let through of 1 Gbit/s.
    fn states(mut modulation: Modulation, count: usize) -> Vec<(f64, u64)> {
        let mut begin = Instant::ZERO;
        let mut states = Vec::new();
        for _ in 0..count {
            let rate = modulation.of(Rate::from_mbps(1000));
            states.push(((modulation.until - begin).as_secs_f64(), rate.as_bps()));
            begin = modulation.until;
            modulation.pass_edge();
        }
        states
    }

    #[test]
    fn times_on_and_off_are_exponential() {
        let means = OnOff { on: Duration::from_millis(100), off: Duration::from_millis(300) };
        let states = states(Modulation::on_off(means, Prng::new(11)), 20_000);
        for (rate, mean_s) in [(1_000_000_000, 0.1), (0, 0.3)] {
            let times: Vec<f64> = states.iter().filter(|state| state.1 == rate).map(|state| state.0).collect();
            assert_eq!(times.len(), 10_000);
            // The mean of 10,000 draws has a standard error of 1 %. Of an exponential distribution, 1 / e is above the
            // mean and 1 / e^2 above twice the mean: standard errors of 0.5 and 0.35 %.
            let mean = times.iter().sum::<f64>() / 10_000.0;
            let above = |bound: f64| times.iter().filter(|time| **time > bound).count() as f64 / 10_000.0;
            assert!((mean / mean_s - 1.0).abs() < 0.03, "{mean}");
            assert!((above(mean_s) - 0.367_9).abs() < 0.015, "{}", above(mean_s));
            assert!((above(2.0 * mean_s) - 0.135_3).abs() < 0.011, "{}", above(2.0 * mean_s));
        }
    }

    #[test]
    fn redrawn_shares_are_uniform() {
        let states = states(Modulation::redrawn(Duration::from_secs(1), Prng::new(12)), 10_000);
        assert!(states.iter().all(|state| state.0 == 1.0 && state.1 < 1_000_000_000));
        // A uniform fraction has a mean of 1/2; the mean of 10,000 has a standard error of 0.003. A quarter is below
        // 1/4.
        let mean = states.iter().map(|state| state.1 as f64 / 1e9).sum::<f64>() / 10_000.0;
        let low = states.iter().filter(|state| state.1 < 250_000_000).count();
        assert!((mean - 0.5).abs() < 0.01 && (2370..=2630).contains(&low), "{mean} {low}");
    }
}
