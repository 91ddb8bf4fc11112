//! The flows of one host, found by their addresses with every segment.

use core::net::SocketAddr;
use core::ops::{Index, IndexMut};
use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::flow::Flow;

/// The addresses of a flow, the host's own side first.
pub type FlowKey = (SocketAddr, SocketAddr);

/// So few are found soonest by looking at all.
const FEW: usize = 8;

/// In order of appearance, each at a place that stays its own.
#[derive(Debug, Default)]
pub(super) struct Flows {
    keys: Vec<FlowKey>,
    all: Vec<Flow>,
    /// Where each is in `all`; nobody goes through it in its order.
    places: HashMap<FlowKey, usize, FixedState>,
}

impl Flows {
    /// The place of a flow, which is known from now on.
    #[inline]
    pub(super) fn place_of(&mut self, key: FlowKey) -> usize {
        let known = if self.keys.len() <= FEW {
            self.keys.iter().position(|known| *known == key)
        } else {
            self.places.get(&key).copied()
        };
        known.unwrap_or_else(|| self.add(key))
    }

    /// The addresses of the flow at `place`.
    pub(super) fn key(&self, place: usize) -> FlowKey {
        self.keys[place]
    }

    fn add(&mut self, key: FlowKey) -> usize {
        let place = self.keys.len();
        self.keys.push(key);
        self.all.push(Flow::default());
        self.places.insert(key, place);
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
    fn few_and_many_are_found() {
        let key = |port: u16| (SocketAddr::from(([10, 0, 0, 1], port)), SocketAddr::from(([10, 0, 0, 2], 80)));
        let mut flows = Flows::default();
        for port in 0..100 {
            let place = flows.place_of(key(port));
            assert_eq!((place, flows[place].member), (port.into(), None));
            flows[place].member = Some(Member { connection: port.into(), flow: 0 });
        }
        for port in 0..100 {
            let place = flows.place_of(key(port));
            assert_eq!(flows[place].member.map(|member| member.connection), Some(port.into()));
        }
    }
}
