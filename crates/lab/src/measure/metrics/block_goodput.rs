//! Goodput G2 (Co-MPTCP IV-A): a block of N packets over the time since the previous block was complete.

use units::Instant;

use super::rate_bps;

/// A complete block; all blocks before it are complete, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FinishedBlock {
    /// Its number k, from 1.
    pub number: u64,
    /// t_k.
    pub at: Instant,
    /// Its goodput, bit/s.
    pub goodput_bps: f64,
}

/// Goodput of blocks.
///
/// Block k is complete at t_k, when all data up to its end have arrived; t_0 is the first arrival. If one packet
/// completes several blocks, they share the time since the block before them: each gets the goodput of all of them
/// together.
#[derive(Clone, Debug)]
pub struct BlockGoodput {
    block_bytes: u64,
    complete: u64,
    complete_at: Option<Instant>,
    window_began_at: Option<Instant>,
    window_began: u64,
}

impl BlockGoodput {
    /// Counts blocks of `block_bytes` octets (at least one): N packets.
    pub fn new(block_bytes: u64) -> Self {
        let block_bytes = block_bytes.max(1);
        Self { block_bytes, complete: 0, complete_at: None, window_began_at: None, window_began: 0 }
    }

    /// Records an arrival at `at`, after which everything below `in_order` has arrived. Passes newly complete blocks to
    /// `finished`.
    pub fn arrival(&mut self, at: Instant, in_order: u64, mut finished: impl FnMut(FinishedBlock)) {
        let since = *self.complete_at.get_or_insert(at);
        self.window_began_at.get_or_insert(at);
        let complete = in_order / self.block_bytes;
        let new_bytes = (complete - self.complete) * self.block_bytes;
        let Some(goodput_bps) = rate_bps(new_bytes, at.saturating_since(since)) else { return };
        if new_bytes > 0 {
            for number in self.complete + 1..=complete {
                finished(FinishedBlock { number, at, goodput_bps });
            }
            (self.complete, self.complete_at) = (complete, Some(at));
        }
    }

    /// Ends the window: octets of the blocks completed in it over the time since the last block before it, bit/s;
    /// `None` if none was completed.
    pub fn close(&mut self) -> Option<f64> {
        let bytes = (self.complete - self.window_began) * self.block_bytes;
        let (from, to) = (self.window_began_at?, self.complete_at?);
        if bytes == 0 {
            return None;
        }
        (self.window_began, self.window_began_at) = (self.complete, Some(to));
        rate_bps(bytes, to.saturating_since(from))
    }

    /// Number of complete blocks.
    pub fn complete(&self) -> u64 {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(goodput: &mut BlockGoodput, at_s: u64, in_order: u64) -> Vec<(u64, f64)> {
        let mut blocks = Vec::new();
        goodput.arrival(Instant::from_secs(at_s), in_order, |block| blocks.push((block.number, block.goodput_bps)));
        blocks
    }

    /// Blocks of 1000 octets. First packet at 1 s; block 1 complete at 3 s: 8000 / 2. A hole delays blocks 2 and 3
    /// until 7 s: 16000 bit in 4 s for both. Block 4 at 8 s: 8000 / 1. The window: 32000 bit from 1 to 8 s.
    #[test]
    fn a_block_lasts_from_the_one_before_to_its_own_end() {
        let mut goodput = BlockGoodput::new(1000);
        assert_eq!(goodput.close(), None);
        assert_eq!(feed(&mut goodput, 1, 500), []);
        assert_eq!(feed(&mut goodput, 3, 1000), [(1, 4000.0)]);
        assert_eq!(feed(&mut goodput, 5, 1999), []);
        assert_eq!(feed(&mut goodput, 7, 3100), [(2, 4000.0), (3, 4000.0)]);
        assert_eq!(feed(&mut goodput, 8, 4000), [(4, 8000.0)]);
        assert_eq!(goodput.close(), Some(32_000.0 / 7.0));
        assert_eq!(goodput.close(), None);
        assert_eq!(feed(&mut goodput, 10, 5000), [(5, 4000.0)]);
        assert_eq!((goodput.close(), goodput.complete()), (Some(4000.0), 5));
    }

    /// The first packet contains a whole block: no time has passed, so the block counts with the next.
    #[test]
    fn no_block_is_infinitely_fast() {
        let mut goodput = BlockGoodput::new(1000);
        assert_eq!(feed(&mut goodput, 1, 1000), []);
        assert_eq!(feed(&mut goodput, 2, 2000), [(1, 16_000.0), (2, 16_000.0)]);
    }
}
