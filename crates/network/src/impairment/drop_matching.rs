//! Drops the packets that a filter picks.

use units::Instant;

use crate::{DropCause, Node, Output, Packet};

/// Drops packets that match, all of them or a limited number: a firewall, or a test that loses one chosen segment.
pub struct DropMatching {
    matches: Box<dyn Fn(&Packet) -> bool + Send>,
    skip: u64,
    left: u64,
}

impl DropMatching {
    /// Drops every packet for which `matches` returns true.
    pub fn new(matches: impl Fn(&Packet) -> bool + Send + 'static) -> Self {
        Self { matches: Box::new(matches), skip: 0, left: u64::MAX }
    }

    /// Lets the first `count` matches pass.
    pub fn after(self, count: u64) -> Self {
        Self { skip: count, ..self }
    }

    /// Drops at most `count` packets.
    pub fn at_most(self, count: u64) -> Self {
        Self { left: count, ..self }
    }
}

impl Node for DropMatching {
    fn process(&mut self, packet: Option<Packet>, _now: Instant, out: &mut Output) {
        let Some(packet) = packet else { return };
        if self.left == 0 || !(self.matches)(&packet) {
            return out.forward(packet);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return out.forward(packet);
        }
        self.left -= 1;
        out.discard(packet, DropCause::Filtered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, arrivals, packet};

    #[test]
    fn drops_the_third_and_fourth_match() {
        let node = DropMatching::new(|packet| packet.wire_len() > 1000).after(2).at_most(2);
        let mut lane = Lane::new(node);
        for len in [1001, 100, 1002, 1003, 101, 1004, 1005] {
            lane.send(packet(len), Instant::ZERO);
        }
        let passed: Vec<u32> = arrivals(&lane).iter().map(|(_, len)| *len).collect();
        assert_eq!(passed, [1001, 100, 1002, 101, 1005]);
        assert_eq!(lane.dropped.len(), 2);
    }
}
