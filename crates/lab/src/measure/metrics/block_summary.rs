//! The first blocks of a stream, as Co-MPTCP plots them one by one.

use serde::{Deserialize, Serialize};

use super::FinishedBlock;
use crate::measure::statistics::{mean, standard_deviation};

/// Goodput and receive buffer of the first blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockSummary {
    /// Goodput (G2) of the second block; null if it was not completed.
    pub second_goodput_bps: Option<f64>,
    /// Mean, over blocks, of the octets stored when each block was complete.
    pub receive_buffer_mean_bytes: Option<f64>,
    /// Their sample standard deviation.
    pub receive_buffer_standard_deviation_bytes: Option<f64>,
}

impl BlockSummary {
    /// Summarises blocks with their goodput, and the octets stored when each was complete.
    pub fn of(goodput: &[FinishedBlock], buffer_bytes: &[u64]) -> Self {
        let buffer_bytes: Vec<f64> = buffer_bytes.iter().map(|bytes| *bytes as f64).collect();
        Self {
            second_goodput_bps: goodput.iter().find(|block| block.number == 2).map(|block| block.goodput_bps),
            receive_buffer_mean_bytes: mean(&buffer_bytes),
            receive_buffer_standard_deviation_bytes: standard_deviation(&buffer_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;

    /// 100, 140 and 120 octets: mean 120, deviation 20.
    #[test]
    fn blocks_by_number() {
        let block = |number, goodput_bps| FinishedBlock { number, at: Instant::from_secs(number), goodput_bps };
        let summary = BlockSummary::of(&[block(1, 3.0), block(2, 4.0), block(3, 5.0)], &[100, 140, 120]);
        assert_eq!(summary.second_goodput_bps, Some(4.0));
        assert_eq!(summary.receive_buffer_mean_bytes, Some(120.0));
        assert_eq!(summary.receive_buffer_standard_deviation_bytes, Some(20.0));
        assert_eq!(BlockSummary::of(&[], &[]), BlockSummary::default());
    }
}
