//! Data that the peer holds out of order and will keep (NR-SACK): they need not be sent again.

use arrayvec::ArrayVec;
use units::Dsn;

/// Maximum number of ranges; a peer with more gaps receives some data twice.
const RANGES_MAX: usize = 16;

/// Ranges of the data stream, ascending and disjoint.
#[derive(Debug, Default)]
pub(super) struct HeldRanges {
    ranges: ArrayVec<(Dsn, Dsn), RANGES_MAX>,
}

impl HeldRanges {
    /// Adds `[start, end)`, merged with all ranges that touch it.
    pub(super) fn add(&mut self, start: Dsn, end: Dsn) {
        let (mut start, mut end) = (start, end);
        self.ranges.retain(|range| {
            let is_apart = range.1.before(start) || range.0.after(end);
            if !is_apart {
                (start, end) = (start.min(range.0), end.max(range.1));
            }
            is_apart
        });
        if !self.ranges.is_full() {
            let at = self.ranges.partition_point(|range| range.0.before(start));
            self.ranges.insert(at, (start, end));
        }
    }

    /// The peer has everything before `una`, and reports that it lacks the octet there.
    pub(super) fn acknowledge(&mut self, una: Dsn) {
        self.ranges.retain(|range| range.0.after(una));
    }

    /// Whether the peer holds all of `[start, end)`.
    pub(super) fn covers(&self, start: Dsn, end: Dsn) -> bool {
        self.ranges.iter().any(|range| range.0.before_or_at(start) && range.1.at_or_after(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_are_forgotten_when_the_stream_reaches_them() {
        let mut held = HeldRanges::default();
        held.add(Dsn(300), Dsn(400));
        held.add(Dsn(100), Dsn(200));
        assert!(!held.covers(Dsn(150), Dsn(350)));
        held.add(Dsn(200), Dsn(300));
        assert!(held.covers(Dsn(150), Dsn(350)) && held.covers(Dsn(100), Dsn(400)));
        held.acknowledge(Dsn(99));
        assert!(held.covers(Dsn(100), Dsn(400)));
        held.acknowledge(Dsn(100));
        assert!(!held.covers(Dsn(300), Dsn(400)), "who lacks the first octet does not hold the range");
    }

    #[test]
    fn gaps_without_end_cost_nothing() {
        let mut held = HeldRanges::default();
        (0..1000).for_each(|i| held.add(Dsn(10 * i), Dsn(10 * i + 5)));
        assert_eq!(held.ranges.len(), RANGES_MAX);
    }
}
