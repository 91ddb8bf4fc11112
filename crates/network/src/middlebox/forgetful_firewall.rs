//! A stateful firewall that loses its state, as a firewall does when it restarts or runs out of memory (RFC 5382
//! section 5 describes what NATs do at the end of a session).

use core::net::SocketAddr;
use std::collections::BTreeSet;

use units::Instant;
use wire::{Flags, Segment};

use crate::{DropCause, Node, Output, Packet};

/// Passes only connections whose opening it saw. The sender of any other segment gets a RST, and the other end gets
/// nothing. At each of its times the firewall forgets all connections. Both directions must pass through it.
#[derive(Debug)]
pub struct ForgetfulFirewall {
    /// Known connections, with the source of the SYN first.
    known: BTreeSet<(SocketAddr, SocketAddr)>,
    /// Times at which it forgets, ascending.
    forgets_at: Vec<Instant>,
    forgotten: usize,
}

impl ForgetfulFirewall {
    /// Creates a firewall that forgets at `times`, which must ascend.
    pub fn new(times: impl IntoIterator<Item = Instant>) -> Self {
        Self { known: BTreeSet::new(), forgets_at: times.into_iter().collect(), forgotten: 0 }
    }

    fn forget(&mut self, now: Instant) {
        while self.forgets_at.get(self.forgotten).is_some_and(|at| *at <= now) {
            self.forgotten += 1;
            self.known.clear();
        }
    }

    fn lets_pass(&mut self, segment: &Segment) -> bool {
        let (forth, back) = ((segment.src, segment.dst), (segment.dst, segment.src));
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        if opens {
            self.known.insert(forth);
        }
        self.known.contains(&forth) || self.known.contains(&back)
    }
}

impl Node for ForgetfulFirewall {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        self.forget(now);
        let Some(segment) = packet.parse() else { return out.forward(packet) };
        if self.lets_pass(segment) {
            return out.forward(packet);
        }
        if !segment.flags.contains(Flags::RST) {
            out.forward(Packet::from_segment(segment.reset_in_answer()));
        }
        out.discard(packet, DropCause::NoRoute);
    }

    fn conserves(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::SeqNr;

    use crate::testing::{CLIENT, Lane, SERVER, segment};

    fn with(flags: Flags, seq: u32, ack: u32) -> Segment {
        Segment { flags, seq: SeqNr(seq), ack: SeqNr(ack), ..segment(0) }
    }

    fn back(segment: Segment) -> Segment {
        Segment { src: SERVER, dst: CLIENT, ..segment }
    }

    #[test]
    fn what_it_saw_being_opened_passes_until_it_forgets() {
        let mut lane = Lane::new(ForgetfulFirewall::new([Instant::from_secs(1)]));
        lane.send_all([with(Flags::SYN, 100, 0), back(with(Flags::SYN | Flags::ACK, 500, 101))]);
        lane.send_all([with(Flags::ACK, 101, 501)]);
        assert_eq!(lane.segments().len(), 3);
        lane.send(Packet::from_segment(with(Flags::ACK, 101, 501)), Instant::from_secs(1));
        lane.send(Packet::from_segment(back(with(Flags::ACK, 501, 101))), Instant::from_secs(1));
        let answers: Vec<_> = lane.segments().drain(3..).map(|rst| (rst.flags, rst.dst, rst.seq.0)).collect();
        assert_eq!(answers, [(Flags::RST, CLIENT, 501), (Flags::RST, SERVER, 101)]);
        assert_eq!(lane.dropped.len(), 2);
        lane.send(Packet::from_segment(with(Flags::SYN, 300, 0)), Instant::from_secs(2));
        assert_eq!(lane.segments().last().unwrap().seq, SeqNr(300), "new connections pass");
    }

    #[test]
    fn a_reset_is_not_answered() {
        let mut lane = Lane::new(ForgetfulFirewall::new([]));
        lane.send_all([with(Flags::RST, 101, 0)]);
        assert!(lane.segments().is_empty());
    }
}
