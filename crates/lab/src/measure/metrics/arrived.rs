//! The octets of the stream that have arrived.

use core::ops::Range;

/// Everything below a cursor, and ranges beyond it, sorted and disjoint. Memory grows with the number of open holes,
/// not with the length of the stream.
#[derive(Clone, Debug, Default)]
pub struct Arrived {
    in_order: u64,
    beyond: Vec<Range<u64>>,
}

impl Arrived {
    /// Returns the end of the data that arrived without a hole.
    pub fn in_order(&self) -> u64 {
        self.in_order
    }

    /// Adds `range`, and passes every part of it that is new to `fresh`, in order.
    pub fn insert(&mut self, range: Range<u64>, mut fresh: impl FnMut(Range<u64>)) {
        let mut start = range.start.max(self.in_order);
        if start >= range.end {
            return;
        }
        let first = self.beyond.partition_point(|known| known.end < start);
        let last = self.beyond.partition_point(|known| known.start <= range.end);
        let mut joined = start..range.end;
        for known in &self.beyond[first..last] {
            if start < known.start {
                fresh(start..known.start);
            }
            start = start.max(known.end);
            joined = joined.start.min(known.start)..joined.end.max(known.end);
        }
        if start < range.end {
            fresh(start..range.end);
        }
        if joined.start <= self.in_order {
            self.in_order = joined.end;
            self.beyond.drain(..last);
        } else {
            self.beyond.splice(first..last, [joined]);
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Prng;

    use super::*;

    fn insert(arrived: &mut Arrived, range: Range<u64>) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        arrived.insert(range, |piece| pieces.push((piece.start, piece.end)));
        pieces
    }

    #[test]
    fn only_what_is_new_is_fresh() {
        let mut arrived = Arrived::default();
        assert_eq!(insert(&mut arrived, 10..20), [(10, 20)]);
        assert_eq!(insert(&mut arrived, 30..40), [(30, 40)]);
        assert_eq!(insert(&mut arrived, 5..45), [(5, 10), (20, 30), (40, 45)]);
        assert_eq!(insert(&mut arrived, 12..45), []);
        assert_eq!((arrived.in_order(), arrived.beyond.len()), (0, 1));
        assert_eq!(insert(&mut arrived, 50..60), [(50, 60)]);
        assert_eq!(insert(&mut arrived, 0..6), [(0, 5)]);
        assert_eq!((arrived.in_order(), &arrived.beyond[0], arrived.beyond.len()), (45, &(50..60), 1));
        assert_eq!(insert(&mut arrived, 40..50), [(45, 50)]);
        assert_eq!((arrived.in_order(), arrived.beyond.len()), (60, 0));
        assert_eq!(insert(&mut arrived, 0..60), []);
        assert_eq!(insert(&mut arrived, 60..60), []);
    }

    #[test]
    fn a_range_next_to_another_joins_it() {
        let mut arrived = Arrived::default();
        for range in [10..20, 20..30, 5..10] {
            insert(&mut arrived, range);
        }
        assert_eq!((&arrived.beyond[0], arrived.beyond.len()), (&(5..30), 1));
    }

    /// Compares with one flag per octet: in any order of arrival, every octet is fresh once.
    #[test]
    fn every_octet_is_fresh_once() {
        for seed in 0..200 {
            let (mut prng, mut arrived, mut flags) = (Prng::new(seed), Arrived::default(), [false; 120]);
            for _ in 0..60 {
                let start = prng.below(110);
                let range = start..start + 1 + prng.below(10);
                let expected: Vec<_> = range.clone().filter(|octet| !flags[*octet as usize]).collect();
                let mut fresh = Vec::new();
                arrived.insert(range, |piece| fresh.extend(piece));
                assert_eq!(fresh, expected, "seed {seed}");
                fresh.iter().for_each(|octet| flags[*octet as usize] = true);
                let in_order = flags.iter().position(|arrived| !arrived).unwrap_or(flags.len());
                assert_eq!(arrived.in_order(), in_order as u64, "seed {seed}");
                assert!(arrived.beyond.windows(2).all(|pair| pair[0].end < pair[1].start), "seed {seed}: {arrived:?}");
            }
        }
    }
}
