//! The policy that decides when data between the legs move on, and a relay that consults it.

use units::Instant;
use wire::{Segment, TooBig};

use super::{FastAckRelay, Piece, RelayEvent, Side};

/// Decides when data between the legs of a relay move on.
pub trait Forwarding: Send + 'static {
    /// Takes data that arrived, and gives to `relay` the data that may move on now.
    fn on_piece(&mut self, piece: Piece, relay: &mut FastAckRelay, now: Instant);

    /// Handles the start, the approaching end, or the end of a spliced subflow.
    fn on_event(&mut self, event: RelayEvent, relay: &mut FastAckRelay, now: Instant) {
        let _ = (event, relay, now);
    }

    /// When to call [`Self::handle_timeout`].
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Handles the passing of time.
    fn handle_timeout(&mut self, relay: &mut FastAckRelay, now: Instant) {
        let _ = (relay, now);
    }
}

/// Forwards all data at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtOnce;

impl Forwarding for AtOnce {
    fn on_piece(&mut self, piece: Piece, relay: &mut FastAckRelay, now: Instant) {
        relay.forward(piece, now);
    }
}

/// A relay with its forwarding policy.
pub struct ForwardingRelay<F> {
    relay: FastAckRelay,
    forwarding: F,
}

impl<F: Forwarding> ForwardingRelay<F> {
    /// Combines `relay` with the policy `forwarding`.
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

    /// Both, to give them commands.
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

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.relay.poll_timeout(), self.forwarding.next_wakeup()].into_iter().flatten().min()
    }

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.relay.handle_timeout(now);
        if self.forwarding.next_wakeup().is_some_and(|at| at <= now) {
            self.forwarding.handle_timeout(&mut self.relay, now);
        }
        self.consult(now);
    }

    /// Passes data and events to the policy until there are none left. The data that arrived on a subflow before its end
    /// go before that end: the policy hears of it only once, and must know by then what it holds.
    fn consult(&mut self, now: Instant) {
        loop {
            match self.relay.poll_event() {
                Some(event) => {
                    if matches!(event, RelayEvent::Ending { .. }) {
                        self.pass_data(now);
                    }
                    self.forwarding.on_event(event, &mut self.relay, now);
                }
                None if !self.pass_data(now) => return,
                None => {}
            }
        }
    }

    /// Passes the data that arrived to the policy. Returns whether there were any.
    fn pass_data(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(piece) = self.relay.poll_data() {
            any = true;
            self.forwarding.on_piece(piece, &mut self.relay, now);
        }
        any
    }
}
