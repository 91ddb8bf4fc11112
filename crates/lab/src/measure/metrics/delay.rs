//! Delay (MPTCP-rec): from the first transmission of a packet to its arrival.

use units::Duration;

/// Mean delay, by window and overall. Sums are integers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delay {
    window_nanos: u128,
    window_count: u64,
    run_nanos: u128,
    run_count: u64,
}

impl Delay {
    /// A packet with new data took `delay`.
    pub fn sample(&mut self, delay: Duration) {
        let nanos = u128::from(delay.as_nanos());
        (self.window_nanos, self.window_count) = (self.window_nanos + nanos, self.window_count + 1);
        (self.run_nanos, self.run_count) = (self.run_nanos + nanos, self.run_count + 1);
    }

    /// Ends the window: its mean, seconds; `None` without packets.
    pub fn close(&mut self) -> Option<f64> {
        let mean = mean_delay_s(self.window_nanos, self.window_count);
        (self.window_nanos, self.window_count) = (0, 0);
        mean
    }

    /// Mean, seconds; `None` without packets.
    pub fn mean_s(&self) -> Option<f64> {
        mean_delay_s(self.run_nanos, self.run_count)
    }
}

/// Mean of `count` delays with a sum of `nanos` nanoseconds, in seconds; `None` if there are none.
fn mean_delay_s(nanos: u128, count: u64) -> Option<f64> {
    (count > 0).then(|| nanos as f64 / count as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_packets() {
        let mut delay = Delay::default();
        assert_eq!(delay.close(), None);
        delay.sample(Duration::from_millis(250));
        delay.sample(Duration::from_millis(750));
        assert_eq!(delay.close(), Some(0.5));
        delay.sample(Duration::from_millis(2000));
        assert_eq!((delay.close(), delay.mean_s()), (Some(2.0), Some(1.0)));
    }
}
