//! A mean over the time in which a measured rate stays the same.
//!
//! A mean over a whole period hides a step of the owner's traffic for up to two periods; a mean over a moment is noise.
//! This mean is long while nothing changes, and forgets everything before a step.
//!
//! ```text
//! x_1 ... x_n                  the latest samples, n at most n_max
//! recent = (x_(n-1) + x_n) / 2
//! before = mean of x_1 ... x_(n-2)
//! abs(recent - before) > threshold:  x_1 ... x_(n-2) are forgotten
//! estimate = mean of what is left
//! ```

use std::collections::VecDeque;

use units::Rate;

/// Number of samples that reveal a step: a single one may be noise.
const RECENT: usize = 2;

/// The mean of the samples since the latest step.
#[derive(Clone, Debug)]
pub struct SteadyMean {
    samples_bps: VecDeque<u64>,
    sum_bps: u128,
    samples_max: usize,
}

impl SteadyMean {
    /// Creates a mean of at most `samples_max` samples; with fewer than three, it detects no steps. Memory grows with
    /// the samples that come, because `samples_max` may be far larger than a run is long.
    pub fn over(samples_max: usize) -> Self {
        Self { samples_bps: VecDeque::new(), sum_bps: 0, samples_max: samples_max.max(1) }
    }

    /// Adds a sample and returns the estimate; a difference of more than `threshold` is a step.
    pub fn add(&mut self, sample: Rate, threshold: Rate) -> Rate {
        self.samples_bps.push_back(sample.as_bps());
        self.sum_bps += u128::from(sample.as_bps());
        if self.samples_bps.len() > self.samples_max {
            self.sum_bps -= self.samples_bps.pop_front().map_or(0, u128::from);
        }
        let older = self.samples_bps.len().saturating_sub(RECENT);
        if older > 0 {
            let recent_bps: u128 = self.samples_bps.range(older..).map(|bps| u128::from(*bps)).sum();
            let (before, recent) = (mean(self.sum_bps - recent_bps, older), mean(recent_bps, RECENT));
            if before.abs_diff(recent) > threshold.as_bps() {
                self.samples_bps.drain(..older);
                self.sum_bps = recent_bps;
            }
        }
        Rate::from_bps(mean(self.sum_bps, self.samples_bps.len()))
    }
}

fn mean(sum: u128, count: usize) -> u64 {
    u64::try_from(sum / count.max(1) as u128).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimates(samples_max: usize, kbps: &[u64]) -> Vec<u64> {
        let mut mean = SteadyMean::over(samples_max);
        let threshold = Rate::from_bps(100_000);
        kbps.iter().map(|kbps| mean.add(Rate::from_bps(kbps * 1000), threshold).as_bps() / 1000).collect()
    }

    #[test]
    fn a_step_is_seen_after_two_samples() {
        // One sample of 1200 raises the recent mean by 100: no step. The second one does, and earlier samples are
        // forgotten.
        assert_eq!(
            estimates(8, &[1000, 1000, 1000, 1000, 1200, 1200, 1200]),
            [1000, 1000, 1000, 1000, 1040, 1200, 1200]
        );
    }

    #[test]
    fn noise_is_averaged_over_all_samples_that_are_kept() {
        assert_eq!(estimates(4, &[950, 1050, 1000, 1000, 1050]), [950, 1000, 1000, 1000, 1025]);
    }

    #[test]
    fn absurd_rates_do_not_overflow() {
        let mut mean = SteadyMean::over(3);
        let most = Rate::from_bps(u64::MAX);
        assert_eq!([most; 4].map(|rate| mean.add(rate, Rate::ZERO)), [most; 4]);
        assert_eq!(SteadyMean::over(0).add(most, most), most);
    }

    /// The ratio of two settings decides about the number of samples.
    #[test]
    fn samples_that_never_come_take_no_memory() {
        let mut mean = SteadyMean::over(usize::MAX);
        let rates = [1, 3].map(|mbps| mean.add(Rate::from_mbps(mbps), Rate::from_mbps(10)));
        assert_eq!(rates, [1, 2].map(Rate::from_mbps));
    }
}
