//! The segments that a TCB must send besides data and ACKs.

/// A set of the constants below: segments to send that are not data. One octet, because every segment checks whether it
/// is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due(u8);

impl Due {
    /// SYN or SYN/ACK.
    pub(super) const SYN: Self = Self(1);
    /// A probe below SND.UNA that makes the peer answer: keep-alive or zero window.
    pub(super) const PROBE: Self = Self(1 << 1);
    /// A tail loss probe.
    pub(super) const TAIL_PROBE: Self = Self(1 << 2);
    /// Retransmission of the first unacknowledged segment, regardless of the congestion window (RFC 6298 section 5.4).
    pub(super) const FIRST_AGAIN: Self = Self(1 << 3);
    /// A segment that would normally be too small (RFC 9293 section 3.8.6.2.1).
    pub(super) const SMALL_SEGMENT: Self = Self(1 << 4);
    /// RST.
    pub(super) const RESET: Self = Self(1 << 5);
    /// A probe with an octet that the peer already has. The peer answers at once, however recently it answered another
    /// probe.
    pub(super) const QUESTION: Self = Self(1 << 6);

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn has(self, thing: Self) -> bool {
        self.0 & thing.0 != 0
    }

    pub(super) const fn add(&mut self, thing: Self) {
        self.0 |= thing.0;
    }

    /// Removes a member. Returns whether it was present.
    pub(super) const fn take(&mut self, thing: Self) -> bool {
        let was_there = self.has(thing);
        self.0 &= !thing.0;
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_told_apart() {
        let all =
            [Due::SYN, Due::PROBE, Due::TAIL_PROBE, Due::FIRST_AGAIN, Due::SMALL_SEGMENT, Due::RESET, Due::QUESTION];
        for thing in all {
            let mut due = Due::default();
            due.add(thing);
            assert!(all.iter().all(|other| due.has(*other) == (*other == thing)) && !due.is_empty());
            assert!(due.take(thing) && !due.take(thing) && due.is_empty());
        }
    }
}
