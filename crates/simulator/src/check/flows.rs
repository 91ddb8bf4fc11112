//! The flows of one host, found by their addresses with every segment.

use core::net::SocketAddr;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::flow::Flow;

/// The addresses of a flow, the host's own side first.
pub(super) type FlowKey = (SocketAddr, SocketAddr);

/// So few are found soonest by looking at all.
const FEW: usize = 8;

/// In order of appearance.
#[derive(Debug, Default)]
pub(super) struct Flows {
    all: Vec<(FlowKey, Flow)>,
    /// Where each is in `all`; nobody goes through it in its order.
    places: HashMap<FlowKey, usize, FixedState>,
}

impl Flows {
    /// A flow that was seen before.
    pub(super) fn get(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        let place = self.place(key)?;
        Some(&mut self.all[place].1)
    }

    /// A flow, known from now on.
    pub(super) fn get_or_add(&mut self, key: FlowKey) -> &mut Flow {
        let place = self.place(&key).unwrap_or_else(|| {
            self.all.push((key, Flow::default()));
            self.places.insert(key, self.all.len() - 1);
            self.all.len() - 1
        });
        &mut self.all[place].1
    }

    #[inline]
    fn place(&self, key: &FlowKey) -> Option<usize> {
        if self.all.len() <= FEW {
            return self.all.iter().position(|(known, _)| known == key);
        }
        self.places.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found() {
        let key = |port: u16| (SocketAddr::from(([10, 0, 0, 1], port)), SocketAddr::from(([10, 0, 0, 2], 80)));
        let mut flows = Flows::default();
        for port in 0..100 {
            assert!(flows.get(&key(port)).is_none());
            flows.get_or_add(key(port)).member = Some(super::super::flow::Member { connection: port.into(), flow: 0 });
        }
        for port in 0..100 {
            let of = |flow: &mut Flow| flow.member.map(|member| member.connection);
            assert_eq!(flows.get(&key(port)).and_then(of), Some(port.into()));
            assert_eq!(of(flows.get_or_add(key(port))), Some(port.into()));
        }
    }
}
