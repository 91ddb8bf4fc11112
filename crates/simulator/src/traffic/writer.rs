//! Opens a connection and writes to it: the shared part of all sources over TCP.

use core::net::SocketAddr;

use transport::{ConnectionConfig, ConnectionId, Endpoint, Event};
use units::Instant;
use wire::{Pattern, Payload};

use host::Report;

/// Maximum octets offered to the endpoint at once.
const OFFER_BYTES: u64 = 1 << 20;

/// One connection, and how much of a pattern it has taken.
#[derive(Default)]
pub(super) struct Writer {
    connection: Option<ConnectionId>,
    /// Number of the pattern stream.
    pattern: u32,
    connected: bool,
    /// Whether the endpoint took less than it was offered and has not asked for more since.
    full: bool,
    written_bytes: u64,
    faults: Vec<String>,
}

impl Writer {
    /// Creates a writer for an accepted connection, with octets of pattern stream `pattern`.
    pub fn accepted(connection: ConnectionId, pattern: u32) -> Self {
        Self { connection: Some(connection), pattern, connected: true, ..Self::default() }
    }

    /// Opens the connection, unless that was done before.
    pub fn connect(
        &mut self,
        (local, remote): (SocketAddr, SocketAddr),
        config: &ConnectionConfig,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        if self.is_idle() {
            match endpoint.connect(local, remote, config.clone(), now) {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => self.faults.push(format!("connect to {remote}: {error}")),
            }
        }
    }

    /// Whether no connection was tried yet.
    pub fn is_idle(&self) -> bool {
        self.connection.is_none() && self.faults.is_empty()
    }

    /// Whether the endpoint takes octets now.
    pub fn is_ready(&self) -> bool {
        self.connected && !self.full && self.faults.is_empty()
    }

    /// Whether the connection is open, even if its buffer is full.
    pub fn is_open(&self) -> bool {
        self.connected && self.faults.is_empty()
    }

    /// Handles an event; returns false if it belongs to another connection.
    pub fn handle_event(&mut self, event: &Event) -> bool {
        let (connection, connected) = match event {
            Event::Connected { connection, .. } => (connection, true),
            Event::Writable(connection) | Event::AllAcknowledged(connection) => (connection, self.connected),
            Event::Closed { connection, .. } => (connection, false),
            _ => return false,
        };
        if self.connection != Some(*connection) {
            return false;
        }
        self.connected = connected;
        if matches!(event, Event::Writable(_)) {
            self.full = false;
        }
        true
    }

    /// Writes octets of the pattern until the connection takes no more.
    pub fn write(&mut self, mut len_bytes: u64, endpoint: &mut Endpoint, now: Instant) {
        while let Some(connection) = self.connection.filter(|_| len_bytes > 0 && self.is_ready()) {
            let len = len_bytes.min(OFFER_BYTES) as u32;
            let offer = Payload::Pattern(Pattern { stream: self.pattern, len, offset: self.written_bytes });
            match endpoint.send(connection, offer, now) {
                Ok(taken) => {
                    self.written_bytes += taken as u64;
                    len_bytes -= taken as u64;
                    self.full = taken < len as usize;
                }
                Err(error) => self.faults.push(format!("send: {error}")),
            }
        }
    }

    /// Ends this side of the stream.
    pub fn finish(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let result = self.connection.map(|connection| endpoint.shutdown(connection, now));
        if let Some(Err(error)) = result {
            self.faults.push(format!("shutdown: {error}"));
        }
    }

    /// Aborts the connection and discards its unsent data, unless it has already ended.
    pub fn abort(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.connected = false;
        if let Some(connection) = self.connection {
            let _ = endpoint.abort(connection, now);
        }
    }

    /// Returns the connection, if it was opened.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.connection
    }

    /// Returns the octets that the endpoint took.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Returns the faults; they end the writing.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Returns the report of the writer.
    pub fn report(&self, completed: bool) -> Report {
        Report {
            connections: self.connection.into_iter().collect(),
            sent_bytes: self.written_bytes,
            completed: completed.into(),
            faults: self.faults.clone(),
            ..Report::default()
        }
    }
}
