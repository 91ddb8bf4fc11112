//! Which positions of a stream have arrived.

use core::ops::Range;

/// Everything below `next`, and ranges beyond it: sorted, apart from each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    next: u64,
    beyond: Vec<Range<u64>>,
}

impl Received {
    /// Up to where everything has arrived.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether all of `range` has arrived.
    #[inline]
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        range.end <= self.next || self.beyond.iter().any(|known| known.start <= range.start && range.end <= known.end)
    }

    /// All that has arrived of `range`.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        core::iter::once(0..self.next)
            .chain(self.beyond.iter().cloned())
            .map(move |known| known.start.max(range.start)..known.end.min(range.end))
            .filter(|piece| piece.start < piece.end)
    }

    /// How much of what is missing up to `end` has arrived beyond it.
    #[inline]
    pub(crate) fn beyond_up_to(&self, end: u64) -> u64 {
        self.beyond.iter().map(|known| known.end.min(end).saturating_sub(known.start)).sum()
    }

    #[inline]
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.end <= self.next || range.is_empty() {
            return;
        }
        if range.start <= self.next && self.beyond.is_empty() {
            // In order, with nothing missing, as nearly always.
            self.next = range.end;
        } else {
            self.insert_among(range);
        }
    }

    fn insert_among(&mut self, range: Range<u64>) {
        if range.start > self.next {
            self.insert_beyond(range);
            return;
        }
        self.next = range.end;
        let reached = self.beyond.iter().take_while(|known| known.start <= range.end).count();
        self.beyond.drain(..reached).for_each(|known| self.next = self.next.max(known.end));
    }

    fn insert_beyond(&mut self, mut range: Range<u64>) {
        let first = self.beyond.partition_point(|known| known.end < range.start);
        let last = self.beyond.partition_point(|known| known.start <= range.end);
        if first < last {
            range = range.start.min(self.beyond[first].start)..range.end.max(self.beyond[last - 1].end);
        }
        self.beyond.splice(first..last, [range]);
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
        assert_eq!((received.next(), &received.beyond[..]), (0, &[10..40, 50..60][..]));
        assert!(received.contains(&(15..35)) && !received.contains(&(35..55)));
        assert_eq!(received.within(5..55).collect::<Vec<_>>(), [10..40, 50..55]);
        assert_eq!([5, 35, 45, 55, 70].map(|end| received.beyond_up_to(end)), [0, 25, 30, 35, 40]);
        received.insert(0..12);
        assert_eq!((received.next(), received.beyond.len(), &received.beyond[0]), (40, 1, &(50..60)));
        received.insert(38..70);
        assert_eq!((received.next(), received.beyond.len()), (70, 0));
        assert!(received.contains(&(0..70)));
    }
}
