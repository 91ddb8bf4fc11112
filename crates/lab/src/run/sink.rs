//! The destination's application: asks for the data and keeps them for the check at the end.

use core::cell::RefCell;
use core::net::SocketAddr;
use std::rc::Rc;

use simulator::{App, Report};
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, Received};
use units::Instant;
use wire::Payload;

/// Octets taken from the endpoint at once.
const TAKE_BYTES: usize = 1 << 20;

/// What arrived, in order.
#[derive(Default)]
pub(super) struct Delivered {
    /// The data. Pieces of a pattern that follow one another are one piece, and real octets are shared with the
    /// source, so this costs next to no memory.
    pub pieces: Vec<Payload>,
    /// Their octets.
    pub bytes: u64,
    /// When the last of them arrived.
    pub last_at: Instant,
    /// The source sent all it had, and everything is here.
    pub finished: bool,
    /// Why it could not go on.
    pub failure: Option<String>,
}

impl Delivered {
    fn add(&mut self, data: Payload, now: Instant) {
        self.bytes += data.len() as u64;
        self.last_at = now;
        match self.pieces.last_mut().map(|last| last.try_append(data.clone())) {
            Some(Ok(())) => {}
            _ => self.pieces.push(data),
        }
    }
}

/// Connects, receives until the source ends its stream, then ends its own.
pub(super) struct Sink {
    local: SocketAddr,
    remote: SocketAddr,
    config: ConnectionConfig,
    connection: Option<ConnectionId>,
    delivered: Rc<RefCell<Delivered>>,
}

impl Sink {
    /// A sink that connects from `local` to `remote` when the run begins.
    pub fn new(local: SocketAddr, remote: SocketAddr, config: ConnectionConfig) -> Self {
        Self { local, remote, config, connection: None, delivered: Rc::default() }
    }

    /// What arrives, shared with the sink.
    pub fn delivered(&self) -> Rc<RefCell<Delivered>> {
        Rc::clone(&self.delivered)
    }

    fn drain(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let mut delivered = self.delivered.borrow_mut();
        while !delivered.finished {
            match endpoint.recv(connection, TAKE_BYTES, now) {
                Ok(Received::Data(data)) => delivered.add(data, now),
                Ok(Received::Pending) => return,
                Ok(Received::Finished) => {
                    delivered.finished = true;
                    delivered.failure =
                        endpoint.shutdown(connection, now).err().map(|error| format!("shutdown: {error}"));
                }
                Err(error) => {
                    delivered.failure = Some(format!("receive: {error}"));
                    return;
                }
            }
        }
    }
}

impl App for Sink {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        match endpoint.connect(self.local, self.remote, self.config.clone(), now) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.delivered.borrow_mut().failure = Some(format!("connect: {error}")),
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Readable(connection) | Event::PeerFinished(connection) if Some(*connection) == self.connection => {
                self.drain(*connection, endpoint, now);
            }
            Event::Closed { connection, reason } if Some(*connection) == self.connection => {
                let mut delivered = self.delivered.borrow_mut();
                if !delivered.finished {
                    delivered.failure.get_or_insert(format!("the connection ended early: {reason}"));
                }
            }
            _ => {}
        }
    }

    fn report(&self) -> Report {
        let delivered = self.delivered.borrow();
        Report {
            connections: self.connection.into_iter().collect(),
            received_bytes: delivered.bytes,
            faults: delivered.failure.iter().cloned().collect(),
            ..Report::default()
        }
    }
}
