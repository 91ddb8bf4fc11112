//! Subflow TCP throughput (Co-MPTCP): payload acknowledged over time, by path.

use units::Instant;

use super::rate_bps;

/// Payload that each subflow's source knows to have arrived, by window.
#[derive(Clone, Debug, Default)]
pub struct SubflowThroughput {
    began: Instant,
    window_bytes: Vec<u64>,
    total_bytes: Vec<u64>,
}

impl SubflowThroughput {
    /// The source learns that `bytes` more octets arrived over `subflow`.
    pub fn acked(&mut self, subflow: usize, bytes: u64) {
        if self.total_bytes.len() <= subflow {
            self.window_bytes.resize(subflow + 1, 0);
            self.total_bytes.resize(subflow + 1, 0);
        }
        self.window_bytes[subflow] += bytes;
        self.total_bytes[subflow] += bytes;
    }

    /// Ends the window and begins the next: bit/s, by subflow. Returns an empty list for an empty window.
    pub fn close(&mut self, at: Instant) -> Vec<f64> {
        let span = at.saturating_since(core::mem::replace(&mut self.began, at));
        let rates = self.window_bytes.iter().filter_map(|bytes| rate_bps(*bytes, span)).collect();
        self.window_bytes.fill(0);
        rates
    }

    /// Octets acknowledged so far, by subflow.
    pub fn total_bytes(&self) -> &[u64] {
        &self.total_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 125000 octets in 1 s are 1 Mbit/s.
    #[test]
    fn each_path_has_its_own_rate() {
        let mut throughput = SubflowThroughput::default();
        throughput.acked(1, 100_000);
        throughput.acked(1, 25_000);
        assert_eq!(throughput.close(Instant::from_secs(1)), [0.0, 1e6]);
        throughput.acked(0, 125_000);
        assert_eq!(throughput.close(Instant::from_secs(3)), [0.5e6, 0.0]);
        assert_eq!(throughput.close(Instant::from_secs(3)), [0.0; 0]);
        assert_eq!(throughput.total_bytes(), [125_000, 125_000]);
    }
}
