//! Differentiated forwarding between the legs of a fast-ACK relay: the relay acknowledges data to the source at once,
//! and forwards the data that the destination wants.

use transport::relay::{FastAckRelay, Forwarding, Piece, RelayEvent, Side, SpliceId};
use units::Instant;

use super::hold_queue::{HoldLimits, HoldQueue};
use super::range::{CumAck, RangeUpdate};

/// Holds data for the destination of one connection; data for the source pass at once.
///
/// The relay's own buffer ([`transport::relay::RelayConfig::buffer_bytes`]) also counts held data. It must be larger
/// than the limit of the queue, or it becomes the limit.
#[derive(Debug)]
pub struct Differentiated {
    queue: HoldQueue<Piece>,
    splices: Vec<SpliceId>,
    ack: Option<CumAck>,
}

impl Differentiated {
    /// Creates a queue that forwards everything until a range arrives.
    pub fn new(limits: HoldLimits) -> Self {
        Self { queue: HoldQueue::new(limits), splices: Vec::new(), ack: None }
    }

    /// Returns the queue of held data.
    pub const fn queue(&self) -> &HoldQueue<Piece> {
        &self.queue
    }

    /// Handles a range that the destination announced.
    pub fn on_range(&mut self, update: RangeUpdate, relay: &mut FastAckRelay, now: Instant) {
        self.on_ack(update.ack, relay);
        self.queue.on_range(update.range);
        self.drain(relay, now);
    }

    /// Handles the destination's acknowledgement: what it has and can take, and how far the relays widen its window.
    /// Its DATA_ACKs also pass on its subflow through this relay, but no more often than data travel there.
    pub fn on_ack(&mut self, ack: CumAck, relay: &mut FastAckRelay) {
        self.ack = Some(ack);
        self.splices.iter().for_each(|splice| apply(ack, *splice, relay));
    }

    /// Forwards everything until a range arrives again, because the wanted range is unknown.
    pub fn forget_range(&mut self, relay: &mut FastAckRelay, now: Instant) {
        self.queue.forget_range();
        self.drain(relay, now);
    }

    /// Changes the limits.
    pub fn set_limits(&mut self, limits: HoldLimits, relay: &mut FastAckRelay, now: Instant) {
        self.queue.set_limits(now, limits);
        self.drain(relay, now);
    }

    /// Forwards everything, now and from now on, so the subflows can be closed.
    pub fn leave(&mut self, relay: &mut FastAckRelay, now: Instant) {
        self.queue.leave();
        self.drain(relay, now);
    }

    fn drain(&mut self, relay: &mut FastAckRelay, now: Instant) {
        while let Some(piece) = self.queue.poll_forward() {
            relay.forward(piece, now);
        }
    }
}

fn apply(ack: CumAck, splice: SpliceId, relay: &mut FastAckRelay) {
    relay.widen_window(splice, ack.widened_bytes);
    relay.on_data_ack(splice, Side::Destination, ack.rcv_nxt, ack.window_bytes - ack.widened_bytes);
}

impl Forwarding for Differentiated {
    fn on_piece(&mut self, piece: Piece, relay: &mut FastAckRelay, now: Instant) {
        if piece.to == Side::Source {
            return relay.forward(piece, now);
        }
        self.queue.on_packet(now, piece.dsn, piece.payload.len() as u32, piece);
        self.drain(relay, now);
    }

    fn on_event(&mut self, event: RelayEvent, relay: &mut FastAckRelay, now: Instant) {
        match event {
            RelayEvent::Joined { splice, .. } => {
                self.splices.push(splice);
                if let Some(ack) = self.ack {
                    apply(ack, splice, relay);
                }
            }
            RelayEvent::Ending { to: Side::Destination, .. } => {
                self.queue.flush();
                self.drain(relay, now);
            }
            RelayEvent::Ending { to: Side::Source, .. } => {}
            RelayEvent::Closed { splice } => self.splices.retain(|known| *known != splice),
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.queue.poll_timeout()
    }

    fn handle_timeout(&mut self, relay: &mut FastAckRelay, now: Instant) {
        self.queue.handle_timeout(now);
        self.drain(relay, now);
    }
}
