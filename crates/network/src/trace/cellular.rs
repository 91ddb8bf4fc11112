//! Synthetic traces of a cellular link on the move: a varying rate, and outages.

use units::{Duration, Prng, Rate};

use super::{OPPORTUNITY_BYTES, Trace};

/// Minimum rate outside of outages, relative to the mean.
const LEAST: f64 = 0.05;
/// Maximum rate, relative to the mean.
const MOST: f64 = 3.0;

/// Generates traces as a function of the parameters and the seed.
///
/// The rate is a first-order autoregressive process, clipped to [5 %, 300 %] of its mean. Outages come and go as a
/// two-state Markov chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellularTrace {
    /// Mean rate outside of outages, before clipping; for the mean afterwards see [`Self::after_the_cut`].
    pub mean_rate: Rate,
    /// Standard deviation of the rate over its mean, before clipping; 0 is constant, 0.5 varies strongly.
    pub variation: f64,
    /// Time in which the autocorrelation of the rate falls to 1/e.
    pub correlation: Duration,
    /// Mean time from the end of an outage to the beginning of the next; `None` for no outages.
    pub outage_interval: Option<Duration>,
    /// Mean duration of an outage.
    pub outage_duration: Duration,
    /// Duration of the trace before it repeats.
    pub duration: Duration,
}

impl CellularTrace {
    /// Describes a link of `mean_rate` for a minute, varying by half, with an outage of 300 ms every 20 s.
    pub fn new(mean_rate: Rate) -> Self {
        Self {
            mean_rate,
            variation: 0.5,
            correlation: Duration::from_secs(2),
            outage_interval: Some(Duration::from_secs(20)),
            outage_duration: Duration::from_millis(300),
            duration: Duration::from_secs(60),
        }
    }

    /// Returns the long-run mean and standard deviation of the rate outside of outages, relative to
    /// [`Self::mean_rate`]. Clipping low rates raises the mean.
    pub fn after_the_cut(&self) -> (f64, f64) {
        let (mut weights, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for hundredths in -600..=600 {
            let wander = f64::from(hundredths) / 100.0;
            let weight = libm::exp(-wander * wander / 2.0);
            let rate = (1.0 + self.variation * wander).clamp(LEAST, MOST);
            weights += weight;
            sum += weight * rate;
            squares += weight * rate * rate;
        }
        let mean = sum / weights;
        (mean, (squares / weights - mean * mean).max(0.0).sqrt())
    }

    /// Generates the trace of `seed`.
    pub fn generate(&self, seed: u64) -> Trace {
        let mut prng = Prng::fork(seed, "cellular trace");
        let duration_ms = self.duration.as_millis().clamp(1, u64::from(u32::MAX)) as u32;
        let mut process = Process::new(self);
        let mut times_ms = Vec::new();
        let mut credit_bytes = 0.0;
        for time_ms in 0..duration_ms {
            let rate_bps = process.step(&mut prng);
            credit_bytes += rate_bps / 8000.0;
            while credit_bytes >= f64::from(OPPORTUNITY_BYTES) {
                credit_bytes -= f64::from(OPPORTUNITY_BYTES);
                times_ms.push(time_ms + 1);
            }
        }
        // The last line is the period: an opportunity there gives the trace the requested duration.
        if times_ms.last() != Some(&duration_ms) {
            times_ms.push(duration_ms);
        }
        Trace::new(times_ms)
    }
}

/// One step is one millisecond.
struct Process {
    mean_bps: f64,
    deviation_bps: f64,
    memory: f64,
    innovation: f64,
    wander: f64,
    to_outage: f64,
    to_service: f64,
    in_outage: bool,
}

impl Process {
    fn new(spec: &CellularTrace) -> Self {
        let mean_bps = spec.mean_rate.as_bps() as f64;
        // 1 - 1/tau replaces exp(-1/tau): basic arithmetic gives the same bits on every machine.
        let memory = 1.0 - 1.0 / spec.correlation.as_millis().max(1) as f64;
        Self {
            mean_bps,
            deviation_bps: spec.variation * mean_bps,
            memory,
            innovation: (1.0 - memory * memory).sqrt(),
            wander: 0.0,
            to_outage: spec.outage_interval.map_or(0.0, per_millisecond),
            to_service: per_millisecond(spec.outage_duration),
            in_outage: false,
        }
    }

    /// The rate in the next millisecond, bit/s.
    fn step(&mut self, prng: &mut Prng) -> f64 {
        self.wander = self.memory * self.wander + self.innovation * normal(prng);
        self.in_outage ^= prng.chance(if self.in_outage { self.to_service } else { self.to_outage });
        if self.in_outage {
            return 0.0;
        }
        (self.mean_bps + self.deviation_bps * self.wander).clamp(LEAST * self.mean_bps, MOST * self.mean_bps)
    }
}

/// Probability per millisecond of an event that occurs every `mean` on average.
fn per_millisecond(mean: Duration) -> f64 {
    1.0 / mean.as_millis().max(1) as f64
}

/// Draws an approximately normal number of mean 0 and variance 1: the sum of twelve uniform numbers (Irwin-Hall).
fn normal(prng: &mut Prng) -> f64 {
    (0..12).map(|_| prng.unit()).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_trace_has_its_rate_exactly() {
        let steady = CellularTrace {
            variation: 0.0,
            outage_interval: None,
            duration: Duration::from_secs(10),
            ..CellularTrace::new(Rate::from_mbps(12))
        };
        let trace = steady.generate(1);
        assert_eq!(trace.mean_rate(), Rate::from_mbps(12));
        assert_eq!(trace.period(), Duration::from_secs(10));
    }

    /// At a variation of 0.9, the unclipped rate is below 5 % of the mean in 15 % of the time. The mean of ten minutes
    /// has a standard error of 1.2 %.
    #[test]
    fn what_the_cut_makes_of_mean_and_deviation_is_known() {
        for (variation, mean, deviation) in [(0.0, 1.0, 0.0), (0.5, 1.0055, 0.487), (0.9, 1.063, 0.778)] {
            let steady = CellularTrace { variation, outage_interval: None, ..CellularTrace::new(Rate::from_mbps(20)) };
            let (found, spread) = steady.after_the_cut();
            assert!((found - mean).abs() < 5e-4 && (spread - deviation).abs() < 5e-4, "{variation}: {found} {spread}");
            let (correlation, duration) = (Duration::from_millis(50), Duration::from_secs(600));
            let trace = CellularTrace { correlation, duration, ..steady }.generate(1);
            let measured = trace.mean_rate().as_bps() as f64 / 20e6;
            assert!((measured - mean).abs() < 0.03, "{variation}: {measured}");
        }
    }

    #[test]
    fn a_lively_trace_varies_pauses_and_repeats_itself_by_seed() {
        let spec = CellularTrace { duration: Duration::from_secs(300), ..CellularTrace::new(Rate::from_mbps(20)) };
        let trace = spec.generate(7);
        assert_eq!(trace, spec.generate(7));
        assert_ne!(trace, spec.generate(8));
        assert_eq!(trace.period(), spec.duration);
        let mean_mbps = trace.mean_rate().as_bps() as f64 / 1e6;
        assert!((16.0..24.0).contains(&mean_mbps), "{mean_mbps}");
        assert!(trace.longest_gap() > Duration::from_millis(300), "{:?}", trace.longest_gap());
        let busiest = trace.times_ms().chunk_by(|a, b| a / 1000 == b / 1000).map(<[u32]>::len).max().unwrap();
        // 20 Mbit/s are 1667 opportunities per second.
        assert!(busiest > 2300, "{busiest}");
    }
}
