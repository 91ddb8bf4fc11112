//! Data at a steady rate, of which nothing is made up for later.

use units::{Duration, Rate};

/// Time between two pieces.
const TICK: Duration = Duration::from_millis(10);

/// How fast a source writes that could write at any rate.
///
/// Every 10 ms it writes what the rate carries in that time, unless more than a backlog waits for a subflow to take it (as with
/// Linux's `TCP_NOTSENT_LOWAT`): what the network could not take is left out instead of sent in a burst later. What is less than an
/// octet counts for the pieces that follow, so that all of them together are what the rate carries in their time, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    rate: Rate,
    backlog_bytes: u64,
}

impl Pace {
    /// At most `rate`, with at most what it carries in `backlog` not sent, and one octet at least: with none nothing was ever written.
    pub fn new(rate: Rate, backlog: Duration) -> Self {
        Self { rate, backlog_bytes: rate.bytes_in(backlog).max(1) }
    }

    /// How long after the first piece that of number `pieces` is due.
    pub(super) fn span(&self, pieces: u64) -> Duration {
        TICK.saturating_mul(pieces)
    }

    /// Octets of the piece of number `piece`, from 0, when `unsent_bytes` wait.
    pub(super) fn piece_bytes(&self, piece: u64, unsent_bytes: u64) -> u64 {
        let room_bytes = self.backlog_bytes.saturating_sub(unsent_bytes);
        let [before, with_it] = [piece, piece + 1].map(|pieces| self.rate.bytes_in(self.span(pieces)));
        (with_it - before).min(room_bytes)
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
            [0, 89_999, 95_000, 100_000, 200_000].map(|bytes| pace.piece_bytes(7, bytes)),
            [10_000, 10_000, 5_000, 0, 0]
        );
        assert_eq!(pace.span(3), Duration::from_millis(30));
    }

    #[test]
    fn what_is_less_than_an_octet_counts_for_later_pieces() {
        let pieces = |bps: u64, count: u64| {
            let pace = Pace::new(Rate::from_bps(bps), Duration::from_millis(100));
            (0..count).map(|piece| pace.piece_bytes(piece, 0)).collect::<Vec<u64>>()
        };
        // 3.75 octets in 10 ms; and 0.1, so that every tenth piece is one.
        assert_eq!(pieces(3_000, 8), [3, 4, 4, 4, 3, 4, 4, 4]);
        assert_eq!(pieces(80, 20), [[0; 9], [0; 9]].map(|nine| [&nine[..], &[1]].concat()).concat());
        // 100 s are as many octets as an eighth of the bits, of rates whose backlog is less than an octet as well.
        for bps in [8, 72, 799, 23_850, 99_000, 8_000_000] {
            assert_eq!(pieces(bps, 10_000).iter().sum::<u64>(), bps * 100 / 8, "{bps} bit/s");
        }
    }
}
