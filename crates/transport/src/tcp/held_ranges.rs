//! The ranges that a receiver holds beyond a hole, for its SACK blocks (RFC 2018).

use arrayvec::ArrayVec;
use units::SeqNr;
use wire::SackBlock;

use crate::ordered_queue::OrderedQueue;

/// Number of ranges remembered as the most recent; each ACK reports up to four of them.
const RECENT_MAX: usize = 8;

/// Ranges that have arrived. The octets just below and above each have not: a block that is reported must be isolated
/// (RFC 2018 section 3), also from what arrived long ago.
#[derive(Debug, Default)]
pub(super) struct HeldRanges {
    /// All of them, in order.
    all: OrderedQueue<SackBlock>,
    /// The most recent of them, most recent first (section 4).
    recent: ArrayVec<SackBlock, RECENT_MAX>,
}

impl HeldRanges {
    /// Adds `[start, end)`: the range that contains it becomes the most recent.
    pub(super) fn note(&mut self, start: SeqNr, end: SeqNr) {
        let merged = self.merge(start, end);
        self.recent.retain(|range| range.end.before(merged.start) || range.start.after(merged.end));
        self.recent.truncate(RECENT_MAX - 1);
        self.recent.insert(0, merged);
    }

    /// Merges `[start, end)` into all ranges, and returns the one that contains it now.
    fn merge(&mut self, start: SeqNr, end: SeqNr) -> SackBlock {
        let mut merged = SackBlock { start, end };
        let at = match self.all.back() {
            Some(last) if last.end.before(start) => self.all.end(),
            _ => self.all.partition_point(|range| range.end.before(start)),
        };
        let touching = self.all.iter_from(at).take_while(|range| range.start.before_or_at(end)).count();
        let at = self.all.remove_run(at, touching, |range| {
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
        });
        self.all.insert(at, merged);
        merged
    }

    /// Removes the ranges that are in order now that everything before `nxt` has arrived.
    pub(super) fn advance(&mut self, nxt: SeqNr) {
        self.recent.retain(|range| range.end.after(nxt));
        while self.all.front().is_some_and(|range| range.end.before_or_at(nxt)) {
            self.all.pop_front();
        }
        if self.recent.is_empty() {
            self.recent.extend(self.all.iter().copied().take(RECENT_MAX));
        }
    }

    /// Returns the ranges to report, most recent first.
    pub(super) fn recent(&self) -> &[SackBlock] {
        &self.recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u32, end: u32) -> SackBlock {
        SackBlock { start: SeqNr(start), end: SeqNr(end) }
    }

    /// Ranges of ten octets with holes of ten octets between them.
    fn twenty() -> HeldRanges {
        let mut ranges = HeldRanges::default();
        (1..=20).for_each(|i| ranges.note(SeqNr(20 * i), SeqNr(20 * i + 10)));
        ranges
    }

    #[test]
    fn a_block_is_isolated_from_what_arrived_long_ago() {
        let mut ranges = twenty();
        assert_eq!(ranges.recent()[..2], [block(400, 410), block(380, 390)]);
        ranges.note(SeqNr(30), SeqNr(40));
        assert_eq!(ranges.recent()[0], block(20, 50));
        ranges.note(SeqNr(55), SeqNr(58));
        ranges.note(SeqNr(50), SeqNr(55));
        assert_eq!(ranges.recent()[..2], [block(20, 58), block(400, 410)]);
    }

    /// RFC 2018 section 4: every ACK below the highest octet that arrived reports blocks.
    #[test]
    fn what_arrived_long_ago_is_reported_once_the_recent_is_in_order() {
        let mut ranges = HeldRanges::default();
        (1..=20).rev().for_each(|i| ranges.note(SeqNr(20 * i), SeqNr(20 * i + 10)));
        ranges.advance(SeqNr(170));
        assert_eq!(ranges.recent()[0], block(180, 190));
        assert_eq!(ranges.recent().len(), RECENT_MAX);
        ranges.advance(SeqNr(410));
        assert!(ranges.recent().is_empty());
    }
}
