//! The destination's subflows where a kernel is the destination, as far as packets show them.

use core::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use simulator::{Direction, HostId, Interface, Tap};
use transport::{ConnectionStats, SubflowId, SubflowStats};
use units::{Instant, SeqNr};
use wire::{Flags, Segment};

use super::SOURCE_PORT;

/// Counts packets from the source to one host, by subflow. Clones share their counts.
#[derive(Clone)]
pub(super) struct Tally {
    host: HostId,
    seen: Rc<RefCell<Seen>>,
}

#[derive(Default)]
struct Seen {
    subflows: Vec<SubflowStats>,
    /// For each subflow, the host's first acknowledgement, and whether it has acknowledged more since, that is, data.
    acknowledged: Vec<Option<(SeqNr, bool)>>,
    /// Subflows that the host reset before it had acknowledged data over them.
    reset: u64,
}

impl Tally {
    /// Counts packets to `host`.
    pub fn new(host: HostId) -> Self {
        Self { host, seen: Rc::default() }
    }

    /// The tap that sees the packets.
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    /// All connections combined. Subflows are numbered in order of appearance; values that only the host itself knows
    /// are zero.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats { subflows: self.seen.borrow().subflows.clone(), ..ConnectionStats::default() }
    }

    /// Number of subflows that the host reset before it had acknowledged data over them.
    pub fn reset(&self) -> u64 {
        self.seen.borrow().reset
    }
}

impl Tap for Tally {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        if interface.host != self.host {
            return;
        }
        let mut seen = self.seen.borrow_mut();
        match direction {
            Direction::Received if segment.src.port() == SOURCE_PORT => seen.arrives(segment, at),
            Direction::Sent if segment.dst.port() == SOURCE_PORT => seen.leaves(segment, at),
            Direction::Received | Direction::Sent => {}
        }
    }
}

impl Seen {
    fn arrives(&mut self, segment: &Segment, at: Instant) {
        let index = self.find(segment.dst, segment.src).unwrap_or_else(|| {
            let id = SubflowId(self.subflows.len() as u16);
            self.subflows.push(SubflowStats::unheard(id, segment.dst, segment.src, at));
            self.acknowledged.push(None);
            self.subflows.len() - 1
        });
        count(&mut self.subflows[index], segment, at);
    }

    fn leaves(&mut self, segment: &Segment, at: Instant) {
        let Some(index) = self.find(segment.src, segment.dst) else { return };
        let (subflow, acknowledged) = (&mut self.subflows[index], &mut self.acknowledged[index]);
        if segment.flags.contains(Flags::RST) {
            // A reset after data may be the normal end of a connection.
            self.reset += u64::from(subflow.closed_at.is_none() && acknowledged.is_none_or(|(_, data)| !data));
            close(subflow, at);
        } else if segment.flags.contains(Flags::ACK) {
            let (first, data) = acknowledged.get_or_insert((segment.ack, false));
            *data |= segment.ack != *first;
        }
    }

    fn find(&self, local: SocketAddr, remote: SocketAddr) -> Option<usize> {
        self.subflows.iter().position(|subflow| (subflow.local, subflow.remote) == (local, remote))
    }
}

fn count(subflow: &mut SubflowStats, segment: &Segment, at: Instant) {
    let len = segment.payload.len() as u64;
    subflow.received_bytes += len;
    subflow.received_segments += u64::from(len > 0);
    if segment.flags.contains(Flags::FIN) || segment.flags.contains(Flags::RST) {
        close(subflow, at);
    }
}

fn close(subflow: &mut SubflowStats, at: Instant) {
    subflow.state = "CLOSED";
    subflow.closed_at.get_or_insert(at);
}

#[cfg(test)]
mod tests {
    use units::Duration;
    use wire::Payload;

    use super::*;

    const HOST: HostId = HostId(1);
    const SOURCE: &str = "10.0.0.1:40000";

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn segment(from: &str, to: &str, flags: Flags, ack: u32, payload: &[u8]) -> Segment {
        let mut segment = Segment::new(from.parse().unwrap(), to.parse().unwrap());
        (segment.flags, segment.ack, segment.payload) = (flags, SeqNr(ack), Payload::from(payload.to_vec()));
        segment
    }

    /// Count of resets, and statistics, of a subflow that the host resets after it has acknowledged up to `ack`.
    fn reset_after(ack: u32) -> (u64, SubflowStats) {
        let (mut tally, subflow) = (Tally::new(HOST), "10.1.0.2:5000");
        let interface = Interface { host: HOST, address: "10.1.0.2".parse().unwrap() };
        let mut pass = |ms, direction, segment| tally.segment(at(ms), interface, direction, &segment);
        pass(0, Direction::Sent, segment(subflow, SOURCE, Flags::SYN, 0, b""));
        pass(1, Direction::Received, segment(SOURCE, subflow, Flags::SYN | Flags::ACK, 1, b""));
        pass(2, Direction::Sent, segment(subflow, SOURCE, Flags::ACK, 101, b""));
        pass(3, Direction::Received, segment(SOURCE, subflow, Flags::ACK, 1, b"data"));
        pass(4, Direction::Sent, segment(subflow, SOURCE, Flags::ACK, ack, b""));
        pass(5, Direction::Sent, segment(subflow, SOURCE, Flags::RST | Flags::ACK, ack, b""));
        pass(6, Direction::Sent, segment(subflow, SOURCE, Flags::RST | Flags::ACK, ack, b""));
        let stats = tally.stats().subflows.remove(0);
        (tally.reset(), stats)
    }

    #[test]
    fn a_subflow_that_is_reset_before_its_first_data_are_acknowledged_is_counted() {
        let (reset, stats) = reset_after(101);
        assert_eq!((reset, stats.state, stats.closed_at, stats.received_bytes), (1, "CLOSED", Some(at(5)), 4));
        let (reset, stats) = reset_after(105);
        assert_eq!((reset, stats.state), (0, "CLOSED"), "it carried data");
    }
}
