//! Differentiated forwarding between the legs of a fast-ACK relay: the relay acknowledges data to the source at once,
//! and forwards the data that the destination wants.

use core::net::IpAddr;
use std::collections::BTreeMap;

use transport::relay::{FastAckRelay, Forwarding, Piece, RelayEvent, Side, SpliceId};
use units::Instant;
use wire::mptcp::Token;

use super::hold_queue::{HoldLimits, HoldQueue};
use super::range::{CumAck, RangeUpdate};

/// What announcements of a destination are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The connection, by the source's token (RFC 8684 section 3.2).
    pub connection: Token,
    /// The destination's address; `None` if the relay has only one destination. A destination says nothing of the
    /// subflows of another one.
    pub destination: Option<IpAddr>,
}

/// A spliced subflow.
#[derive(Clone, Copy, Debug)]
struct Subflow {
    /// The source's token of its connection, if known.
    connection: Option<Token>,
    destination: IpAddr,
}

impl Subflow {
    fn is_meant(&self, about: About) -> bool {
        self.connection == Some(about.connection) && about.destination.is_none_or(|address| address == self.destination)
    }
}

/// Holds data for the destination of one connection: the one that the latest range is about. Data of other connections,
/// and data for the source, pass at once.
///
/// The relay's own buffer ([`transport::relay::RelayConfig::buffer_bytes`]) also counts held data. It must be larger
/// than the limit of the queue, or it becomes the limit.
#[derive(Debug)]
pub struct Differentiated {
    queue: HoldQueue<Piece>,
    splices: BTreeMap<SpliceId, Subflow>,
    /// The connection whose data are held, and the latest acknowledgement of its destination.
    known: Option<(About, CumAck)>,
}

impl Differentiated {
    /// Creates a queue that forwards everything until a range arrives.
    pub fn new(limits: HoldLimits) -> Self {
        Self { queue: HoldQueue::new(limits), splices: BTreeMap::new(), known: None }
    }

    /// Returns the queue of held data.
    pub const fn queue(&self) -> &HoldQueue<Piece> {
        &self.queue
    }

    /// Handles a range that the destination announced.
    pub fn on_range(&mut self, about: About, update: RangeUpdate, relay: &mut FastAckRelay, now: Instant) {
        if self.known.is_some_and(|(known, _)| known != about) {
            // The ranges of each connection are numbered from 1.
            self.known = None;
            self.queue.forget_range();
        }
        self.on_ack(about, update.ack, relay);
        self.queue.on_range(update.range);
        self.drain(relay, now);
    }

    /// Handles the destination's acknowledgement: what it has and can take, and how far the relays widen its window.
    /// Its DATA_ACKs also pass on its subflow through this relay, but no more often than data travel there.
    pub fn on_ack(&mut self, about: About, ack: CumAck, relay: &mut FastAckRelay) {
        if self.known.is_none_or(|(known, _)| known == about) {
            self.known = Some((about, ack));
        }
        let meant = self.splices.iter().filter(|(_, subflow)| subflow.is_meant(about));
        meant.for_each(|(splice, _)| apply(ack, *splice, relay));
    }

    /// Forwards everything until a range arrives again, because the range that this destination wants is unknown
    /// (`None`: whichever one the range is of). Data beyond its own window wait for what it says next.
    pub fn forget_range(&mut self, destination: Option<IpAddr>, relay: &mut FastAckRelay, now: Instant) {
        let is_of_another = |(about, _): (About, _)| destination.is_some() && about.destination != destination;
        if self.known.is_some_and(is_of_another) {
            return;
        }
        self.known = None;
        self.queue.forget_range();
        self.drain(relay, now);
    }

    /// Lets data beyond this destination's own window leave, because it will not say any more what it has and can take
    /// (`None`: no destination will).
    pub fn forget_windows(&self, destination: Option<IpAddr>, relay: &mut FastAckRelay) {
        self.narrow(|subflow| destination.is_none_or(|address| address == subflow.destination), relay);
    }

    /// Lets data of this connection beyond the destination's own window leave, because the destination speaks of another
    /// connection now.
    pub fn forget_window_of(&self, about: About, relay: &mut FastAckRelay) {
        self.narrow(|subflow| subflow.is_meant(about), relay);
    }

    /// Gives these subflows the destination's own window again.
    fn narrow(&self, is_meant: impl Fn(Subflow) -> bool, relay: &mut FastAckRelay) {
        let meant = self.splices.iter().filter(|(_, subflow)| is_meant(**subflow));
        meant.for_each(|(splice, _)| relay.widen_window(*splice, 0));
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

    /// Returns whether data of this subflow may wait: they belong to the connection that the range is about.
    fn may_wait(&self, splice: SpliceId) -> bool {
        let about = self.known.map(|(about, _)| about);
        about.zip(self.splices.get(&splice)).is_some_and(|(about, subflow)| subflow.is_meant(about))
    }

    fn drain(&mut self, relay: &mut FastAckRelay, now: Instant) {
        while let Some(piece) = self.queue.poll_forward() {
            relay.forward(piece, now);
        }
    }
}

/// Tells the relay what the destination of a spliced subflow has and can take.
fn apply(ack: CumAck, splice: SpliceId, relay: &mut FastAckRelay) {
    relay.widen_window(splice, ack.widened_bytes);
    relay.on_data_ack(splice, Side::Destination, ack.rcv_nxt, ack.window_bytes - ack.widened_bytes);
}

impl Forwarding for Differentiated {
    fn on_piece(&mut self, piece: Piece, relay: &mut FastAckRelay, now: Instant) {
        if piece.to == Side::Source || !self.may_wait(piece.splice) {
            return relay.forward(piece, now);
        }
        self.queue.on_packet(now, piece.dsn, piece.payload.len() as u32, piece);
        self.drain(relay, now);
    }

    fn on_event(&mut self, event: RelayEvent, relay: &mut FastAckRelay, now: Instant) {
        match event {
            RelayEvent::Joined { splice, destination, connection } => {
                let subflow = Subflow { connection, destination: destination.ip() };
                self.splices.insert(splice, subflow);
                if let Some((_, ack)) = self.known.filter(|(about, _)| subflow.is_meant(*about)) {
                    apply(ack, splice, relay);
                }
            }
            RelayEvent::Ending { splice, to: Side::Destination } if self.may_wait(splice) => {
                self.queue.flush();
                self.drain(relay, now);
            }
            RelayEvent::Ending { .. } => {}
            RelayEvent::Closed { splice } => {
                self.splices.remove(&splice);
                // The relay would not send its data any more.
                self.queue.retain(|piece| piece.splice != splice);
            }
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
