//! The set of octets of a stream that have arrived, including those behind holes.

use std::collections::VecDeque;

use units::Dsn;

/// Disjoint pieces `[start, end)` in ascending order, with a hole between any two.
#[derive(Debug, Default)]
pub(super) struct ReceivedSet(VecDeque<(Dsn, Dsn)>);

impl ReceivedSet {
    /// Adds `[start, end)`.
    pub(super) fn insert(&mut self, mut start: Dsn, mut end: Dsn) {
        if end.before_or_at(start) {
            return;
        }
        let first = self.0.partition_point(|piece| piece.1.before(start));
        let after = self.0.partition_point(|piece| piece.0.before_or_at(end));
        for piece in self.0.range(first..after) {
            (start, end) = (start.min(piece.0), end.max(piece.1));
        }
        match after - first {
            0 => self.0.insert(first, (start, end)),
            touched => {
                self.0[first] = (start, end);
                if touched > 1 {
                    self.0.drain(first + 1..after);
                }
            }
        }
    }

    /// Removes everything before `min`.
    pub(super) fn forget_before(&mut self, min: Dsn) {
        while self.0.front().is_some_and(|piece| piece.1.before_or_at(min)) {
            self.0.pop_front();
        }
        if let Some(piece) = self.0.front_mut() {
            piece.0 = piece.0.max(min);
        }
    }

    /// Returns how many octets of `[min, max]`, both included, have arrived.
    pub(super) fn bytes_within(&self, min: Dsn, max: Dsn) -> u64 {
        let pieces = self.0.iter().map(|piece| (piece.0.max(min), piece.1.min(max + 1)));
        pieces.filter(|(start, end)| start.before(*end)).map(|(start, end)| end.since(start)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pieces: &[(u64, u64)]) -> ReceivedSet {
        let mut set = ReceivedSet::default();
        for &(start, end) in pieces {
            set.insert(Dsn(start), Dsn(end));
        }
        set
    }

    #[test]
    fn pieces_join_their_neighbours() {
        assert_eq!(set(&[(10, 20), (30, 40), (20, 30)]).0, [(Dsn(10), Dsn(40))]);
        assert_eq!(set(&[(30, 40), (10, 20), (50, 60), (15, 55)]).0, [(Dsn(10), Dsn(60))]);
        assert_eq!(set(&[(10, 20), (12, 15), (5, 5)]).0, [(Dsn(10), Dsn(20))]);
        assert_eq!(set(&[(30, 40), (10, 20)]).0, [(Dsn(10), Dsn(20)), (Dsn(30), Dsn(40))]);
    }

    #[test]
    fn counts_what_lies_within() {
        let mut set = set(&[(0, 10), (20, 30), (95, 120)]);
        assert_eq!(set.bytes_within(Dsn(5), Dsn(99)), 5 + 10 + 5);
        set.forget_before(Dsn(25));
        assert_eq!(set.0, [(Dsn(25), Dsn(30)), (Dsn(95), Dsn(120))]);
    }
}
