//! Receive buffer size (Co-MPTCP): octets to store until a block is complete.

/// Octets that have arrived and whose block, or an earlier one, is incomplete.
///
/// Blocks leave whole: the last octet of a block in order finds all others stored, so no value is below the block size.
#[derive(Clone, Debug)]
pub struct ReceiveBuffer {
    block_bytes: u64,
    held_bytes: u64,
    released_blocks: u64,
    max_bytes: u64,
    window_max_bytes: u64,
}

impl ReceiveBuffer {
    /// Measures with blocks of `block_bytes` octets (at least one): N packets.
    pub fn new(block_bytes: u64) -> Self {
        let block_bytes = block_bytes.max(1);
        Self { block_bytes, held_bytes: 0, released_blocks: 0, max_bytes: 0, window_max_bytes: 0 }
    }

    /// Records an arrival of `fresh_bytes` new octets, after which everything below `in_order` has arrived. For each
    /// block that is now complete, passes its number k (from 1) and the octets stored just before it left to
    /// `released`.
    pub fn arrival(&mut self, fresh_bytes: u64, in_order: u64, mut released: impl FnMut(u64, u64)) {
        self.held_bytes += fresh_bytes;
        self.max_bytes = self.max_bytes.max(self.held_bytes);
        self.window_max_bytes = self.window_max_bytes.max(self.held_bytes);
        let complete = in_order / self.block_bytes;
        for number in self.released_blocks + 1..=complete {
            released(number, self.held_bytes);
            self.held_bytes -= self.block_bytes;
        }
        self.released_blocks = complete;
    }

    /// Largest number of octets stored.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Ends the window: largest number of octets stored in it.
    pub fn close(&mut self) -> u64 {
        core::mem::replace(&mut self.window_max_bytes, self.held_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(buffer: &mut ReceiveBuffer, fresh_bytes: u64, in_order: u64) -> Vec<(u64, u64)> {
        let mut blocks = Vec::new();
        buffer.arrival(fresh_bytes, in_order, |number, bytes| blocks.push((number, bytes)));
        blocks
    }

    /// Blocks of 100 octets. In order, a block needs 100. Then 130 octets wait behind a hole of 30. Once that is
    /// filled, block 2 (100) is complete, and 60 octets of block 3 have arrived as well: 160.
    #[test]
    fn out_of_order_data_are_stored_until_their_block_is_complete() {
        let mut buffer = ReceiveBuffer::new(100);
        assert_eq!(feed(&mut buffer, 60, 60), []);
        assert_eq!(feed(&mut buffer, 40, 100), [(1, 100)]);
        assert_eq!(buffer.close(), 100);
        assert_eq!(feed(&mut buffer, 130, 100), []);
        assert_eq!(buffer.close(), 130);
        assert_eq!(feed(&mut buffer, 30, 260), [(2, 160)]);
        assert_eq!((buffer.max_bytes(), buffer.close(), buffer.close()), (160, 160, 60));
        assert_eq!(feed(&mut buffer, 0, 260), []);
    }

    /// One packet fills a hole before two blocks: both are stored when the first leaves.
    #[test]
    fn blocks_leave_one_after_the_other() {
        let mut buffer = ReceiveBuffer::new(100);
        assert_eq!(feed(&mut buffer, 190, 0), []);
        assert_eq!(feed(&mut buffer, 10, 200), [(1, 200), (2, 100)]);
        assert_eq!((buffer.max_bytes(), buffer.close(), buffer.close()), (200, 200, 0));
    }
}
