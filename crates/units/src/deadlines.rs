//! When sources want to be called: at most one deadline per source, earliest first, equal ones in the order in which they were set.
//!
//! A deadline moves with nearly every segment. A heap that keeps superseded entries until they come due would grow with the
//! traffic, by hours' worth for keep-alives; one that knows where each source's entry stands stays as small as their number.

use crate::Instant;
use crate::narrow::u32_from;

const ARITY: usize = 4;
const ABSENT: u32 = u32::MAX;

/// A 4-ary heap in which every source (a small integer) has at most one deadline, which can move.
#[derive(Debug, Default)]
pub struct Deadlines {
    heap: Vec<Entry>,
    /// Where each source stands in `heap`.
    position: Vec<u32>,
    next_order: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    order: u64,
    source: u32,
}

impl Entry {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        self.key() < other.key()
    }

    /// Time and order as one number: one comparison without a branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at.as_nanos()) << 64 | u128::from(self.order)
    }
}

impl Deadlines {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The earliest deadline and its source.
    pub fn first(&self) -> Option<(Instant, usize)> {
        self.heap.first().map(|entry| (entry.at, entry.source as usize))
    }

    /// The deadline of `source`.
    pub fn get(&self, source: usize) -> Option<Instant> {
        let position = *self.position.get(source)?;
        (position != ABSENT).then(|| self.heap[position as usize].at)
    }

    /// Sets, moves or removes the deadline of `source`. One that stays at its time keeps its turn among equals.
    pub fn set(&mut self, source: usize, at: Option<Instant>) {
        if source >= self.position.len() {
            self.position.resize(source + 1, ABSENT);
        }
        match (self.position[source], at) {
            (ABSENT, None) => {}
            (ABSENT, Some(at)) => {
                let order = self.take_order();
                self.heap.push(Entry { at, order, source: u32_from(source as u64) });
                self.rise(self.heap.len() - 1);
            }
            (position, None) => self.remove(position as usize),
            (position, Some(at)) => self.reschedule(position as usize, at),
        }
    }

    fn take_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }

    fn reschedule(&mut self, position: usize, at: Instant) {
        let was = self.heap[position].at;
        if was == at {
            return;
        }
        self.heap[position].at = at;
        self.heap[position].order = self.take_order();
        if at < was { self.rise(position) } else { self.sink(position) }
    }

    fn remove(&mut self, position: usize) {
        let gone = self.heap.swap_remove(position);
        self.position[gone.source as usize] = ABSENT;
        if position < self.heap.len() {
            self.position[self.heap[position].source as usize] = u32_from(position as u64);
            self.sink(position);
            self.rise(position);
        }
    }

    fn rise(&mut self, mut position: usize) {
        let entry = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.place(position, self.heap[parent]);
            position = parent;
        }
        self.place(position, entry);
    }

    fn sink(&mut self, mut position: usize) {
        let entry = self.heap[position];
        while let Some((child, key)) = self.earliest_child(position) {
            if key >= entry.key() {
                break;
            }
            self.place(position, self.heap[child]);
            position = child;
        }
        self.place(position, entry);
    }

    /// The earliest of those right below, and its key.
    #[inline]
    fn earliest_child(&self, position: usize) -> Option<(usize, u128)> {
        let first = position * ARITY + 1;
        let children = self.heap.get(first..)?;
        let of = |child: usize| (first + child, children[child].key());
        let earlier = |a: (usize, u128), b: (usize, u128)| if b.1 < a.1 { b } else { a };
        match children.len() {
            0 => None,
            // Two and two, so that no comparison waits for the other.
            ARITY.. => Some(earlier(earlier(of(0), of(1)), earlier(of(2), of(3)))),
            few => (0..few).map(of).reduce(earlier),
        }
    }

    fn place(&mut self, position: usize, entry: Entry) {
        self.heap[position] = entry;
        self.position[entry.source as usize] = u32_from(position as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    fn drain(deadlines: &mut Deadlines) -> Vec<(u64, usize)> {
        let mut order = Vec::new();
        while let Some((at, source)) = deadlines.first() {
            order.push((at.as_nanos(), source));
            deadlines.set(source, None);
        }
        order
    }

    #[test]
    fn earliest_first_and_ties_in_order_of_setting() {
        let mut deadlines = Deadlines::new();
        for (source, at) in [(3, 20), (1, 10), (2, 20), (0, 10)] {
            deadlines.set(source, Some(Instant::from_nanos(at)));
        }
        assert_eq!(drain(&mut deadlines), [(10, 1), (10, 0), (20, 3), (20, 2)]);
    }

    #[test]
    fn a_deadline_that_moves_leaves_its_old_time() {
        let mut deadlines = Deadlines::new();
        deadlines.set(0, Some(Instant::from_nanos(5)));
        deadlines.set(1, Some(Instant::from_nanos(7)));
        deadlines.set(0, Some(Instant::from_nanos(9)));
        assert_eq!(deadlines.get(0), Some(Instant::from_nanos(9)));
        assert_eq!(drain(&mut deadlines), [(7, 1), (9, 0)]);
        assert_eq!((deadlines.get(0), deadlines.get(9)), (None, None));
    }

    #[test]
    fn a_source_never_has_two_deadlines() {
        let mut prng = Prng::new(1);
        let mut deadlines = Deadlines::new();
        for _ in 0..10_000 {
            deadlines.set(prng.below(100) as usize, Some(Instant::from_millis(prng.below(1000))));
        }
        assert_eq!(deadlines.heap.len(), 100);
        assert_eq!(drain(&mut deadlines).len(), 100);
    }

    #[test]
    fn a_thousand_random_changes_come_out_sorted() {
        let mut prng = Prng::new(1);
        let mut deadlines = Deadlines::new();
        let mut wanted = [None; 100];
        for _ in 0..1000 {
            let source = prng.below(100) as usize;
            let at = (prng.below(4) > 0).then(|| Instant::from_nanos(prng.below(1_000_000)));
            deadlines.set(source, at);
            wanted[source] = at;
        }
        let mut times: Vec<u64> = wanted.iter().flatten().map(|at| at.as_nanos()).collect();
        times.sort_unstable();
        assert!(times.len() > 50);
        assert_eq!(drain(&mut deadlines).iter().map(|(at, _)| *at).collect::<Vec<_>>(), times);
    }
}
