//! Drop-tail queues, with an ECN marking threshold.

use crate::Amount;

/// Limits of a drop-tail queue. The packet in service counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    packets_max: u64,
    bytes_max: u64,
    mark_above_packets: u64,
}

impl Queue {
    /// Creates a queue without a limit.
    pub const fn unlimited() -> Self {
        Self { packets_max: u64::MAX, bytes_max: u64::MAX, mark_above_packets: u64::MAX }
    }

    /// Limits the queue to `packets` packets.
    pub const fn packets(packets: u64) -> Self {
        Self { packets_max: packets, ..Self::unlimited() }
    }

    /// Limits the queue to `bytes` octets. A larger packet still enters an empty queue.
    pub const fn bytes(bytes: u64) -> Self {
        Self { bytes_max: bytes, ..Self::unlimited() }
    }

    /// Adds a limit of `bytes` octets to the existing limit.
    pub const fn and_bytes(self, bytes: u64) -> Self {
        Self { bytes_max: bytes, ..self }
    }

    /// Marks ECN-capable packets that find `packets` packets or more (RFC 3168 section 5).
    pub const fn mark_above(self, packets: u64) -> Self {
        Self { mark_above_packets: packets, ..self }
    }

    /// Returns whether one more packet of `wire_len` octets may enter.
    #[inline]
    pub fn admits(&self, backlog: Amount, wire_len: u32) -> bool {
        let fits = backlog.bytes + u64::from(wire_len) <= self.bytes_max || backlog.packets == 0;
        fits && backlog.packets < self.packets_max
    }

    /// Whether an arriving packet is marked.
    #[inline]
    pub(crate) fn marks(&self, backlog: Amount) -> bool {
        backlog.packets >= self.mark_above_packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_limit_refuses() {
        let queue = Queue::packets(3).and_bytes(3000);
        assert!(queue.admits(Amount { packets: 2, bytes: 1500 }, 1500));
        assert!(!queue.admits(Amount { packets: 2, bytes: 1501 }, 1500));
        assert!(!queue.admits(Amount { packets: 3, bytes: 0 }, 40));
        assert!(queue.admits(Amount::default(), 9000));
    }
}
