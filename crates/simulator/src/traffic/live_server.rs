//! A server whose streams are produced while they are sent: a video, answers to requests, or data at a steady rate.

use core::net::SocketAddr;

use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, ListenerId, Received};
use units::Instant;

use super::live_stream::{LiveStream, Script};
use super::writer::Writer;
use host::{App, Report};

/// Maximum octets taken from the endpoint at once.
const TAKE_BYTES: usize = 1 << 20;

/// Accepts every connection to an address and writes its script, as octets of one pattern stream.
pub struct LiveServer {
    local: SocketAddr,
    config: ConnectionConfig,
    script: Script,
    pattern: u32,
    listener: Option<ListenerId>,
    streams: Vec<Stream>,
    /// Time and reason of the first connection's failure.
    failed: Option<(Instant, CloseReason)>,
    faults: Vec<String>,
}

/// One connection.
struct Stream {
    connection: ConnectionId,
    writer: Writer,
    made: LiveStream,
    received_bytes: u64,
}

impl LiveServer {
    /// Creates a server at `local` that sends `script` as octets of pattern stream `pattern`.
    pub fn new(local: SocketAddr, config: ConnectionConfig, script: Script, pattern: u32) -> Self {
        Self { local, config, script, pattern, listener: None, streams: Vec::new(), failed: None, faults: Vec::new() }
    }

    fn accept(&mut self, listener: ListenerId, endpoint: &mut Endpoint, now: Instant) {
        while let Some(connection) = endpoint.accept(listener) {
            self.streams.push(Stream {
                connection,
                writer: Writer::accepted(connection, self.pattern),
                made: LiveStream::new(self.script.clone(), now),
                received_bytes: 0,
            });
            self.advance(self.streams.len() - 1, endpoint, now);
        }
    }

    /// Handles the end of one of its connections.
    fn note_end(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Closed { reason: CloseReason::Finished, .. } => {}
            Event::Closed { reason, .. } => drop(self.failed.get_or_insert((now, *reason))),
            _ => {}
        }
    }

    fn advance(&mut self, index: usize, endpoint: &mut Endpoint, now: Instant) {
        let stream = &mut self.streams[index];
        stream.receive(endpoint, now);
        let due_bytes = stream.make(endpoint, now);
        stream.writer.write(due_bytes - stream.writer.written_bytes(), endpoint, now);
    }
}

impl Stream {
    /// Counts requests. An event reports a connection that failed.
    fn receive(&mut self, endpoint: &mut Endpoint, now: Instant) {
        while let Ok(Received::Data(data)) = endpoint.recv(self.connection, TAKE_BYTES, now) {
            self.received_bytes += data.len() as u64;
        }
    }

    fn make(&mut self, endpoint: &Endpoint, now: Instant) -> u64 {
        let made_bytes = self.made.due_bytes();
        let unsent_bytes = || {
            let stats = endpoint.stats(self.connection).unwrap_or_default();
            made_bytes.saturating_sub(stats.written_bytes) + stats.unsent_bytes
        };
        self.made.make(self.received_bytes, unsent_bytes, now)
    }

    /// A failed connection gets no more data.
    fn next_at(&self) -> Option<Instant> {
        self.made.next_at().filter(|_| self.writer.is_open())
    }
}

impl App for LiveServer {
    fn start(&mut self, endpoint: &mut Endpoint, _: Instant) {
        match endpoint.listen(self.local, self.config.clone()) {
            Ok(listener) => self.listener = Some(listener),
            Err(error) => self.faults.push(format!("listen on {}: {error}", self.local)),
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Incoming(listener) if Some(*listener) == self.listener => self.accept(*listener, endpoint, now),
            Event::Readable(connection) => {
                if let Some(index) = self.streams.iter().position(|stream| stream.connection == *connection) {
                    self.advance(index, endpoint, now);
                }
            }
            _ => {
                if let Some(index) = self.streams.iter_mut().position(|stream| stream.writer.handle_event(event)) {
                    self.note_end(event, now);
                    self.advance(index, endpoint, now);
                }
            }
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for index in 0..self.streams.len() {
            if self.streams[index].next_at().is_some_and(|at| at <= now) {
                self.advance(index, endpoint, now);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.streams.iter().filter_map(Stream::next_at).min()
    }

    fn report(&self) -> Report {
        let writers = || self.streams.iter().map(|stream| &stream.writer);
        Report {
            connections: self.streams.iter().map(|stream| stream.connection).collect(),
            sent_bytes: writers().map(Writer::written_bytes).sum(),
            failed: self.failed,
            faults: self.faults.iter().chain(writers().flat_map(Writer::faults)).cloned().collect(),
            ..Report::default()
        }
    }
}
