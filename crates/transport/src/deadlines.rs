//! When connections want to be called: a binary heap with one entry a connection.
//!
//! A deadline moves with nearly every segment. A heap that keeps superseded entries until they come due would grow with
//! the traffic, by hours' worth for keep-alives; one that knows where each connection's entry is stays as small as the
//! number of connections.

use units::Instant;
use units::narrow::u32_from;

/// The position of connections without an entry.
const NOWHERE: u32 = u32::MAX;

/// Deadlines by slot.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: Vec<(Instant, u32)>,
    /// Position in the heap, by slot.
    positions: Vec<u32>,
}

impl Deadlines {
    /// The earliest deadline and whose it is.
    pub(crate) fn first(&self) -> Option<(Instant, u32)> {
        self.heap.first().copied()
    }

    /// The deadline of `slot`; [`Instant::FAR_FUTURE`] if it has none.
    pub(crate) fn get(&self, slot: u32) -> Instant {
        match self.position(slot) {
            Some(position) => self.heap[position].0,
            None => Instant::FAR_FUTURE,
        }
    }

    fn position(&self, slot: u32) -> Option<usize> {
        let position = self.positions.get(slot as usize).copied().filter(|position| *position != NOWHERE);
        position.map(|position| position as usize)
    }

    /// Sets the deadline of `slot`; [`Instant::FAR_FUTURE`] removes it.
    pub(crate) fn set(&mut self, slot: u32, at: Instant) {
        match self.position(slot) {
            Some(position) if at == Instant::FAR_FUTURE => self.remove(position),
            Some(position) => {
                self.heap[position].0 = at;
                self.settle(position);
            }
            None if at == Instant::FAR_FUTURE => {}
            None => {
                if self.positions.len() <= slot as usize {
                    self.positions.resize(slot as usize + 1, NOWHERE);
                }
                self.heap.push((at, slot));
                self.settle(self.heap.len() - 1);
            }
        }
    }

    fn remove(&mut self, position: usize) {
        let (_, slot) = self.heap.swap_remove(position);
        self.positions[slot as usize] = NOWHERE;
        if position < self.heap.len() {
            self.settle(position);
        }
    }

    /// Moves the entry at `position` to where it belongs.
    fn settle(&mut self, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent] <= self.heap[position] {
                break;
            }
            self.swap(position, parent);
            position = parent;
        }
        loop {
            let children = 2 * position + 1..(2 * position + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if self.heap[position] <= self.heap[least] {
                break;
            }
            self.swap(position, least);
            position = least;
        }
        self.positions[self.heap[position].1 as usize] = u32_from(position as u64);
    }

    fn swap(&mut self, from: usize, to: usize) {
        self.heap.swap(from, to);
        self.positions[self.heap[from].1 as usize] = u32_from(from as u64);
        self.positions[self.heap[to].1 as usize] = u32_from(to as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(deadlines: &mut Deadlines) -> Vec<(u64, u32)> {
        core::iter::from_fn(|| {
            let (at, slot) = deadlines.first()?;
            deadlines.set(slot, Instant::FAR_FUTURE);
            Some((at.as_nanos() / 1_000_000, slot))
        })
        .collect()
    }

    #[test]
    fn the_earliest_comes_first_whatever_moved() {
        let mut deadlines = Deadlines::default();
        for (slot, at_ms) in [(3, 30), (0, 50), (7, 10), (1, 40), (2, 20)] {
            deadlines.set(slot, Instant::from_millis(at_ms));
        }
        deadlines.set(7, Instant::from_millis(45));
        deadlines.set(0, Instant::from_millis(5));
        deadlines.set(1, Instant::FAR_FUTURE);
        deadlines.set(1, Instant::FAR_FUTURE);
        assert_eq!(deadlines.get(7), Instant::from_millis(45));
        assert_eq!(deadlines.get(9), Instant::FAR_FUTURE);
        assert_eq!(drain(&mut deadlines), [(5, 0), (20, 2), (30, 3), (45, 7)]);
    }

    #[test]
    fn a_connection_never_has_two_entries() {
        let mut deadlines = Deadlines::default();
        let mut prng = units::Prng::new(1);
        for _ in 0..10_000 {
            let slot = prng.below(100) as u32;
            deadlines.set(slot, Instant::from_millis(prng.below(1000)));
        }
        assert_eq!(deadlines.heap.len(), 100);
        let order = drain(&mut deadlines);
        assert!(order.is_sorted());
        assert_eq!(order.len(), 100);
    }
}
