//! A fast-ACK relay as an element of the network: one gate towards the source, one towards the destination.

use core::any::Any;
use std::collections::VecDeque;

use network::{Amount, Gate, Medium, MediumOutput, Packet};
use transport::relay::{FastAckRelay, Piece, RelayEvent, Side};
use units::{Instant, Prng};

/// The gate towards the source.
pub const SOURCE_GATE: Gate = Gate(0);
/// The gate towards the destination.
pub const DESTINATION_GATE: Gate = Gate(1);

/// Decides when data between the legs of a relay go on.
pub trait Forwarding: Send + 'static {
    /// Takes data that arrived; gives to `relay` what may go now.
    fn on_piece(&mut self, piece: Piece, relay: &mut FastAckRelay, now: Instant);

    /// A spliced subflow begins, is about to end, or is over.
    fn on_event(&mut self, event: RelayEvent, relay: &mut FastAckRelay, now: Instant) {
        let _ = (event, relay, now);
    }

    /// When [`Self::handle_timeout`] must be called.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Takes note of the time.
    fn handle_timeout(&mut self, relay: &mut FastAckRelay, now: Instant) {
        let _ = (relay, now);
    }
}

/// Everything goes on at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtOnce;

impl Forwarding for AtOnce {
    fn on_piece(&mut self, piece: Piece, relay: &mut FastAckRelay, now: Instant) {
        relay.forward(piece, now);
    }
}

/// A relay in the network. Packets that are none of a spliced subflow pass through as at a router.
pub struct RelayMedium<F> {
    relay: FastAckRelay,
    forwarding: F,
    passing: VecDeque<(Gate, Packet)>,
    /// Out of order since then: nothing passes.
    dead: bool,
}

impl<F: Forwarding> RelayMedium<F> {
    /// `relay`, whose data go on as `forwarding` decides.
    pub fn new(relay: FastAckRelay, forwarding: F) -> Self {
        Self { relay, forwarding, passing: VecDeque::new(), dead: false }
    }

    /// The relay.
    pub fn relay(&self) -> &FastAckRelay {
        &self.relay
    }

    /// Relay and policy, for commands.
    pub fn parts(&mut self) -> (&mut FastAckRelay, &mut F) {
        (&mut self.relay, &mut self.forwarding)
    }

    /// The policy.
    pub fn forwarding(&self) -> &F {
        &self.forwarding
    }

    /// The relay is gone, with all it holds, and without a word.
    pub fn kill(&mut self) {
        self.dead = true;
    }

    fn take(&mut self, gate: Gate, mut packet: Packet, now: Instant) {
        let (side, opposite) = match gate {
            SOURCE_GATE => (Side::Source, DESTINATION_GATE),
            _ => (Side::Destination, SOURCE_GATE),
        };
        let Some(segment) = packet.parse().cloned() else {
            return self.passing.push_back((opposite, packet));
        };
        if self.relay.handle_segment(side, segment, now).is_some() {
            self.passing.push_back((opposite, packet));
        }
    }

    /// Lets the policy see what there is, until it has nothing to add.
    fn forward(&mut self, now: Instant) {
        loop {
            let mut idle = true;
            while let Some(event) = self.relay.poll_event() {
                idle = false;
                self.forwarding.on_event(event, &mut self.relay, now);
            }
            while let Some(piece) = self.relay.poll_data() {
                idle = false;
                self.forwarding.on_piece(piece, &mut self.relay, now);
            }
            if idle {
                return;
            }
        }
    }
}

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
            self.take(gate, packet, now);
        }
        if self.relay.poll_timeout().is_some_and(|at| at <= now) {
            self.relay.handle_timeout(now);
        }
        if self.forwarding.next_wakeup().is_some_and(|at| at <= now) {
            self.forwarding.handle_timeout(&mut self.relay, now);
        }
        self.forward(now);
        while let Some((side, segment)) = self.relay.poll_transmit(now) {
            let gate = if side == Side::Source { SOURCE_GATE } else { DESTINATION_GATE };
            out.forward(gate, Packet::from_segment(segment));
        }
        self.forward(now);
        self.passing.drain(..).for_each(|(gate, packet)| out.forward(gate, packet));
    }

    fn next_wakeup(&self) -> Option<Instant> {
        if self.dead {
            return None;
        }
        [self.relay.poll_timeout(), self.forwarding.next_wakeup()].into_iter().flatten().min()
    }

    fn held(&self) -> Amount {
        Amount::default()
    }

    fn conserves(&self) -> bool {
        false
    }

    fn seed(&mut self, prng: Prng) {
        // The relay's secrets are its owner's to seed.
        let _ = prng;
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
