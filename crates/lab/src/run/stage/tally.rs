//! The destination's subflows where the kernel is the destination: what packets show of them.

use core::cell::RefCell;
use std::rc::Rc;

use simulator::{Direction, HostId, Interface, Tap};
use transport::{ConnectionStats, SubflowId, SubflowStats};
use units::Instant;
use wire::{Flags, Segment};

use super::SOURCE_PORT;

/// Counts what reaches one host from the source, by subflow. Copies share what they count.
#[derive(Clone)]
pub(super) struct Tally {
    host: HostId,
    seen: Rc<RefCell<Vec<SubflowStats>>>,
}

impl Tally {
    /// Of what reaches `host`.
    pub fn new(host: HostId) -> Self {
        Self { host, seen: Rc::default() }
    }

    /// What sees the packets.
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    /// All connections as if they were one. Subflows are numbered as they came about; what only the host itself knows is zero.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats { subflows: self.seen.borrow().clone(), ..ConnectionStats::default() }
    }
}

impl Tap for Tally {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        let arrives = interface.host == self.host && direction == Direction::Received;
        if !arrives || segment.src.port() != SOURCE_PORT {
            return;
        }
        let mut seen = self.seen.borrow_mut();
        let known = seen.iter().position(|subflow| (subflow.local, subflow.remote) == (segment.dst, segment.src));
        let index = known.unwrap_or_else(|| {
            let id = SubflowId(seen.len() as u16);
            seen.push(SubflowStats::unheard(id, segment.dst, segment.src, at));
            seen.len() - 1
        });
        count(&mut seen[index], segment, at);
    }
}

fn count(subflow: &mut SubflowStats, segment: &Segment, at: Instant) {
    let len = segment.payload.len() as u64;
    subflow.received_bytes += len;
    subflow.received_segments += u64::from(len > 0);
    if segment.flags.contains(Flags::FIN) || segment.flags.contains(Flags::RST) {
        subflow.state = "CLOSED";
        subflow.closed_at.get_or_insert(at);
    }
}
