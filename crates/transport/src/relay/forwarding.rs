//! Who decides when data between the legs go on, and a relay that asks.

use units::Instant;
use wire::{Segment, TooBig};

use super::{FastAckRelay, Piece, RelayEvent, Side};

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

/// A relay together with what decides about its data.
pub struct ForwardingRelay<F> {
    relay: FastAckRelay,
    forwarding: F,
}

impl<F: Forwarding> ForwardingRelay<F> {
    /// `relay`, whose data go on as `forwarding` decides.
    pub fn new(relay: FastAckRelay, forwarding: F) -> Self {
        Self { relay, forwarding }
    }

    /// The relay.
    pub fn relay(&self) -> &FastAckRelay {
        &self.relay
    }

    /// The policy.
    pub fn forwarding(&self) -> &F {
        &self.forwarding
    }

    /// Both, for commands.
    pub fn parts(&mut self) -> (&mut FastAckRelay, &mut F) {
        (&mut self.relay, &mut self.forwarding)
    }

    /// As [`FastAckRelay::handle_segment`].
    pub fn handle_segment(&mut self, from: Side, segment: Segment, now: Instant) -> Option<Segment> {
        let stray = self.relay.handle_segment(from, segment, now);
        self.consult(now);
        stray
    }

    /// As [`FastAckRelay::handle_too_big`].
    pub fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) -> bool {
        self.relay.handle_too_big(too_big, now)
    }

    /// As [`FastAckRelay::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(Side, Segment)> {
        let segment = self.relay.poll_transmit(now);
        if segment.is_none() {
            self.consult(now);
        }
        segment
    }

    /// When [`Self::handle_timeout`] must be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.relay.poll_timeout(), self.forwarding.next_wakeup()].into_iter().flatten().min()
    }

    /// Takes note of the time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.relay.handle_timeout(now);
        if self.forwarding.next_wakeup().is_some_and(|at| at <= now) {
            self.forwarding.handle_timeout(&mut self.relay, now);
        }
        self.consult(now);
    }

    /// Shows the policy what there is, until there is nothing new.
    fn consult(&mut self, now: Instant) {
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
