//! Data at a steady rate, of which nothing is made up for later.

use units::{Duration, Rate};

/// Time between two pieces.
const TICK: Duration = Duration::from_millis(10);

/// How fast a source writes that could write at any rate.
///
/// Every 10 ms it writes what the rate carries in that time, unless more than a backlog waits for a subflow to take it (as with
/// Linux's `TCP_NOTSENT_LOWAT`): what the network could not take is left out instead of sent in a burst later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    rate: Rate,
    backlog_bytes: u64,
}

impl Pace {
    /// At most `rate`, with at most what it carries in `backlog` not sent.
    pub fn new(rate: Rate, backlog: Duration) -> Self {
        Self { rate, backlog_bytes: rate.bytes_in(backlog) }
    }

    /// How long after the first piece that of number `pieces` is due.
    pub(super) fn span(&self, pieces: u64) -> Duration {
        TICK.saturating_mul(pieces)
    }

    /// Octets of the next piece, when `unsent_bytes` wait.
    pub(super) fn piece_bytes(&self, unsent_bytes: u64) -> u64 {
        let room_bytes = self.backlog_bytes.saturating_sub(unsent_bytes);
        self.rate.bytes_in(TICK).min(room_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_network_does_not_take_is_not_made_up_for() {
        // 8 Mbit/s are 10 kB in 10 ms; 100 ms of it are 100 kB.
        let pace = Pace::new(Rate::from_mbps(8), Duration::from_millis(100));
        assert_eq!(
            [0, 89_999, 95_000, 100_000, 200_000].map(|bytes| pace.piece_bytes(bytes)),
            [10_000, 10_000, 5_000, 0, 0]
        );
        assert_eq!(pace.span(3), Duration::from_millis(30));
    }
}
