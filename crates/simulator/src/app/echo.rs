//! A server that sends back what it receives.

use core::net::SocketAddr;

use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, ListenerId, Received};
use units::Instant;
use wire::Payload;

use host::{App, Report};

/// Maximum octets taken from the endpoint at once, and kept for a peer that does not read.
const TAKE_BYTES: usize = 1 << 16;

/// A server that sends back every octet and ends its side of a connection after the peer has.
pub struct Echo {
    local: SocketAddr,
    config: ConnectionConfig,
    listener: Option<ListenerId>,
    streams: Vec<Stream>,
    report: Report,
}

struct Stream {
    connection: ConnectionId,
    /// Octets taken and not yet sent back.
    waiting: Payload,
    finished: bool,
}

impl Echo {
    /// Serves every connection to `local`.
    pub fn listen(local: SocketAddr, config: ConnectionConfig) -> Self {
        Self { local, config, listener: None, streams: Vec::new(), report: Report::default() }
    }

    /// Sends back what waits, takes more, and repeats until either side pauses.
    fn turn(&mut self, index: usize, endpoint: &mut Endpoint, now: Instant) {
        let Some(stream) = self.streams.get_mut(index).filter(|stream| !stream.finished) else { return };
        let step = |stream: &mut Stream, report: &mut Report, endpoint: &mut Endpoint| loop {
            if !stream.waiting.is_empty() {
                let taken = endpoint.send(stream.connection, stream.waiting.clone(), now)?;
                report.sent_bytes += taken as u64;
                stream.waiting.split_to(taken);
                if !stream.waiting.is_empty() {
                    return Ok(());
                }
            }
            match endpoint.recv(stream.connection, TAKE_BYTES, now)? {
                Received::Data(data) => {
                    report.received_bytes += data.len() as u64;
                    stream.waiting = data;
                }
                Received::Pending => return Ok(()),
                Received::Finished => {
                    stream.finished = true;
                    report.completed += 1;
                    report.completed_at = Some(now);
                    return endpoint.shutdown(stream.connection, now);
                }
            }
        };
        if let Err(error) = step(stream, &mut self.report, endpoint) {
            stream.finished = true;
            self.report.faults.push(format!("echo: {error}"));
        }
    }
}

impl App for Echo {
    fn start(&mut self, endpoint: &mut Endpoint, _now: Instant) {
        match endpoint.listen(self.local, self.config.clone()) {
            Ok(listener) => self.listener = Some(listener),
            Err(error) => self.report.faults.push(format!("listen on {}: {error}", self.local)),
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Incoming(listener) if Some(*listener) == self.listener => {
                while let Some(connection) = endpoint.accept(*listener) {
                    self.report.connections.push(connection);
                    self.streams.push(Stream { connection, waiting: Payload::Empty, finished: false });
                    self.turn(self.streams.len() - 1, endpoint, now);
                }
            }
            Event::Readable(connection) | Event::Writable(connection) | Event::PeerFinished(connection) => {
                if let Some(index) = self.streams.iter().position(|stream| stream.connection == *connection) {
                    self.turn(index, endpoint, now);
                }
            }
            Event::Closed { connection, reason } if self.report.connections.contains(connection) => {
                self.streams.retain(|stream| stream.connection != *connection);
                self.report.closed.push(*reason);
            }
            _ => {}
        }
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}
