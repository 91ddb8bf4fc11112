//! What runs on a host. Applications are sans-IO too: they hear of events and command the engine.

use network::Datagram;
use transport::error::CloseReason;
use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};

/// An application of a host. Every application hears all events of its endpoint and minds only its own connections.
pub trait App {
    /// The run begins. Nothing else is called before.
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Something happened.
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant);

    /// A UDP datagram arrived. Every application hears of all of them and minds only those of its own ports.
    fn handle_datagram(&mut self, datagram: &Datagram, now: Instant) {
        let _ = (datagram, now);
    }

    /// Whether it may ever have datagrams to send ([`Self::poll_datagram`]), which must not change: most have not, and are not asked.
    fn sends_datagrams(&self) -> bool {
        false
    }

    /// The next UDP datagram to send; called after every other call until it gives nothing, if [`Self::sends_datagrams`].
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let _ = now;
        None
    }

    /// The time of [`Self::poll_timeout`] has come.
    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// When it wants to be called. Asked after every other call: it must not change between them. A time that has passed
    /// means at once, but after others had their turn; in virtual time that must come to an end.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Something outside of the host has changed that it may wait for, such as a disk that was busy.
    fn handle_wake(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// The run ends, because all is done or because it was asked to. What the engine wants to send then is still sent, so
    /// that peers need not wait for somebody who is gone.
    fn handle_end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Whether it has done all it has to, and the run may end. Asked after every other call.
    fn is_finished(&self) -> bool {
        false
    }

    /// What it did so far, as far as anybody wants to know.
    fn report(&self) -> Report {
        Report::default()
    }
}

/// What an application did, summed over its connections.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its connections, in order.
    pub connections: Vec<ConnectionId>,
    /// Octets that the endpoint took.
    pub sent_bytes: u64,
    /// Octets received, all as expected unless there are faults.
    pub received_bytes: u64,
    /// Connections that did all they had to.
    pub completed: usize,
    /// When the latest of them did.
    pub completed_at: Option<Instant>,
    /// When the first octet arrived.
    pub first_byte_at: Option<Instant>,
    /// Why connections ended, in order of their end.
    pub closed: Vec<CloseReason>,
    /// When and why the first connection ended that ended otherwise than in good order, if it is an application that sends.
    pub failed: Option<(Instant, CloseReason)>,
    /// How long each answer took, if it asks questions.
    pub latencies: Vec<Duration>,
    /// SHA-256 of what was received, if it was asked for.
    pub sha256: Option<[u8; 32]>,
    /// What was wrong: octets that differ, refused commands.
    pub faults: Vec<String>,
}

impl Report {
    /// What this one and another one did together. There is no digest of several streams.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.connections.extend(other.connections);
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.completed += other.completed;
        self.completed_at = self.completed_at.max(other.completed_at);
        self.first_byte_at = [self.first_byte_at, other.first_byte_at].into_iter().flatten().min();
        self.closed.extend(other.closed);
        self.failed = [self.failed, other.failed].into_iter().flatten().min_by_key(|(at, _)| *at);
        self.latencies.extend(other.latencies);
        self.sha256 = None;
        self.faults.extend(other.faults);
        self
    }
}
