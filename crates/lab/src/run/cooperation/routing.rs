//! Differentiated forwarding at relays that only route, as an element of the network.

use core::any::Any;

use cooperation::forwarding::hold_queue::HoldLimits;
use cooperation::forwarding::range::DsnRange;
use cooperation::forwarding::routed::Routed;
use network::{DropCause, Gate, Medium, MediumOutput, Packet};
use simulator::relay::{DESTINATION_GATE, SOURCE_GATE};
use units::Instant;

/// Between a gate towards the source and one towards the destination.
pub(in crate::run) struct RoutingRelay {
    routed: Routed<Packet>,
    /// Gone: nothing passes.
    dead: bool,
}

impl RoutingRelay {
    /// Holds packets within `limits`.
    pub fn new(limits: HoldLimits) -> Self {
        Self { routed: Routed::new(limits), dead: false }
    }

    /// The destination announced a range. What may go on goes at the next call of the network.
    pub fn on_range(&mut self, range: DsnRange) {
        self.routed.on_range(range);
    }

    /// The relay is gone, with all it holds, and without a word.
    pub fn kill(&mut self) {
        self.dead = true;
    }

    /// What waits, octets of data.
    pub fn held_bytes(&self) -> u64 {
        self.routed.held_bytes()
    }

    fn take(&mut self, mut packet: Packet, now: Instant) {
        match packet.parse().map(|segment| self.routed.look(segment)) {
            Some(place) => self.routed.on_packet(now, place, packet),
            None => self.routed.pass(packet),
        }
    }
}

impl Medium for RoutingRelay {
    fn gates(&self) -> u16 {
        2
    }

    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
        match packet {
            Some((gate, packet)) if self.dead => return out.discard(gate, packet, DropCause::Filtered),
            Some((DESTINATION_GATE, packet)) => out.forward(SOURCE_GATE, packet),
            Some((_, packet)) => self.take(packet, now),
            None => {}
        }
        if self.routed.poll_timeout().is_some_and(|at| at <= now) {
            self.routed.handle_timeout(now);
        }
        while let Some(packet) = self.routed.poll_forward() {
            out.forward(DESTINATION_GATE, packet);
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.routed.poll_timeout().filter(|_| !self.dead)
    }

    /// A held packet whose source sends it again is dropped.
    fn conserves(&self) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
