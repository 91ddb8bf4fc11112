//! What hosts do. Applications are sans-IO too: they hear of events and command the endpoint.

mod echo;
mod request_response;
mod source;
mod transfer;

use network::Datagram;
use transport::error::CloseReason;
use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};

pub use echo::Echo;
pub use request_response::RequestResponse;
pub use source::Source;
pub use transfer::Transfer;

/// An application of a host. Every application hears all events of its endpoint and minds only its own connections.
pub trait App {
    /// The run begins.
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant);

    /// Something happened.
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant);

    /// A UDP datagram arrived. Every application hears of all of them and minds only those of its own ports.
    fn handle_datagram(&mut self, datagram: &Datagram, now: Instant) {
        let _ = (datagram, now);
    }

    /// The next UDP datagram to send; called after every other call until it gives nothing.
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let _ = now;
        None
    }

    /// The time of [`Self::poll_timeout`] has come.
    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let _ = (endpoint, now);
    }

    /// When it wants to be called. Asked after every other call: it must not change between them.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// What it did so far.
    fn report(&self) -> Report;
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
    /// How long each answer took, if it asks questions.
    pub latencies: Vec<Duration>,
    /// SHA-256 of what was received, if it was asked for.
    pub sha256: Option<[u8; 32]>,
    /// What was wrong: octets that differ, refused commands.
    pub faults: Vec<String>,
}
