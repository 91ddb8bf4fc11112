//! Lookup of the subflow that a four-tuple belongs to.

use core::net::SocketAddr;
use std::collections::HashMap;

use foldhash::quality::FixedState;
use units::narrow::usize_from;

use crate::host::{Route, Tuple};

/// Number of cached four-tuples, which are found without hashing.
const FEW: usize = 16;

/// Table of four-tuples. Every segment needs a lookup, and an IPv4 address with its port fits into one word. IPv4
/// four-tuples therefore have a table of their own, with keys that are cheap to hash and compare.
pub(crate) struct Routes {
    v4: HashMap<(u64, u64), Route, FixedState>,
    /// Cache of some entries of `v4`, each at its only possible place. An endpoint with few connections needs no hash.
    few: [Option<((u64, u64), Route)>; FEW],
    others: HashMap<Tuple, Route, FixedState>,
}

impl Routes {
    pub(crate) fn new(hasher: FixedState) -> Self {
        Self { v4: HashMap::with_hasher(hasher.clone()), few: [None; FEW], others: HashMap::with_hasher(hasher) }
    }

    #[inline(always)]
    pub(crate) fn get(&self, tuple: &Tuple) -> Option<Route> {
        self.between(&tuple.local, &tuple.remote)
    }

    /// As [`Self::get`], with borrowed addresses.
    #[inline(always)]
    pub(crate) fn between(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Route> {
        match words(local, remote) {
            Some(words) => match &self.few[place(words)] {
                Some((known, route)) if *known == words => Some(*route),
                _ => self.get_v4(words),
            },
            None => self.get_other(local, remote),
        }
    }

    #[inline(never)]
    fn get_v4(&self, words: (u64, u64)) -> Option<Route> {
        self.v4.get(&words).copied()
    }

    /// Separate from [`Self::between`] to keep the IPv4 code short.
    #[inline(never)]
    fn get_other(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Route> {
        self.others.get(&Tuple { local: *local, remote: *remote }).copied()
    }

    /// Adds or replaces the route of a four-tuple.
    pub(crate) fn insert(&mut self, tuple: Tuple, route: Route) {
        match words(&tuple.local, &tuple.remote) {
            Some(words) => {
                self.few[place(words)] = Some((words, route));
                self.v4.insert(words, route)
            }
            None => self.others.insert(tuple, route),
        };
    }

    pub(crate) fn remove(&mut self, tuple: &Tuple) {
        match words(&tuple.local, &tuple.remote) {
            Some(words) => {
                self.few[place(words)].take_if(|(known, _)| *known == words);
                self.v4.remove(&words)
            }
            None => self.others.remove(tuple),
        };
    }

    pub(crate) fn len(&self) -> usize {
        self.v4.len() + self.others.len()
    }
}

/// Returns a four-tuple's place in the cache. A peer that chooses colliding ports only causes lookups in the table.
#[inline]
fn place((local, remote): (u64, u64)) -> usize {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    usize_from((local ^ remote.rotate_left(8)).wrapping_mul(MIX) >> (64 - FEW.ilog2()))
}

/// Packs both ends of an IPv4 four-tuple into words.
#[inline]
fn words(local: &SocketAddr, remote: &SocketAddr) -> Option<(u64, u64)> {
    match (local, remote) {
        (SocketAddr::V4(local), SocketAddr::V4(remote)) => {
            let word = |ip: u32, port: u16| u64::from(ip) << 16 | u64::from(port);
            Some((word(local.ip().to_bits(), local.port()), word(remote.ip().to_bits(), remote.port())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubflowId;

    #[test]
    fn those_that_meet_in_a_place_are_told_apart() {
        let mut routes = Routes::new(FixedState::with_seed(1));
        let tuple = |port: u16| Tuple { local: ([10, 0, 0, 1], 80).into(), remote: ([10, 0, 0, 2], port).into() };
        let route = |port: u16| Route { slot: u32::from(port), subflow: SubflowId(0) };
        let ports = 1..=10 * FEW as u16;
        ports.clone().for_each(|port| routes.insert(tuple(port), route(port)));
        ports.clone().filter(|port| port % 3 == 0).for_each(|port| routes.remove(&tuple(port)));
        for port in ports {
            assert_eq!(routes.get(&tuple(port)), (port % 3 != 0).then(|| route(port)));
        }
    }

    #[test]
    fn ends_are_told_apart_in_both_families() {
        let mut routes = Routes::new(FixedState::with_seed(1));
        let mut tuples = Vec::new();
        for (one, other) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            for (local, remote) in [(one, other), (other, one)] {
                for (local_port, remote_port) in [(1, 2), (2, 1), (1, 1)] {
                    let (local, remote) = (SocketAddr::new(local, local_port), SocketAddr::new(remote, remote_port));
                    tuples.push(Tuple { local, remote });
                }
            }
        }
        let route = |slot: usize| Route { slot: slot as u32, subflow: SubflowId(0) };
        for (slot, tuple) in tuples.iter().enumerate() {
            assert_eq!(routes.get(tuple), None);
            routes.insert(*tuple, route(slot));
        }
        assert_eq!(routes.len(), tuples.len());
        for (slot, tuple) in tuples.iter().enumerate() {
            assert_eq!(routes.get(tuple), Some(route(slot)));
            routes.remove(tuple);
        }
        assert_eq!(routes.len(), 0);
    }
}
