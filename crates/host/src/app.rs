//! Applications of a host. They are sans-IO too: they receive events and command the engine.

use network::Datagram;
use transport::error::CloseReason;
use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};

/// An application of a host. Every application receives all events of its endpoint, and ignores other applications'
/// connections.
pub trait App {
    /// Called when the run begins, before any other method.
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Handles an event of the engine.
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant);

    /// Handles a UDP datagram. Every application receives all of them, and ignores other applications' ports.
    fn handle_datagram(&mut self, datagram: &Datagram, now: Instant) {
        let _ = (datagram, now);
    }

    /// Returns whether it may ever send datagrams ([`Self::poll_datagram`]); the answer must not change. Most
    /// applications send none and are not asked.
    fn sends_datagrams(&self) -> bool {
        false
    }

    /// Returns the next UDP datagram to send. Called after every other call, until it returns nothing, if
    /// [`Self::sends_datagrams`].
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let _ = now;
        None
    }

    /// Called at the time of [`Self::poll_timeout`].
    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Returns when it wants to be called. Asked after every other call; must not change between calls. A time in the
    /// past means at once, but after the others' turn. In virtual time, such times must not go on for ever.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Called after a change outside the host for which it may wait, such as a disk that is no longer busy.
    fn handle_wake(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Called when the run ends, because all work is done or because it was stopped. What the engine wants to send in
    /// reaction is still sent, so peers need not wait for a time-out.
    fn handle_end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// Returns whether it has done all its work and the run may end. Asked after every other call.
    fn is_finished(&self) -> bool {
        false
    }

    /// Returns its results so far.
    fn report(&self) -> Report {
        Report::default()
    }
}

/// The results of an application, summed over its connections.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its connections, in order.
    pub connections: Vec<ConnectionId>,
    /// Octets that the endpoint accepted.
    pub sent_bytes: u64,
    /// Octets received, all as expected unless there are faults.
    pub received_bytes: u64,
    /// Number of connections that have done all their work.
    pub completed: usize,
    /// When the latest of them finished.
    pub completed_at: Option<Instant>,
    /// When the first octet arrived.
    pub first_byte_at: Option<Instant>,
    /// Why connections ended, in order of their end.
    pub closed: Vec<CloseReason>,
    /// When and why the first connection failed, if the application sends.
    pub failed: Option<(Instant, CloseReason)>,
    /// Duration of each answer, if the application asks questions.
    pub latencies: Vec<Duration>,
    /// SHA-256 of the received octets, if requested.
    pub sha256: Option<[u8; 32]>,
    /// Errors: octets that differ, refused commands.
    pub faults: Vec<String>,
}

impl Report {
    /// Combines two reports. There is no digest of several streams.
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
