//! A fast-ACK relay as an element of the network: one gate towards the source, one towards the destination.

use core::any::Any;
use std::collections::VecDeque;

use network::{Gate, Medium, MediumOutput, Packet};
use transport::relay::{FastAckRelay, Forwarding, ForwardingRelay, Side};
use units::Instant;
use wire::TooBig;

/// The gate towards the source.
pub const SOURCE_GATE: Gate = Gate(0);
/// The gate towards the destination.
pub const DESTINATION_GATE: Gate = Gate(1);

/// A relay in the network. It routes packets that belong to no spliced subflow.
pub struct RelayMedium<F> {
    relay: ForwardingRelay<F>,
    passing: VecDeque<(Gate, Packet)>,
    /// Whether the relay has failed: nothing passes any more.
    dead: bool,
}

impl<F: Forwarding> RelayMedium<F> {
    /// Creates the network element of `relay`.
    pub fn new(relay: ForwardingRelay<F>) -> Self {
        Self { relay, passing: VecDeque::new(), dead: false }
    }

    /// Returns the relay with its policy.
    pub fn relay(&self) -> &ForwardingRelay<F> {
        &self.relay
    }

    /// Returns relay and policy, for commands.
    pub fn parts(&mut self) -> (&mut FastAckRelay, &mut F) {
        self.relay.parts()
    }

    /// Makes the relay fail silently, with everything that it holds.
    pub fn kill(&mut self) {
        self.dead = true;
    }

    fn take(&mut self, gate: Gate, mut packet: Packet, now: Instant, out: &mut MediumOutput) {
        let (side, opposite) = match gate {
            SOURCE_GATE => (Side::Source, DESTINATION_GATE),
            _ => (Side::Destination, SOURCE_GATE),
        };
        let Some(segment) = packet.parse().cloned() else {
            let too_big = packet.raw().and_then(|octets| TooBig::parse(octets).ok());
            if too_big.is_some_and(|too_big| self.relay.handle_too_big(&too_big, now)) {
                return out.absorb(packet);
            }
            return self.passing.push_back((opposite, packet));
        };
        match self.relay.handle_segment(side, segment, now) {
            Some(_) => self.passing.push_back((opposite, packet)),
            None => out.absorb(packet),
        }
    }
}

/// Draws no randomness: the owner of the relay seeds the relay's secrets.
impl<F: Forwarding> Medium for RelayMedium<F> {
    fn gates(&self) -> u16 {
        2
    }

    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
        if self.dead {
            if let Some((gate, packet)) = packet {
                out.discard(gate, packet, network::DropCause::Filtered);
            }
            return;
        }
        if let Some((gate, packet)) = packet {
            self.take(gate, packet, now, out);
        }
        if self.relay.poll_timeout().is_some_and(|at| at <= now) {
            self.relay.handle_timeout(now);
        }
        while let Some((side, segment)) = self.relay.poll_transmit(now) {
            let gate = if side == Side::Source { SOURCE_GATE } else { DESTINATION_GATE };
            let packet = out.make(segment);
            out.forward(gate, packet);
        }
        self.passing.drain(..).for_each(|(gate, packet)| out.forward(gate, packet));
    }

    fn next_wakeup(&self) -> Option<Instant> {
        if self.dead {
            return None;
        }
        self.relay.poll_timeout()
    }

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
