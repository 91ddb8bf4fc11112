//! TCP flows whose application follows a demand.

use core::net::SocketAddr;

use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, ListenerId, Received};
use units::{Duration, Instant, Prng};

use super::datagrams::mixed_payload_bytes;
use super::writer::Writer;
use super::{Demand, Octets};
use host::{App, Report};

/// Octets written at once, about a segment. An application that writes single octets would be another model.
const WRITE_BYTES: u64 = 1400;
/// Octets of IP and TCP headers over IPv4 without options, which the sizes of a mix include.
const HEADERS_BYTES: u16 = 40;
/// Maximum octets taken from the endpoint at once.
const TAKE_BYTES: usize = 1 << 20;
/// Interval at which a source that is behind its demand checks whether it may write: no event tells it when its
/// connection sends from the buffer.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// A TCP flow.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// Source address and port; port 0 for any.
    pub local: SocketAddr,
    /// Destination address and port.
    pub remote: SocketAddr,
    /// Settings of the connection.
    pub config: ConnectionConfig,
    /// Octets over time; `None` for as much as the connection takes.
    pub demand: Option<Demand>,
    /// Maximum octets that wait to be sent. Demand beyond it is never sent: a live source does not fall behind without
    /// limit.
    pub backlog_bytes: u64,
    /// When the flow connects.
    pub start: Instant,
    /// When the flow stops; never by default. With a demand, it stops writing, and what waits is still sent. Without a
    /// demand, it aborts the connection: otherwise the full send buffer would keep the flow going.
    pub stop: Instant,
}

/// Connects and writes the octets that its flow demands.
pub struct PacedSource {
    flow: TcpFlow,
    writer: Writer,
    now: Instant,
    /// Octets demanded, minus those given up.
    due_bytes: u64,
    given_up_bytes: u64,
    /// Whether more was due at the latest check than may wait.
    is_behind: bool,
    demanded: Octets,
    mix: Option<Mix>,
}

/// Writes of random sizes.
struct Mix {
    prng: Prng,
    is_ipv6: bool,
    /// Total octets at the end of the present write.
    end_bytes: u64,
}

impl Mix {
    fn next(&mut self) {
        self.end_bytes += u64::from(mixed_payload_bytes(&mut self.prng, self.is_ipv6, HEADERS_BYTES));
    }
}

impl PacedSource {
    /// Creates a source of `flow`.
    pub fn new(flow: TcpFlow) -> Self {
        let (writer, demanded) = (Writer::default(), Octets::default());
        Self {
            flow,
            writer,
            now: Instant::ZERO,
            due_bytes: 0,
            given_up_bytes: 0,
            is_behind: false,
            demanded,
            mix: None,
        }
    }

    /// Sizes the writes for IP packets of 44 octets (50 %; over IPv6 64), 576 (25 %) and 1500 (25 %) without TCP
    /// options: MPTCP-rec's background traffic. Data that wait for the window go in full segments. Only for a flow with
    /// a demand.
    pub fn mixed(self, prng: Prng) -> Self {
        let mut mix = Mix { prng, is_ipv6: self.flow.remote.is_ipv6(), end_bytes: 0 };
        mix.next();
        Self { mix: Some(mix), ..self }
    }

    /// Returns the octets demanded so far, including those given up, shared with the source. Without a demand these are
    /// the octets written.
    pub fn demanded(&self) -> Octets {
        self.demanded.clone()
    }

    fn stopped(&self) -> bool {
        self.now >= self.flow.stop
    }

    /// Whether the flow has no demand and takes all that the connection can carry.
    fn is_greedy(&self) -> bool {
        self.flow.demand.is_none()
    }

    fn advance(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if now >= self.flow.start {
            let TcpFlow { local, remote, config, .. } = &self.flow;
            self.writer.connect((*local, *remote), config, endpoint, now);
        }
        if !self.stopped() {
            self.now = now.min(self.flow.stop);
            self.count_demand(endpoint);
            if self.stopped() && self.is_greedy() {
                self.writer.abort(endpoint, now);
            }
        }
        self.write(endpoint, now);
    }

    /// Updates the octets that are due: everything demanded, except what came while the backlog was full.
    fn count_demand(&mut self, endpoint: &Endpoint) {
        let Some(demand) = &mut self.flow.demand else { return };
        let demanded = demand.bytes_until(self.now);
        self.demanded.set(demanded);
        let unsent_bytes =
            self.writer.connection().and_then(|connection| endpoint.unsent_bytes(connection)).unwrap_or(0);
        let most = self.writer.written_bytes() - unsent_bytes + self.flow.backlog_bytes;
        self.due_bytes = demanded - self.given_up_bytes;
        self.is_behind = self.due_bytes > most;
        if self.is_behind {
            self.given_up_bytes += self.due_bytes - most;
            self.due_bytes = most;
        }
    }

    /// Writes the octets that are due in whole pieces, as far as the connection takes them.
    fn write(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if let Some(mix) = &mut self.mix {
            while self.writer.is_ready() && mix.end_bytes <= self.due_bytes {
                self.writer.write(mix.end_bytes - self.writer.written_bytes(), endpoint, now);
                if self.writer.written_bytes() == mix.end_bytes {
                    mix.next();
                }
            }
        } else if self.flow.demand.is_some() {
            let due = self.due_bytes.saturating_sub(self.writer.written_bytes());
            self.writer.write(due / WRITE_BYTES * WRITE_BYTES, endpoint, now);
        } else if !self.stopped() {
            self.writer.write(u64::MAX, endpoint, now);
            self.demanded.set(self.writer.written_bytes());
        }
    }
}

impl App for PacedSource {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.advance(endpoint, now);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        if self.writer.handle_event(event) {
            self.advance(endpoint, now);
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.advance(endpoint, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.writer.is_idle() {
            return Some(self.flow.start);
        }
        if self.stopped() {
            return None;
        }
        let Some(demand) = &self.flow.demand else {
            return (self.flow.stop < Instant::FAR_FUTURE).then_some(self.flow.stop);
        };
        let next_write = self.mix.as_ref().map_or(self.writer.written_bytes() + WRITE_BYTES, |mix| mix.end_bytes);
        let next = demand.next_event(next_write.saturating_add(self.given_up_bytes))?;
        // Nothing can be written now, but the demand continues.
        let next = if self.is_behind || !self.writer.is_ready() { self.now + LOOK_AFTER } else { next };
        Some(next.min(self.flow.stop))
    }

    fn report(&self) -> Report {
        self.writer.report(false)
    }
}

/// Accepts every connection to an address and counts what arrives; ends its side of a connection after the peer has.
pub struct TcpSink {
    local: SocketAddr,
    config: ConnectionConfig,
    listener: Option<ListenerId>,
    /// Connections that have not ended.
    connections: Vec<ConnectionId>,
    finished: usize,
    received: Octets,
    faults: Vec<String>,
}

impl TcpSink {
    /// Creates a sink at `local`.
    pub fn new(local: SocketAddr, config: ConnectionConfig) -> Self {
        let (connections, faults) = (Vec::new(), Vec::new());
        Self { local, config, listener: None, connections, finished: 0, received: Octets::default(), faults }
    }

    /// Returns the octets that have arrived so far in order, shared with the sink.
    pub fn received(&self) -> Octets {
        self.received.clone()
    }

    /// Returns the number of streams that arrived up to their end.
    pub fn finished(&self) -> usize {
        self.finished
    }

    fn drain(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        loop {
            match endpoint.recv(connection, TAKE_BYTES, now) {
                Ok(Received::Data(data)) => self.received.add(data.len() as u64),
                Ok(Received::Pending) => return,
                Ok(Received::Finished) => {
                    self.finished += 1;
                    return self.end(connection, endpoint, now);
                }
                // The peer gave up: the octets that arrived count, and there is nothing to answer.
                Err(_) => return self.end(connection, endpoint, now),
            }
        }
    }

    fn end(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        self.connections.retain(|known| *known != connection);
        // A connection that is already closed needs no second close.
        let _ = endpoint.close(connection, now);
        endpoint.release(connection);
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
            Event::Readable(connection) | Event::PeerFinished(connection) | Event::Closed { connection, .. }
                if self.connections.contains(connection) =>
            {
                self.drain(*connection, endpoint, now);
            }
            _ => {}
        }
    }

    fn report(&self) -> Report {
        Report {
            connections: self.connections.clone(),
            received_bytes: self.received.get(),
            completed: self.finished,
            faults: self.faults.clone(),
            ..Report::default()
        }
    }
}
