//! A queue in ascending order that is nearly always extended at its end and shortened at its front.
//!
//! A peer decides where its segments belong in such a queue. In one piece of memory, an insertion in the middle moves
//! half of all elements: with small segments a few megabytes for each. Here the elements lie in chunks of limited
//! length, so that an insertion moves elements of one chunk only, however many there are. Nearly always there is one
//! chunk: a queue up to its length needs no other memory than one piece.

use std::collections::VecDeque;

/// Maximum length of a chunk. Few connections with full-sized segments have more of them waiting.
const CHUNK_MAX: usize = 512;

/// The queue. Its owner keeps the order, and takes places from [`Self::partition_point`].
#[derive(Debug)]
pub(crate) struct OrderedQueue<T, const CHUNK: usize = CHUNK_MAX> {
    /// None of several chunks is empty.
    chunks: Vec<VecDeque<T>>,
    len: usize,
}

/// The place of an element, or the end. A change to the queue moves places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    chunk: usize,
    index: usize,
}

impl<T, const CHUNK: usize> Default for OrderedQueue<T, CHUNK> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T, const CHUNK: usize> OrderedQueue<T, CHUNK> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.chunks.first()?.front()
    }

    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.chunks.first_mut()?.front_mut()
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        self.chunks.last()?.back()
    }

    #[inline]
    pub(crate) fn push_back(&mut self, element: T) {
        self.len += 1;
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push_back(element),
            _ => self.push_chunk(element),
        }
    }

    #[cold]
    fn push_chunk(&mut self, first: T) {
        self.chunks.push(VecDeque::from([first]));
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let first = self.chunks.first_mut()?;
        let front = first.pop_front()?;
        self.len -= 1;
        if first.is_empty() && self.chunks.len() > 1 {
            self.chunks.remove(0);
        }
        Some(front)
    }

    pub(crate) fn get(&self, place: Place) -> Option<&T> {
        self.chunks.get(place.chunk)?.get(place.index)
    }

    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.chunks.get_mut(place.chunk)?.get_mut(place.index)
    }

    /// Returns the place behind all elements.
    pub(crate) fn end(&self) -> Place {
        Place { chunk: self.chunks.len().saturating_sub(1), index: self.chunks.last().map_or(0, VecDeque::len) }
    }

    /// Returns the place of the first element for which `is_before` does not hold, or the end.
    pub(crate) fn partition_point(&self, mut is_before: impl FnMut(&T) -> bool) -> Place {
        let chunk = self.chunks.partition_point(|chunk| chunk.back().is_some_and(&mut is_before));
        match self.chunks.get(chunk) {
            Some(elements) => Place { chunk, index: elements.partition_point(is_before) },
            None => self.end(),
        }
    }

    /// Returns the place behind that of an element.
    pub(crate) fn next(&self, place: Place) -> Place {
        self.normal(Place { index: place.index + 1, ..place })
    }

    /// The end of a chunk is the start of the next one.
    fn normal(&self, place: Place) -> Place {
        let is_end = self.chunks.get(place.chunk).is_some_and(|chunk| chunk.len() == place.index);
        let has_next = place.chunk + 1 < self.chunks.len();
        if is_end && has_next { Place { chunk: place.chunk + 1, index: 0 } } else { place }
    }

    /// Returns the place before `place`, if it is not the first.
    pub(crate) fn previous(&self, place: Place) -> Option<Place> {
        if let Some(index) = place.index.checked_sub(1) {
            return Some(Place { index, ..place });
        }
        let chunk = place.chunk.checked_sub(1)?;
        Some(Place { chunk, index: self.chunks[chunk].len() - 1 })
    }

    /// Iterates over the elements from `place` on.
    pub(crate) fn iter_from(&self, place: Place) -> impl Iterator<Item = &T> {
        let first = self.chunks.get(place.chunk).into_iter().flat_map(move |chunk| chunk.range(place.index..));
        let later = self.chunks.iter().skip(place.chunk + 1).flatten();
        first.chain(later).inspect(|_| work(1))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().inspect(|_| work(1))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten()
    }

    /// Inserts an element before the one at `place`. Returns its own place.
    pub(crate) fn insert(&mut self, place: Place, element: T) -> Place {
        if place == self.end() {
            self.push_back(element);
            return self.previous(self.end()).unwrap_or(place);
        }
        let chunk = &mut self.chunks[place.chunk];
        work(place.index.min(chunk.len() - place.index));
        chunk.insert(place.index, element);
        self.len += 1;
        if chunk.len() > CHUNK { self.split(place) } else { place }
    }

    /// Splits the chunk of `place`. Returns the place that this becomes.
    #[cold]
    fn split(&mut self, place: Place) -> Place {
        let chunk = &mut self.chunks[place.chunk];
        let half = chunk.len() / 2;
        let later = chunk.split_off(half);
        work(later.len() + self.chunks.len() - place.chunk);
        self.chunks.insert(place.chunk + 1, later);
        if place.index < half { place } else { Place { chunk: place.chunk + 1, index: place.index - half } }
    }

    /// Removes `count` elements from `place` on and hands them to `take`. Returns the place of the next element.
    pub(crate) fn remove_run(&mut self, mut place: Place, mut count: usize, mut take: impl FnMut(T)) -> Place {
        while let Some(chunk) = self.chunks.get_mut(place.chunk).filter(|_| count > 0) {
            let here = place.index..chunk.len().min(place.index + count);
            let removed = here.len();
            work(removed + here.start.min(chunk.len() - here.end));
            chunk.drain(here).for_each(&mut take);
            self.len -= removed;
            count -= removed;
            place = self.join_small(place);
            if removed == 0 {
                break;
            }
        }
        place
    }

    /// Joins the chunk of `place` with its neighbours if they are small. Returns the place that `place` becomes.
    fn join_small(&mut self, mut place: Place) -> Place {
        self.join_if_small(place.chunk);
        if let Some(before) = place.chunk.checked_sub(1) {
            let len = self.chunks[before].len();
            if self.join_if_small(before) {
                place = Place { chunk: before, index: place.index + len };
            }
        }
        self.normal(place)
    }

    /// Joins a chunk with the next one if one is empty or both are small. Returns whether it did.
    fn join_if_small(&mut self, first: usize) -> bool {
        let Some(next_len) = self.chunks.get(first + 1).map(VecDeque::len) else { return false };
        let len = self.chunks[first].len();
        if len > 0 && next_len > 0 && len + next_len > CHUNK / 2 {
            return false;
        }
        work(next_len + self.chunks.len() - first);
        let mut next = self.chunks.remove(first + 1);
        self.chunks[first].append(&mut next);
        true
    }
}

/// Notes that `elements` were moved or visited one by one, so that tests can show what a peer can cost.
#[inline]
pub(crate) fn work(elements: usize) {
    #[cfg(test)]
    effort::WORK.with(|work| work.set(work.get() + elements));
    #[cfg(not(test))]
    let _ = elements;
}

#[cfg(test)]
pub(crate) mod effort {
    use core::cell::Cell;

    thread_local! {
        pub(super) static WORK: Cell<usize> = const { Cell::new(0) };
    }

    /// Returns the number of elements that queues move, or visit one by one, during `deed`.
    pub(crate) fn of(deed: impl FnOnce()) -> usize {
        let before = WORK.get();
        deed();
        WORK.get() - before
    }

    /// Asserts that twice as much input costs twice as much, and not four times.
    #[track_caller]
    pub(crate) fn assert_linear(cost: impl Fn(u32) -> usize) {
        let (once, twice) = (cost(20_000), cost(40_000));
        assert!(twice < 3 * once.max(20_000), "{once} for 20,000 and {twice} for 40,000");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Small = OrderedQueue<u32, 8>;

    fn place_of(queue: &Small, index: usize) -> Place {
        let mut place = queue.partition_point(|_| false);
        (0..index).for_each(|_| place = queue.next(place));
        place
    }

    fn assert_tidy(queue: &Small) {
        let lens: Vec<_> = queue.chunks.iter().map(VecDeque::len).collect();
        assert!(lens.len() <= 1 || lens.iter().all(|len| (1..=8).contains(len)), "{lens:?}");
    }

    proptest! {
        /// It behaves as a plain queue does.
        #[test]
        fn chunks_do_not_show(steps in proptest::collection::vec((0..5_u8, 0..1000_u32, 0..40_usize), 1..200)) {
            let (mut queue, mut plain) = (Small::default(), VecDeque::new());
            for (step, value, count) in steps {
                let index = plain.partition_point(|known| *known <= value);
                let place = queue.partition_point(|known| *known <= value);
                prop_assert_eq!(place, place_of(&queue, index));
                match step {
                    0 => prop_assert_eq!(queue.pop_front(), plain.pop_front()),
                    1 => {
                        let removed = count.min(plain.len() - index);
                        let mut taken = Vec::new();
                        let next = queue.remove_run(place, removed, |element| taken.push(element));
                        prop_assert_eq!(taken, plain.drain(index..index + removed).collect::<Vec<_>>());
                        prop_assert_eq!(next, place_of(&queue, index));
                    }
                    _ => {
                        plain.insert(index, value);
                        let place = queue.insert(place, value);
                        prop_assert_eq!(place, place_of(&queue, index));
                    }
                }
                assert_tidy(&queue);
                prop_assert_eq!(queue.len(), plain.len());
                prop_assert_eq!((queue.front(), queue.back()), (plain.front(), plain.back()));
                prop_assert!(queue.iter().eq(&plain));
                prop_assert!(queue.iter_mut().map(|element| &*element).eq(&plain));
                prop_assert!(queue.iter_from(place_of(&queue, plain.len() / 2)).eq(plain.range(plain.len() / 2..)));
                let before = queue.previous(queue.end()).and_then(|place| queue.get_mut(place).copied());
                prop_assert_eq!(before, plain.back().copied());
            }
        }
    }

    /// Chunks that were split and then emptied, but for an element each, do not remain.
    #[test]
    fn remains_of_chunks_are_joined() {
        let mut queue = Small::default();
        for round in 0..100 {
            for value in 0..50 {
                queue.insert(queue.partition_point(|known| *known < value), value);
            }
            while queue.len() > 10 {
                let place = place_of(&queue, 3 + round % 5);
                queue.remove_run(place, 2, drop);
            }
            assert!(queue.chunks.len() <= 6, "{} chunks", queue.chunks.len());
        }
    }

    #[test]
    fn insertions_in_the_middle_cost_the_same_in_a_long_queue() {
        effort::assert_linear(|n| {
            effort::of(|| {
                let mut queue = OrderedQueue::<u32>::default();
                for value in (0..n).flat_map(|i| [i, 2 * n - i]) {
                    queue.insert(queue.partition_point(|known| *known < value), value);
                }
            })
        });
    }
}
