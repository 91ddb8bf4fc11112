//! The flows of one host, looked up by address for every segment.

use core::net::{SocketAddr, SocketAddrV4};
use core::ops::{Index, IndexMut};
use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::flow::Flow;

/// The addresses of a flow, the host's own side first.
pub type FlowKey = (SocketAddr, SocketAddr);

/// Up to this number of flows, a linear search is fastest.
const FEW: usize = 8;

/// Flows in order of appearance; the place of a flow never changes.
#[derive(Debug, Default)]
pub(super) struct Flows {
    keys: Vec<FlowKey>,
    /// The same keys in words.
    words: Vec<Words>,
    all: Vec<Flow>,
    /// Index of each flow in `all`; the order of these maps is never used.
    places: HashMap<Words, usize, FixedState>,
    places_v6: HashMap<FlowKey, usize, FixedState>,
}

/// Both ends of an IPv4 flow, compared for every segment. All other flows have the same value.
type Words = (u64, u64);

const NO_WORDS: Words = (u64::MAX, u64::MAX);

#[inline]
fn words(local: &SocketAddr, remote: &SocketAddr) -> Words {
    let word = |end: &SocketAddrV4| u64::from(end.ip().to_bits()) << 16 | u64::from(end.port());
    match (local, remote) {
        (SocketAddr::V4(local), SocketAddr::V4(remote)) => (word(local), word(remote)),
        _ => NO_WORDS,
    }
}

impl Flows {
    /// Returns the place of the flow from `local` to `remote`; adds the flow if it is new.
    #[inline(always)]
    pub(super) fn place_of(&mut self, local: &SocketAddr, remote: &SocketAddr) -> usize {
        let words = words(local, remote);
        if words == NO_WORDS {
            return self.place_of_v6((*local, *remote));
        }
        let known = if self.words.len() <= FEW {
            self.words.iter().position(|known| *known == words)
        } else {
            self.find_among_many(words)
        };
        known.unwrap_or_else(|| self.add((*local, *remote), words))
    }

    #[inline(never)]
    fn find_among_many(&self, words: Words) -> Option<usize> {
        self.places.get(&words).copied()
    }

    fn place_of_v6(&mut self, key: FlowKey) -> usize {
        self.places_v6.get(&key).copied().unwrap_or_else(|| self.add(key, NO_WORDS))
    }

    /// Returns the number of flows so far.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the flow at `place`, with its addresses.
    #[inline]
    pub(super) fn at(&mut self, place: usize) -> (&FlowKey, &mut Flow) {
        (&self.keys[place], &mut self.all[place])
    }

    #[cold]
    fn add(&mut self, key: FlowKey, words: Words) -> usize {
        let place = self.keys.len();
        self.keys.push(key);
        self.words.push(words);
        self.all.push(Flow::default());
        if words == NO_WORDS {
            self.places_v6.insert(key, place);
        } else {
            self.places.insert(words, place);
        }
        place
    }
}

impl Index<usize> for Flows {
    type Output = Flow;

    #[inline]
    fn index(&self, place: usize) -> &Flow {
        &self.all[place]
    }
}

impl IndexMut<usize> for Flows {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut Flow {
        &mut self.all[place]
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::Member;
    use super::*;

    #[test]
    fn few_and_many_of_both_families_are_found() {
        let v4 = |port: u16| (SocketAddr::from(([10, 0, 0, 1], port)), SocketAddr::from(([10, 0, 0, 2], 80)));
        let v6 = |port: u16| (SocketAddr::from(([1; 16], port)), SocketAddr::from(([2; 16], 80)));
        let key = |number: u16| if number % 3 == 0 { v6(number) } else { v4(number) };
        let mut flows = Flows::default();
        for number in 0..100 {
            let (local, remote) = key(number);
            let place = flows.place_of(&local, &remote);
            assert_eq!((place, flows[place].member, *flows.at(place).0), (number.into(), None, (local, remote)));
            flows[place].member = Some(Member { connection: number.into(), flow: 0 });
        }
        for number in (0..100).chain((0..100).rev()) {
            let (local, remote) = key(number);
            let place = flows.place_of(&local, &remote);
            assert_eq!(flows[place].member.map(|member| member.connection), Some(number.into()));
        }
        let (local, remote) = v4(1);
        assert_eq!(flows.place_of(&remote, &local), 100, "the other way is another flow");
    }
}
