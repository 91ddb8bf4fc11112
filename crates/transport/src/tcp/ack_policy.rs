//! When to acknowledge: at once, with the next data, or after a delay (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).

/// Segments acknowledged one by one at the start, while the peer's window is small and every ACK makes it grow.
const QUICK_SEGMENTS: u32 = 16;

/// What is owed to the peer.
#[derive(Debug)]
pub(crate) struct AckPolicy {
    /// Octets received since the last ACK was sent.
    unacknowledged: u32,
    due: bool,
    quick_left: u32,
    /// Largest segment seen: what the peer calls full.
    largest: u32,
}

impl AckPolicy {
    pub(crate) fn new() -> Self {
        Self { unacknowledged: 0, due: false, quick_left: QUICK_SEGMENTS, largest: 0 }
    }

    /// Data arrived in order. An ACK is due for every second full segment; offload may hand over many as one, so none
    /// counts as larger than `full_segment`.
    pub(crate) fn on_data(&mut self, bytes: u32, full_segment: u32) {
        self.unacknowledged += bytes;
        self.largest = self.largest.max(bytes.min(full_segment));
        if self.quick_left > 0 {
            self.quick_left -= 1;
            self.due = true;
        }
        self.due |= self.unacknowledged >= 2 * self.largest;
    }

    /// Something happened that the peer must hear of now.
    pub(crate) fn demand(&mut self) {
        self.due = true;
    }

    /// Whether an ACK must go out even without data to ride on.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Whether an ACK may wait for data or the delay.
    pub(crate) fn is_owed(&self) -> bool {
        self.unacknowledged > 0
    }

    /// Any segment with an ACK settles the debt.
    pub(crate) fn on_sent(&mut self) {
        self.unacknowledged = 0;
        self.due = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_segment_after_the_quick_start() {
        let mut policy = AckPolicy::new();
        for _ in 0..QUICK_SEGMENTS {
            policy.on_data(1000, 1000);
            assert!(policy.is_due());
            policy.on_sent();
        }
        policy.on_data(1000, 1000);
        assert!(!policy.is_due() && policy.is_owed());
        policy.on_data(1000, 1000);
        assert!(policy.is_due());
        policy.on_sent();
        assert!(!policy.is_due() && !policy.is_owed());
    }
}
