//! Data at a steady rate, without catching up.

use units::{Duration, Rate};

/// Time between two pieces.
const TICK: Duration = Duration::from_millis(10);

/// The pace of a source that could write at any rate.
///
/// Every 10 ms it writes what the rate carries in that time, unless more than a backlog waits for a subflow (as with
/// Linux's `TCP_NOTSENT_LOWAT`): data that the network could not take are left out instead of sent in a burst later.
/// Fractions of an octet carry over to later pieces: the sum of all pieces is what the rate carries in their time,
/// rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    rate: Rate,
    backlog_bytes: u64,
}

impl Pace {
    /// Writes at most `rate`, while the unsent octets are at most what the rate carries in `backlog`. The backlog is at
    /// least one octet: with none, nothing would ever be written.
    pub fn new(rate: Rate, backlog: Duration) -> Self {
        Self { rate, backlog_bytes: rate.bytes_in(backlog).max(1) }
    }

    /// Time from the first piece until the piece with number `pieces` is due.
    pub(super) fn span(&self, pieces: u64) -> Duration {
        TICK.saturating_mul(pieces)
    }

    /// Octets of the piece with number `piece`, from 0, when `unsent_bytes` wait.
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
        // 3.75 octets in 10 ms; and 0.1, so every tenth piece is one octet.
        assert_eq!(pieces(3_000, 8), [3, 4, 4, 4, 3, 4, 4, 4]);
        assert_eq!(pieces(80, 20), [[0; 9], [0; 9]].map(|nine| [&nine[..], &[1]].concat()).concat());
        // 100 s carry an eighth of 100 times the bit rate in octets, even for rates whose backlog is less than an
        // octet.
        for bps in [8, 72, 799, 23_850, 99_000, 8_000_000] {
            assert_eq!(pieces(bps, 10_000).iter().sum::<u64>(), bps * 100 / 8, "{bps} bit/s");
        }
    }
}
