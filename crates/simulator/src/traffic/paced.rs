//! TCP flows whose application follows a demand.

use core::net::SocketAddr;

use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, ListenerId, Received};
use units::Instant;
use wire::{Pattern, Payload};

use super::{Demand, Octets};
use crate::app::{App, Report};

/// Octets written at once, about a segment: an application that writes every octet by itself would be another model.
const WRITE_BYTES: u64 = 1400;
/// Octets taken from the endpoint at once.
const TAKE_BYTES: usize = 1 << 20;

/// A TCP flow.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// Where it comes from; port 0 for any.
    pub local: SocketAddr,
    /// Where it goes.
    pub remote: SocketAddr,
    /// Settings of the connection.
    pub config: ConnectionConfig,
    /// Octets in time; `None` for as many as the connection takes.
    pub demand: Option<Demand>,
    /// Most octets that wait for the connection to take them. What is demanded beyond is never sent: a live source does not
    /// fall behind for ever.
    pub backlog_bytes: u64,
    /// When it connects.
    pub start: Instant,
    /// When it stops writing; never by default.
    pub stop: Instant,
}

/// Connects and writes what its flow demands.
pub struct PacedSource {
    flow: TcpFlow,
    connection: Option<ConnectionId>,
    connected: bool,
    writable: bool,
    now: Instant,
    /// Octets demanded and not given up.
    due_bytes: u64,
    given_up_bytes: u64,
    written_bytes: u64,
    demanded: Octets,
    faults: Vec<String>,
}

impl PacedSource {
    /// A source of `flow`.
    pub fn new(flow: TcpFlow) -> Self {
        Self {
            flow,
            connection: None,
            connected: false,
            writable: true,
            now: Instant::ZERO,
            due_bytes: 0,
            given_up_bytes: 0,
            written_bytes: 0,
            demanded: Octets::default(),
            faults: Vec::new(),
        }
    }

    /// What was demanded so far, given up or not, shared with the source. Without a demand it is what was written.
    pub fn demanded(&self) -> Octets {
        self.demanded.clone()
    }

    fn connect(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if self.connection.is_none() && self.faults.is_empty() && now >= self.flow.start {
            match endpoint.connect(self.flow.local, self.flow.remote, self.flow.config.clone(), now) {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => self.faults.push(format!("connect to {}: {error}", self.flow.remote)),
            }
        }
    }

    fn stopped(&self) -> bool {
        self.now >= self.flow.stop
    }

    fn advance(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.connect(endpoint, now);
        if !self.stopped() {
            self.now = now.min(self.flow.stop);
            self.count_demand();
        }
        self.write(endpoint, now);
    }

    fn count_demand(&mut self) {
        let Some(demand) = &mut self.flow.demand else { return };
        let demanded = demand.bytes_until(self.now);
        self.demanded.set(demanded);
        let most = self.written_bytes + self.flow.backlog_bytes;
        self.due_bytes = demanded - self.given_up_bytes;
        if self.due_bytes > most {
            self.given_up_bytes += self.due_bytes - most;
            self.due_bytes = most;
        }
    }

    /// Writes what is due in whole pieces, as far as the connection takes it.
    fn write(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.connection.filter(|_| self.connected && self.writable) else { return };
        loop {
            let due = match self.flow.demand {
                Some(_) => self.due_bytes - self.written_bytes,
                None if self.stopped() => 0,
                None => u64::from(u32::MAX),
            };
            if due < WRITE_BYTES {
                return;
            }
            let len = if self.flow.demand.is_some() { due / WRITE_BYTES * WRITE_BYTES } else { due };
            let len = len.min(1 << 20) as u32;
            let offer = Payload::Pattern(Pattern { stream: 0, len, offset: self.written_bytes });
            match endpoint.send(connection, offer, now) {
                Ok(taken) => {
                    self.written_bytes += taken as u64;
                    self.writable = taken as u64 == u64::from(len);
                }
                Err(error) => {
                    self.writable = false;
                    self.faults.push(format!("send: {error}"));
                }
            }
            if self.flow.demand.is_none() {
                self.demanded.set(self.written_bytes);
            }
            if !self.writable {
                return;
            }
        }
    }
}

impl App for PacedSource {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.advance(endpoint, now);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Connected { connection, .. } if Some(*connection) == self.connection => self.connected = true,
            Event::Writable(connection) if Some(*connection) == self.connection => self.writable = true,
            Event::Closed { connection, .. } if Some(*connection) == self.connection => self.connected = false,
            _ => return,
        }
        self.advance(endpoint, now);
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.advance(endpoint, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.connection.is_none() && self.faults.is_empty() {
            return Some(self.flow.start);
        }
        let demand = self.flow.demand.as_ref().filter(|_| !self.stopped())?;
        // While the connection takes nothing the backlog grows, and nothing has to be done about it.
        let wanted = if self.writable && self.connected { self.written_bytes + WRITE_BYTES } else { u64::MAX };
        let next = demand.next_event(wanted.saturating_add(self.given_up_bytes))?;
        Some(next.min(self.flow.stop))
    }

    fn report(&self) -> Report {
        Report {
            connections: self.connection.into_iter().collect(),
            sent_bytes: self.written_bytes,
            faults: self.faults.clone(),
            ..Report::default()
        }
    }
}

/// Takes every connection to an address and counts what arrives.
pub struct TcpSink {
    local: SocketAddr,
    config: ConnectionConfig,
    listener: Option<ListenerId>,
    connections: Vec<ConnectionId>,
    received: Octets,
    faults: Vec<String>,
}

impl TcpSink {
    /// A sink at `local`.
    pub fn new(local: SocketAddr, config: ConnectionConfig) -> Self {
        let (listener, connections, faults) = (None, Vec::new(), Vec::new());
        Self { local, config, listener, connections, received: Octets::default(), faults }
    }

    /// What arrived so far in order, shared with the sink.
    pub fn received(&self) -> Octets {
        self.received.clone()
    }

    fn drain(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        while let Ok(Received::Data(data)) = endpoint.recv(connection, TAKE_BYTES, now) {
            self.received.add(data.len() as u64);
        }
    }
}

impl App for TcpSink {
    fn start(&mut self, endpoint: &mut Endpoint, _: Instant) {
        match endpoint.listen(self.local, self.config.clone()) {
            Ok(listener) => self.listener = Some(listener),
            Err(error) => self.faults.push(format!("listen on {}: {error}", self.local)),
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Incoming(listener) if Some(*listener) == self.listener => {
                while let Some(connection) = endpoint.accept(*listener) {
                    self.connections.push(connection);
                    self.drain(connection, endpoint, now);
                }
            }
            Event::Readable(connection) if self.connections.contains(connection) => {
                self.drain(*connection, endpoint, now);
            }
            _ => {}
        }
    }

    fn report(&self) -> Report {
        Report {
            connections: self.connections.clone(),
            received_bytes: self.received.get(),
            faults: self.faults.clone(),
            ..Report::default()
        }
    }
}
