//! The destination's application: requests the data and keeps them for the check at the end.

use core::cell::RefCell;
use core::net::SocketAddr;
use std::rc::Rc;

use simulator::traffic::video::{Screen, Viewer};
use simulator::traffic::{Latencies, REQUEST_BYTES, Reader};
use simulator::{App, Report};
use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, Received};
use units::Instant;
use wire::{Pattern, Payload};

use crate::measure::metrics::{self, Shared};
use crate::run::Arrival;

/// Number of octets to take from the endpoint at once.
const TAKE_BYTES: usize = 1 << 20;

/// What arrived over all connections.
#[derive(Default)]
pub(super) struct Delivered {
    /// By connection.
    pub streams: Vec<Stream>,
    /// Octets in order, over all connections.
    pub bytes: u64,
    /// When the last of them arrived.
    pub last_at: Instant,
    /// Why it cannot continue.
    pub failure: Option<String>,
    /// What viewers see.
    pub screens: Vec<Screen>,
    /// Waiting times of readers.
    pub latencies: Vec<Latencies>,
    finished: usize,
    /// Collector of the first connection's deliveries.
    listener: Option<Shared>,
}

/// What arrived over one connection, in order.
#[derive(Default)]
pub(super) struct Stream {
    /// The data. Consecutive pieces of a pattern are merged, and real octets are shared with the source, so this needs
    /// very little memory.
    pub pieces: Vec<Payload>,
    /// Number of their octets.
    pub bytes: u64,
    /// When the last of them arrived.
    pub last_at: Instant,
    /// Whether the source sent all it had and all of it has arrived.
    pub finished: bool,
}

impl Delivered {
    /// Returns whether the source sent all it had on every connection, and all of it has arrived.
    pub fn finished(&self) -> bool {
        self.finished == self.streams.len() && self.finished > 0
    }

    /// Expects `streams` streams, which are read elsewhere.
    pub fn expect(&mut self, streams: usize) {
        self.streams.resize_with(streams, Stream::default);
    }

    /// Records what was read elsewhere by `now`.
    pub fn note(&mut self, arrival: Arrival, now: Instant) {
        match arrival {
            Arrival::Data { stream, data } => self.add(stream, data, now),
            Arrival::End { stream } => self.finish(stream),
            Arrival::Failure(why) => drop(self.failure.get_or_insert(why)),
        }
    }

    /// Reports the first connection's deliveries to `collector`.
    pub fn tell(&mut self, collector: Shared) {
        self.listener = Some(collector);
    }

    /// Records that the run ended at `at`.
    pub fn end(&self, at: Instant) {
        if let Some(listener) = &self.listener {
            listener.borrow_mut().end(at);
        }
    }

    fn add(&mut self, stream: usize, data: Payload, now: Instant) {
        let len = data.len() as u64;
        if let Some(listener) = self.listener.as_ref().filter(|_| stream == 0) {
            listener.borrow_mut().delivered(&metrics::Delivered { at: now, bytes: len });
        }
        (self.bytes, self.last_at) = (self.bytes + len, now);
        let stream = &mut self.streams[stream];
        (stream.bytes, stream.last_at) = (stream.bytes + len, now);
        match stream.pieces.last_mut().map(|last| last.try_append(data.clone())) {
            Some(Ok(())) => {}
            _ => stream.pieces.push(data),
        }
    }

    fn finish(&mut self, stream: usize) {
        self.streams[stream].finished = true;
        self.finished += 1;
    }
}

/// The user of the data of one connection.
#[derive(Clone, Debug)]
pub(super) enum User {
    /// Only keeps the data.
    Keeper,
    /// Watches the data as video.
    Viewer(Viewer),
    /// Requests the data piece by piece.
    Reader(Reader),
}

impl User {
    fn received(&mut self, total_bytes: u64, now: Instant) {
        match self {
            Self::Keeper => {}
            Self::Viewer(viewer) => viewer.received(total_bytes, now),
            Self::Reader(reader) => reader.received(total_bytes, now),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        match self {
            Self::Reader(reader) => reader.next_at(),
            Self::Keeper | Self::Viewer(_) => None,
        }
    }

    fn asks(&mut self, now: Instant) -> bool {
        match self {
            Self::Reader(reader) => reader.asks(now),
            Self::Keeper | Self::Viewer(_) => false,
        }
    }

    /// The viewer's screen, if it is a viewer.
    fn screen(&self) -> Option<Screen> {
        match self {
            Self::Viewer(viewer) => Some(viewer.screen()),
            Self::Keeper | Self::Reader(_) => None,
        }
    }

    /// The reader's waiting times, if it is a reader.
    fn latencies(&self) -> Option<Latencies> {
        match self {
            Self::Reader(reader) => Some(reader.latencies()),
            Self::Keeper | Self::Viewer(_) => None,
        }
    }
}

/// Opens a connection for each user, receives until the source ends its streams, and then ends its own.
pub(super) struct Sink {
    local: SocketAddr,
    remote: SocketAddr,
    config: ConnectionConfig,
    users: Vec<User>,
    connections: Vec<ConnectionId>,
    /// For each connection, whether it is established.
    connected: Vec<bool>,
    /// For each connection, octets of requests that were sent.
    asked_bytes: Vec<u64>,
    delivered: Rc<RefCell<Delivered>>,
}

impl Sink {
    /// Creates a sink that opens a connection from `local` to `remote` for each of `users` when the run begins.
    pub fn new(local: SocketAddr, remote: SocketAddr, config: ConnectionConfig, users: Vec<User>) -> Self {
        let (connected, asked_bytes) = (vec![false; users.len()], vec![0; users.len()]);
        let screens = users.iter().filter_map(User::screen).collect();
        let latencies = users.iter().filter_map(User::latencies).collect();
        let delivered = Rc::new(RefCell::new(Delivered { screens, latencies, ..Delivered::default() }));
        Self { local, remote, config, users, connections: Vec::new(), connected, asked_bytes, delivered }
    }

    /// What has arrived; shared with the sink.
    pub fn delivered(&self) -> Rc<RefCell<Delivered>> {
        Rc::clone(&self.delivered)
    }

    fn stream_of(&self, connection: ConnectionId) -> Option<usize> {
        self.connections.iter().position(|known| *known == connection)
    }

    fn drain(&mut self, stream: usize, endpoint: &mut Endpoint, now: Instant) {
        let connection = self.connections[stream];
        let mut delivered = self.delivered.borrow_mut();
        while !delivered.streams[stream].finished {
            match endpoint.recv(connection, TAKE_BYTES, now) {
                Ok(Received::Data(data)) => {
                    delivered.add(stream, data, now);
                    self.users[stream].received(delivered.streams[stream].bytes, now);
                }
                Ok(Received::Pending) => return,
                Ok(Received::Finished) => {
                    delivered.finish(stream);
                    if let Err(error) = endpoint.shutdown(connection, now) {
                        delivered.failure = Some(format!("shutdown: {error}"));
                    }
                }
                Err(error) => {
                    delivered.failure = Some(format!("receive: {error}"));
                    return;
                }
            }
        }
    }
}

impl Sink {
    /// Sends requests that are due. They are small, and there is one at a time, so they always fit into the send
    /// buffer.
    fn ask(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for (stream, user) in self.users.iter_mut().enumerate().filter(|(stream, _)| self.connected[*stream]) {
            if !user.asks(now) {
                continue;
            }
            let offset = self.asked_bytes[stream];
            let request = Payload::Pattern(Pattern { stream: 0, len: REQUEST_BYTES as u32, offset });
            match endpoint.send(self.connections[stream], request, now) {
                Ok(_) => self.asked_bytes[stream] += REQUEST_BYTES,
                Err(error) => self.delivered.borrow_mut().failure = Some(format!("request: {error}")),
            }
        }
    }
}

impl App for Sink {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for _ in 0..self.users.len() {
            match endpoint.connect(self.local, self.remote, self.config.clone(), now) {
                Ok(connection) => {
                    self.connections.push(connection);
                    self.delivered.borrow_mut().streams.push(Stream::default());
                }
                Err(error) => self.delivered.borrow_mut().failure = Some(format!("connect: {error}")),
            }
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Connected { connection, .. } => {
                if let Some(stream) = self.stream_of(*connection) {
                    self.connected[stream] = true;
                    self.ask(endpoint, now);
                }
            }
            Event::Readable(connection) | Event::PeerFinished(connection) => {
                if let Some(stream) = self.stream_of(*connection) {
                    self.drain(stream, endpoint, now);
                }
            }
            Event::Closed { connection, reason } => {
                let Some(stream) = self.stream_of(*connection) else { return };
                self.connected[stream] = false;
                let mut delivered = self.delivered.borrow_mut();
                if !delivered.streams[stream].finished {
                    let why = match reason {
                        CloseReason::TimedOut => "the destination gave up (user timeout)".into(),
                        other => other.to_string(),
                    };
                    delivered.failure.get_or_insert(format!("the connection ended early: {why}"));
                }
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.ask(endpoint, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let connected = self.users.iter().zip(&self.connected).filter(|(_, connected)| **connected);
        connected.filter_map(|(user, _)| user.next_at()).min()
    }

    fn report(&self) -> Report {
        let delivered = self.delivered.borrow();
        Report {
            connections: self.connections.clone(),
            received_bytes: delivered.bytes,
            faults: delivered.failure.iter().cloned().collect(),
            ..Report::default()
        }
    }
}
