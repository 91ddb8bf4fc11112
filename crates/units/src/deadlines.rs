//! The times at which sources want to be called: at most one deadline per source, earliest first, equal ones in the
//! order in which they were set.
//!
//! A deadline moves with nearly every packet. A heap that keeps superseded entries until they are due would grow with
//! the traffic, for keep-alives by hours' worth. Here each source has one place, however often its deadline moves.

use crate::Instant;

/// Low bits of a key, which hold the source.
const SOURCE_BITS: u32 = 24;
const SOURCES_MAX: usize = 1 << SOURCE_BITS;

/// A tournament tree in which every source (a small integer) has at most one deadline, which can move. The earlier one
/// of two wins a match. A change replays only the matches that it can affect.
#[derive(Debug, Default)]
pub struct Deadlines {
    /// Winner of match `n`: the earlier one of places `2 n` and `2 n + 1`, which lie side by side. Place 1 is the
    /// overall winner. The second half are the sources, up to a power of two.
    places: Vec<Key>,
    next_order: u64,
}

/// Deadline, order of setting and source as one number, which compares without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl Key {
    /// Key of a source without a deadline.
    const NEVER: Self = Self(u128::MAX);

    /// The order wraps after 2^40; then two equal deadlines may change places.
    #[inline]
    fn new(at: Instant, order: u64, source: usize) -> Self {
        let low = order << SOURCE_BITS | source as u64;
        Self(u128::from(at.as_nanos()) << 64 | u128::from(low))
    }

    #[inline]
    fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    #[inline]
    fn source(self) -> usize {
        self.0 as usize % SOURCES_MAX
    }
}

impl Deadlines {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the earliest deadline and its source.
    #[inline]
    pub fn first(&self) -> Option<(Instant, usize)> {
        let key = *self.places.get(1)?;
        (key.at() < Instant::FAR_FUTURE).then(|| (key.at(), key.source()))
    }

    /// Returns the deadline of `source`.
    #[inline]
    pub fn get(&self, source: usize) -> Option<Instant> {
        let at = self.places.get(self.places.len() / 2 + source)?.at();
        (at < Instant::FAR_FUTURE).then_some(at)
    }

    /// Sets, moves or removes (`None` or never) the deadline of `source`. A deadline that is set to its current time
    /// keeps its turn among equals.
    ///
    /// # Panics
    /// If `source` is 2^24 or more.
    #[inline]
    pub fn set(&mut self, source: usize, at: Option<Instant>) {
        let at = at.unwrap_or(Instant::FAR_FUTURE);
        let place = self.places.len() / 2 + source;
        match self.places.get(place) {
            Some(known) if known.at() == at => return,
            Some(_) => {}
            None if at == Instant::FAR_FUTURE => return,
            None => self.grow(source + 1),
        }
        self.next_order += 1;
        self.play(source, Key::new(at, self.next_order, source));
    }

    /// Gives `source` another key, and replays the matches that this can affect.
    #[inline]
    fn play(&mut self, source: usize, key: Key) {
        let places = &mut self.places[..];
        let (mut place, mut winner) = (places.len() / 2 + source, key);
        places[place] = key;
        while place > 1 {
            winner = winner.min(places[place ^ 1]);
            place /= 2;
            // If the winner is the same as before, nothing changes above.
            if core::mem::replace(&mut places[place], winner) == winner {
                return;
            }
        }
    }

    /// Makes room for `sources` sources.
    #[cold]
    fn grow(&mut self, sources: usize) {
        assert!(sources <= SOURCES_MAX, "{sources} sources of deadlines, of at most {SOURCES_MAX}");
        let leaves = sources.next_power_of_two().max(2);
        let known = self.places.split_off(self.places.len() / 2);
        self.places.clear();
        self.places.resize(2 * leaves, Key::NEVER);
        known.into_iter().enumerate().for_each(|(source, key)| self.play(source, key));
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

    #[test]
    fn those_that_come_later_have_a_place_beside_the_others() {
        let mut deadlines = Deadlines::new();
        assert_eq!((deadlines.first(), deadlines.get(7)), (None, None));
        for source in 0..100 {
            deadlines.set(source, Some(Instant::from_nanos(1000 - source as u64)));
            assert_eq!(deadlines.first(), Some((Instant::from_nanos(1000 - source as u64), source)));
        }
        deadlines.set(99, None);
        assert_eq!(deadlines.first().map(|(_, source)| source), Some(98));
        deadlines.set(5000, None);
        assert_eq!(drain(&mut deadlines).len(), 99);
    }
}
