//! Aggregate throughput of windows (thesis, SSRS) and of a run (MPTCP-rec).

use units::Instant;

use super::rate_bps;

/// Payload that arrives over all subflows, by window. Duplicates count: the papers count below the transport layer.
#[derive(Clone, Debug, Default)]
pub struct WindowThroughput {
    began: Instant,
    bytes: u64,
}

impl WindowThroughput {
    /// `bytes` octets arrive over any subflow.
    pub fn arrival(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Ends the window and begins the next: bit/s. `None` if the window is empty.
    pub fn close(&mut self, at: Instant) -> Option<f64> {
        let rate = rate_bps(self.bytes, at.saturating_since(self.began));
        *self = Self { began: at, bytes: 0 };
        rate
    }
}

/// Payload that arrives, over the time of the run. Duplicates count.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeanThroughput {
    bytes: u64,
}

impl MeanThroughput {
    /// `bytes` octets arrive over any subflow.
    pub fn arrival(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Octets that have arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// bit/s from the start of the run up to `at`; `None` at the start.
    pub fn value_bps(&self, at: Instant) -> Option<f64> {
        rate_bps(self.bytes, at.saturating_since(Instant::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 500 packets of 1500 octets in 2 s: 750000 * 8 / 2 = 3 Mbit/s; then half of it in 1 s.
    #[test]
    fn a_window_counts_all_that_arrives() {
        let mut throughput = WindowThroughput::default();
        let mut mean = MeanThroughput::default();
        for _ in 0..500 {
            throughput.arrival(1500);
            mean.arrival(1500);
        }
        assert_eq!(throughput.close(Instant::from_secs(2)), Some(3e6));
        throughput.arrival(187_500);
        mean.arrival(187_500);
        assert_eq!(throughput.close(Instant::from_secs(2)), None);
        throughput.arrival(187_500);
        assert_eq!(throughput.close(Instant::from_secs(3)), Some(1.5e6));
        assert_eq!(mean.value_bps(Instant::from_secs(3)), Some(2.5e6));
        assert_eq!(MeanThroughput::default().value_bps(Instant::ZERO), None);
    }
}
