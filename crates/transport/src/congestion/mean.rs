//! Means over a round.

use units::Duration;

/// The mean of numbers that arrive one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: u64,
    samples: u64,
}

impl Mean {
    pub(super) fn add(&mut self, sample: u64) {
        self.sum = self.sum.saturating_add(sample);
        self.samples += 1;
    }

    /// Returns the mean, or `None` without a sample.
    pub(super) fn mean(self) -> Option<u64> {
        self.sum.checked_div(self.samples)
    }
}

/// The mean of round-trip times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanRtt(Mean);

impl MeanRtt {
    pub(super) fn add(&mut self, rtt: Duration) {
        self.0.add(rtt.as_nanos());
    }

    /// Number of samples so far.
    pub(super) fn samples(self) -> u64 {
        self.0.samples
    }

    /// Sum of all samples.
    pub(super) fn sum(self) -> Duration {
        Duration::from_nanos(self.0.sum)
    }

    /// Returns the mean, or `None` without a sample.
    pub(super) fn mean(self) -> Option<Duration> {
        self.0.mean().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_round_down_and_need_samples() {
        let mut mean = Mean::default();
        assert_eq!(mean.mean(), None);
        mean.add(3);
        mean.add(4);
        assert_eq!(mean.mean(), Some(3));
        mean.add(u64::MAX);
        assert_eq!(mean.mean(), Some(u64::MAX / 3));
    }
}
