//! Differentiated forwarding between the legs of a fast-ACK relay: the relay acknowledges data to the source at once, and
//! sends on what the destination wants.

use transport::relay::{FastAckRelay, Forwarding, Piece, RelayEvent, Side, SpliceId};
use units::Instant;

use super::hold_queue::{HoldLimits, HoldQueue};
use super::range::{CumAck, RangeUpdate};

/// Holds what goes to the destination of one connection; what goes to the source goes at once.
///
/// The relay's own buffer ([`transport::relay::RelayConfig::buffer_bytes`]) also counts what is held: it must be larger
/// than the limit of the queue, or it is the limit.
#[derive(Debug)]
pub struct Differentiated {
    queue: HoldQueue<Piece>,
    splices: Vec<SpliceId>,
    ack: Option<CumAck>,
}

impl Differentiated {
    /// Forwards everything until it hears of a range.
    pub fn new(limits: HoldLimits) -> Self {
        Self { queue: HoldQueue::new(limits), splices: Vec::new(), ack: None }
    }

    /// What is held.
    pub const fn queue(&self) -> &HoldQueue<Piece> {
        &self.queue
    }

    /// The destination announced a range.
    pub fn on_range(&mut self, update: RangeUpdate, relay: &mut FastAckRelay, now: Instant) {
        self.on_ack(update.ack, relay);
        self.queue.on_range(update.range);
        self.drain(relay, now);
    }

    /// The destination told what it has and takes, and how far the relays widen its window. Its DATA_ACKs also come on its
    /// subflow through this relay, but no oftener than data go there.
    pub fn on_ack(&mut self, ack: CumAck, relay: &mut FastAckRelay) {
        self.ack = Some(ack);
        self.splices.iter().for_each(|splice| apply(ack, *splice, relay));
    }

    /// Nobody says any more what is wanted: forwards everything until somebody does again.
    pub fn forget_range(&mut self, relay: &mut FastAckRelay, now: Instant) {
        self.queue.forget_range();
        self.drain(relay, now);
    }

    /// Changes the limits.
    pub fn set_limits(&mut self, limits: HoldLimits, relay: &mut FastAckRelay, now: Instant) {
        self.queue.set_limits(now, limits);
        self.drain(relay, now);
    }

    /// Forwards everything, now and from now on, so that the subflows can be closed.
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
