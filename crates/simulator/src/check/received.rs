//! The positions of a stream that have arrived.

use core::ops::Range;
use std::collections::VecDeque;

/// Received positions: everything below `next`, and ranges beyond it, sorted and not adjacent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    next: u64,
    beyond: VecDeque<Range<u64>>,
}

impl Received {
    /// Returns the position up to which everything has arrived.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether all of `range` has arrived.
    #[inline]
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        range.end <= self.next || self.holds_beyond(range)
    }

    /// Ranges are sorted and not adjacent: only the first one that reaches the end of `range` can contain it.
    #[inline(never)]
    fn holds_beyond(&self, range: &Range<u64>) -> bool {
        let first = self.beyond.partition_point(|known| known.end < range.end);
        self.beyond.get(first).is_some_and(|known| known.start <= range.start)
    }

    /// Returns the parts of `range` that have arrived.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        core::iter::once(0..self.next)
            .chain(self.beyond.iter().cloned())
            .map(move |known| known.start.max(range.start)..known.end.min(range.end))
            .filter(|piece| piece.start < piece.end)
    }

    /// Returns how many octets from `next` to `end` have arrived out of order.
    #[inline]
    pub(crate) fn beyond_up_to(&self, end: u64) -> u64 {
        self.beyond.iter().map(|known| known.end.min(end).saturating_sub(known.start)).sum()
    }

    #[inline]
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.end <= self.next || range.is_empty() {
            return;
        }
        if range.start > self.next {
            self.insert_beyond(range);
        } else {
            self.advance(range.end);
        }
    }

    /// Marks everything up to `end` as received; `end` must not be before [`Self::next`].
    #[inline]
    pub(crate) fn advance(&mut self, end: u64) {
        self.next = end;
        // On a single path without loss there are no ranges beyond.
        if self.beyond.front().is_some_and(|known| known.start <= end) {
            self.take_reached();
        }
    }

    #[inline(never)]
    fn take_reached(&mut self) {
        while self.beyond.front().is_some_and(|known| known.start <= self.next) {
            self.next = self.beyond.pop_front().map_or(self.next, |known| self.next.max(known.end));
        }
    }

    /// Inserts a range beyond `next`. With several paths, data usually come after all known ranges, by the path that is
    /// ahead, or fill a gap between two ranges.
    #[inline(never)]
    fn insert_beyond(&mut self, range: Range<u64>) {
        match self.beyond.back_mut() {
            Some(last) if range.start < last.start => self.insert_between(range),
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => self.beyond.push_back(range),
        }
    }

    #[inline(never)]
    fn insert_between(&mut self, mut range: Range<u64>) {
        let first = self.beyond.partition_point(|known| known.end < range.start);
        let reached = self.beyond.range(first..).take_while(|known| known.start <= range.end).count();
        if reached == 0 {
            self.beyond.insert(first, range);
            return;
        }
        range.start = range.start.min(self.beyond[first].start);
        range.end = range.end.max(self.beyond[first + reached - 1].end);
        self.beyond[first] = range;
        if reached > 1 {
            self.beyond.drain(first + 1..first + reached);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_fill_and_ranges_join() {
        let mut received = Received::default();
        for range in [10..20, 30..40, 50..60, 20..30] {
            received.insert(range);
        }
        assert_eq!((received.next(), &received.beyond), (0, &VecDeque::from([10..40, 50..60])));
        assert!(received.contains(&(15..35)) && !received.contains(&(35..55)));
        assert_eq!(received.within(5..55).collect::<Vec<_>>(), [10..40, 50..55]);
        assert_eq!([5, 35, 45, 55, 70].map(|end| received.beyond_up_to(end)), [0, 25, 30, 35, 40]);
        received.insert(0..12);
        assert_eq!((received.next(), received.beyond.len(), &received.beyond[0]), (40, 1, &(50..60)));
        received.insert(38..70);
        assert_eq!((received.next(), received.beyond.len()), (70, 0));
        assert!(received.contains(&(0..70)));
    }

    /// Compares many random orders of arrival with a set of octets.
    #[test]
    fn ranges_hold_what_a_set_of_octets_holds() {
        let mut state = 1_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..200 {
            let (mut received, mut octets) = (Received::default(), [false; 80]);
            for _ in 0..40 {
                let start = below(70);
                let end = start + below(10);
                received.insert(start..end);
                (start..end).for_each(|octet| octets[octet as usize] = true);
                let next = octets.iter().position(|known| !known).unwrap_or(octets.len());
                assert_eq!(received.next(), next as u64);
                let held: u64 = received.within(0..80).map(|piece| piece.end - piece.start).sum();
                assert_eq!(held, octets.iter().filter(|known| **known).count() as u64);
                let sound =
                    received.beyond.iter().zip(received.beyond.iter().skip(1)).all(|(one, next)| one.end < next.start);
                assert!(sound && received.beyond.iter().all(|range| range.start > received.next()));
                let (from, to) = (below(70), below(10));
                let all = octets[from as usize..(from + to) as usize].iter().all(|known| *known);
                assert!(to == 0 || received.contains(&(from..from + to)) == all);
            }
        }
    }
}
