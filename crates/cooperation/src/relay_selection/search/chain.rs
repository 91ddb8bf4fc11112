//! Relay sets as chains that share their tails: a set costs one node instead of a list.

use core::cmp::Ordering;

use crate::relay_selection::field::Position;

/// A chain, identified by its newest node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain(u32);

impl Chain {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
}

#[derive(Clone, Copy, Debug)]
struct Node {
    rest: Chain,
    newest: Position,
    len: u16,
}

/// The node of the empty set.
const EMPTY: Node = Node { rest: Chain::EMPTY, newest: 0, len: 0 };

/// The nodes of all chains.
#[derive(Clone, Debug)]
pub struct Chains(Vec<Node>);

impl Default for Chains {
    fn default() -> Self {
        Self(vec![EMPTY])
    }
}

impl Chains {
    /// Removes all sets except the empty one.
    pub fn clear(&mut self) {
        self.0.truncate(1);
    }

    /// Returns `rest` plus one relay, which it must not contain.
    pub fn push(&mut self, rest: Chain, newest: Position) -> Chain {
        let len = self.len(rest) as u16 + 1;
        self.0.push(Node { rest, newest, len });
        Chain((self.0.len() - 1) as u32)
    }

    /// As [`push`](Self::push), if the size of the new set is known.
    pub fn push_of(&mut self, len: usize, rest: Chain, newest: Position) -> Chain {
        debug_assert_eq!(len, self.len(rest) + 1);
        self.0.push(Node { rest, newest, len: len as u16 });
        Chain((self.0.len() - 1) as u32)
    }

    /// Returns `rest` plus all of `positions`.
    pub fn extend(&mut self, rest: Chain, positions: impl IntoIterator<Item = Position>) -> Chain {
        let lengths = self.len(rest) + 1..;
        lengths.zip(positions).fold(rest, |chain, (len, position)| self.push_of(len, chain, position))
    }

    /// Returns the number of relays in the set.
    pub fn len(&self, chain: Chain) -> usize {
        usize::from(self.0[chain.0 as usize].len)
    }

    /// Returns the relays, newest first.
    pub fn iter(&self, mut chain: Chain) -> impl Iterator<Item = Position> + '_ {
        core::iter::from_fn(move || {
            let node = self.0[chain.0 as usize];
            chain = node.rest;
            (node.len > 0).then_some(node.newest)
        })
    }

    /// Returns how many of the relays `marks` marks.
    pub fn marked(&self, chain: Chain, marks: &[bool]) -> usize {
        self.iter(chain).filter(|position| marks[usize::from(*position)]).count()
    }

    /// Returns the relays in ascending order.
    pub fn sorted(&self, chain: Chain) -> Vec<Position> {
        let mut positions = Vec::with_capacity(self.len(chain));
        positions.extend(self.iter(chain));
        positions.sort_unstable();
        positions
    }

    /// Compares two sets by their relays in ascending order. Sets of different sizes are compared by size.
    pub fn compare(&self, a: Chain, b: Chain) -> Ordering {
        let by_numbers = || {
            // Avoids an allocation if the order allows it.
            if self.is_ascending(a) && self.is_ascending(b) {
                self.compare_ascending(a, b)
            } else {
                self.compare_unordered(a, b)
            }
        };
        self.len(a).cmp(&self.len(b)).then_with(by_numbers)
    }

    /// Returns whether the relays were added in ascending order.
    fn is_ascending(&self, chain: Chain) -> bool {
        self.iter(chain).is_sorted_by(|newer, older| newer > older)
    }

    /// Compares two sets of equal size: the one with the lowest number that is not in both comes first.
    fn compare_unordered(&self, a: Chain, b: Chain) -> Ordering {
        let mut in_one = Marks::default();
        self.iter(a).chain(self.iter(b)).for_each(|position| in_one.flip(position));
        in_one.lowest().map_or(Ordering::Equal, |lowest| {
            if self.iter(a).any(|position| position == lowest) { Ordering::Less } else { Ordering::Greater }
        })
    }

    /// As [`compare`](Self::compare), for two chains of equal size whose relays were added in ascending order.
    pub fn compare_ascending(&self, a: Chain, b: Chain) -> Ordering {
        let differences = self.iter(a).zip(self.iter(b)).map(|(a, b)| a.cmp(&b));
        differences.filter(|difference| difference.is_ne()).last().unwrap_or(Ordering::Equal)
    }

    /// Returns whether `rest` with one more relay comes before `known`, a chain of the same size. The relays of both
    /// were added in descending order.
    pub fn precedes_descending(&self, newest: Position, rest: Chain, known: Chain) -> bool {
        core::iter::once(newest).chain(self.iter(rest)).lt(self.iter(known))
    }
}

/// One mark per position.
#[derive(Default)]
struct Marks(Vec<u64>);

impl Marks {
    fn flip(&mut self, position: Position) {
        let (word, bit) = (usize::from(position) / 64, usize::from(position) % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] ^= 1 << bit;
    }

    /// Returns the first marked position.
    fn lowest(&self) -> Option<Position> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some((word * 64) as Position + self.0[word].trailing_zeros() as Position)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample;

    use super::*;

    #[test]
    fn chains_share_and_compare() {
        let mut chains = Chains::default();
        let ascending = |chains: &mut Chains, set: &[u16]| chains.extend(Chain::EMPTY, set.iter().copied());
        let a = ascending(&mut chains, &[1, 5, 6]);
        let b = ascending(&mut chains, &[2, 3, 6]);
        assert_eq!((chains.len(a), chains.iter(a).collect::<Vec<_>>()), (3, vec![6, 5, 1]));
        assert_eq!(chains.compare_ascending(a, b), Ordering::Less);
        assert_eq!(chains.compare(b, a), Ordering::Greater);
        let c = chains.extend(Chain::EMPTY, [6, 5, 1]);
        let rest = chains.extend(Chain::EMPTY, [6, 3]);
        assert!(!chains.precedes_descending(2, rest, c) && chains.precedes_descending(0, rest, c));
        assert_eq!(chains.compare(a, c), Ordering::Equal);
        assert_eq!(chains.marked(a, &[false, true, true, true, true, false, true]), 2);
    }
    proptest! {
        /// The order in which relays were added does not matter.
        #[test]
        fn sets_compare_as_their_sorted_numbers(
            sets in (1_usize..6).prop_flat_map(|len| {
                let set = || sample::subsequence(vec![0_u16, 1, 2, 62, 63, 64, 65, u16::MAX], len).prop_shuffle();
                [set(), set()]
            }),
        ) {
            let mut chains = Chains::default();
            let [a, b] = sets.map(|set| chains.extend(Chain::EMPTY, set));
            prop_assert_eq!(chains.compare(a, b), chains.sorted(a).cmp(&chains.sorted(b)));
            prop_assert_eq!(chains.compare_unordered(a, b), chains.sorted(a).cmp(&chains.sorted(b)));
        }
    }
}
