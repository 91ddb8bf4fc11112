//! Transfers: send a stream, expect a stream, or both.

use core::net::SocketAddr;

use sha2::{Digest, Sha256};
use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, ListenerId, Received};
use units::Instant;
use wire::Payload;

use host::{App, Report};

use super::Source;

/// Maximum octets offered to the endpoint at once.
const OFFER_BYTES: u32 = 1 << 20;

/// Maximum octets taken from the endpoint at once.
const TAKE_BYTES: usize = 1 << 20;

/// Opens a connection or accepts connections, sends one stream on each, and checks that another one arrives, intact and
/// in order. It ends its side when it has sent everything or, with nothing to send, when the peer has ended.
pub struct Transfer {
    opening: Opening,
    config: ConnectionConfig,
    send: Option<Source>,
    expect: Option<Source>,
    after_peer: bool,
    digest: Option<Sha256>,
    listener: Option<ListenerId>,
    streams: Vec<Stream>,
    report: Report,
}

#[derive(Clone, Copy)]
enum Opening {
    Connect { local: SocketAddr, remote: SocketAddr, at: Instant, done: bool },
    Listen { local: SocketAddr },
}

/// One connection.
struct Stream {
    connection: ConnectionId,
    established: bool,
    sent_bytes: u64,
    received_bytes: u64,
    shut_down: bool,
    peer_finished: bool,
    completed: bool,
}

impl Transfer {
    /// Opens a connection from `local` (port 0: any) to `remote` when the run starts.
    pub fn connect(local: SocketAddr, remote: SocketAddr, config: ConnectionConfig) -> Self {
        Self::new(Opening::Connect { local, remote, at: Instant::ZERO, done: false }, config)
    }

    /// Accepts every connection to `local`.
    pub fn listen(local: SocketAddr, config: ConnectionConfig) -> Self {
        Self::new(Opening::Listen { local }, config)
    }

    fn new(opening: Opening, config: ConnectionConfig) -> Self {
        Self {
            opening,
            config,
            send: None,
            expect: None,
            after_peer: false,
            digest: None,
            listener: None,
            streams: Vec::new(),
            report: Report::default(),
        }
    }

    /// Connects at `start` instead of the start of the run.
    pub fn at(mut self, start: Instant) -> Self {
        if let Opening::Connect { at, .. } = &mut self.opening {
            *at = start;
        }
        self
    }

    /// Sends `source` on every connection.
    pub fn sending(self, source: Source) -> Self {
        Self { send: Some(source), ..self }
    }

    /// Expects exactly `source` on every connection. Without this, it only counts what arrives.
    pub fn expecting(self, source: Source) -> Self {
        Self { expect: Some(source), ..self }
    }

    /// Sends only after the peer has finished: exercises half-closed connections.
    pub fn after_peer_finished(self) -> Self {
        Self { after_peer: true, ..self }
    }

    /// Computes the SHA-256 of everything received.
    pub fn digesting(self) -> Self {
        Self { digest: Some(Sha256::new()), ..self }
    }

    fn open(&mut self, endpoint: &mut Endpoint, now: Instant) {
        match &mut self.opening {
            Opening::Listen { local } => match endpoint.listen(*local, self.config.clone()) {
                Ok(listener) => self.listener = Some(listener),
                Err(error) => self.report.faults.push(format!("listen on {local}: {error}")),
            },
            Opening::Connect { at, done, .. } if *done || *at > now => {}
            Opening::Connect { local, remote, done, .. } => {
                *done = true;
                match endpoint.connect(*local, *remote, self.config.clone(), now) {
                    Ok(connection) => self.add_stream(connection),
                    Err(error) => self.report.faults.push(format!("connect {local} to {remote}: {error}")),
                }
            }
        }
    }

    fn add_stream(&mut self, connection: ConnectionId) {
        self.report.connections.push(connection);
        self.streams.push(Stream {
            connection,
            established: false,
            sent_bytes: 0,
            received_bytes: 0,
            shut_down: false,
            peer_finished: false,
            completed: false,
        });
    }

    /// Identifiers of an endpoint ascend with time, so this finds the latest connections first.
    fn position(&self, connection: ConnectionId) -> Option<usize> {
        self.streams.iter().rposition(|stream| stream.connection == connection)
    }

    fn with_stream(
        &mut self,
        connection: ConnectionId,
        endpoint: &mut Endpoint,
        now: Instant,
        step: impl FnOnce(&mut Self, usize, &mut Endpoint, Instant),
    ) {
        if let Some(index) = self.position(connection) {
            step(self, index, endpoint, now);
            self.finish_if_done(index, now);
        }
    }

    /// Offers data until the endpoint takes less than it is offered.
    fn pump(&mut self, index: usize, endpoint: &mut Endpoint, now: Instant) {
        let stream = &mut self.streams[index];
        if !stream.established || stream.shut_down || self.after_peer && !stream.peer_finished {
            return;
        }
        let empty = Source::pattern(0);
        let source = self.send.as_ref().unwrap_or(&empty);
        while stream.sent_bytes < source.len() {
            let offer = source.slice(stream.sent_bytes, OFFER_BYTES);
            let offered = offer.len();
            match endpoint.send(stream.connection, offer, now) {
                Ok(taken) => {
                    stream.sent_bytes += taken as u64;
                    self.report.sent_bytes += taken as u64;
                    if taken < offered {
                        return;
                    }
                }
                Err(error) => return self.report.faults.push(format!("send: {error}")),
            }
        }
        if self.send.is_some() || stream.peer_finished {
            stream.shut_down = true;
            if let Err(error) = endpoint.shutdown(stream.connection, now) {
                self.report.faults.push(format!("shutdown: {error}"));
            }
        }
    }

    fn drain(&mut self, index: usize, endpoint: &mut Endpoint, now: Instant) {
        let connection = self.streams[index].connection;
        loop {
            match endpoint.recv(connection, TAKE_BYTES, now) {
                Ok(Received::Data(data)) => self.take(index, &data, now),
                Ok(Received::Finished) if !self.streams[index].peer_finished => {
                    self.streams[index].peer_finished = true;
                    self.check_end(index);
                    return self.pump(index, endpoint, now);
                }
                Ok(Received::Pending | Received::Finished) => return,
                Err(error) => return self.report.faults.push(format!("recv: {error}")),
            }
        }
    }

    fn take(&mut self, index: usize, data: &Payload, now: Instant) {
        let offset = self.streams[index].received_bytes;
        let intact = self.expect.as_ref().is_none_or(|expected| expected.matches(offset, data));
        // One fault is enough: octets after a wrong one are often wrong, too.
        if !intact && self.report.faults.is_empty() {
            let end = offset + data.len() as u64;
            self.report.faults.push(format!("octets [{offset}, {end}) differ from those expected"));
        }
        if let Some(digest) = &mut self.digest {
            digest.update(data.to_bytes());
        }
        self.streams[index].received_bytes += data.len() as u64;
        self.report.received_bytes += data.len() as u64;
        self.report.first_byte_at.get_or_insert(now);
    }

    fn check_end(&mut self, index: usize) {
        let received = self.streams[index].received_bytes;
        if let Some(expected) = self.expect.as_ref().map(Source::len).filter(|expected| *expected != received) {
            self.report.faults.push(format!("the stream ended after {received} of {expected} octets"));
        }
    }

    fn finish_if_done(&mut self, index: usize, now: Instant) {
        let stream = &mut self.streams[index];
        if stream.shut_down && stream.peer_finished && !stream.completed {
            stream.completed = true;
            self.report.completed += 1;
            self.report.completed_at = Some(now);
        }
    }

    fn close(&mut self, index: usize, reason: CloseReason, now: Instant) {
        self.report.closed.push(reason);
        if reason != CloseReason::Finished {
            self.report.failed.get_or_insert((now, reason));
        }
        let stream = &mut self.streams[index];
        stream.established = false;
    }
}

impl App for Transfer {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.open(endpoint, now);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Incoming(listener) if Some(*listener) == self.listener => {
                while let Some(connection) = endpoint.accept(*listener) {
                    self.add_stream(connection);
                    let index = self.streams.len() - 1;
                    self.streams[index].established = true;
                    self.pump(index, endpoint, now);
                    self.drain(index, endpoint, now);
                    self.finish_if_done(index, now);
                }
            }
            Event::Connected { connection, .. } => {
                self.with_stream(*connection, endpoint, now, |app, index, endpoint, now| {
                    app.streams[index].established = true;
                    app.pump(index, endpoint, now);
                })
            }
            Event::Writable(connection) => self.with_stream(*connection, endpoint, now, Self::pump),
            Event::Readable(connection) | Event::PeerFinished(connection) => {
                self.with_stream(*connection, endpoint, now, Self::drain);
            }
            Event::Closed { connection, reason } => {
                self.with_stream(*connection, endpoint, now, |app, index, _, now| {
                    app.close(index, *reason, now);
                });
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.open(endpoint, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.opening {
            Opening::Connect { at, done: false, .. } => Some(at),
            _ => None,
        }
    }

    fn report(&self) -> Report {
        let sha256 = self.digest.clone().map(|digest| digest.finalize().into());
        Report { sha256, ..self.report.clone() }
    }
}
