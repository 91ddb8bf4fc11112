//! A client that asks and waits.

use core::net::SocketAddr;

use transport::error::ConnectionError;
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, Received};
use units::{Duration, Instant};

use super::{App, Report, Source};

/// Sends requests of equal size to an [`super::Echo`], one after the other on one connection; each is sent when the
/// answer to the one before has arrived and a pause has passed. Notes how long each took.
pub struct RequestResponse {
    local: SocketAddr,
    remote: SocketAddr,
    config: ConnectionConfig,
    requests: u64,
    request_bytes: u64,
    pause: Duration,
    connection: Option<ConnectionId>,
    /// The stream of all requests.
    source: Source,
    sent_bytes: u64,
    received_bytes: u64,
    asked_at: Instant,
    next_at: Option<Instant>,
    report: Report,
}

impl RequestResponse {
    /// `requests` requests of `request_bytes` octets from `local` to `remote`, without a pause.
    pub fn new(
        local: SocketAddr,
        remote: SocketAddr,
        config: ConnectionConfig,
        requests: u64,
        request_bytes: u32,
    ) -> Self {
        Self {
            local,
            remote,
            config,
            requests,
            request_bytes: u64::from(request_bytes),
            pause: Duration::ZERO,
            connection: None,
            source: Source::pattern(requests * u64::from(request_bytes)),
            sent_bytes: 0,
            received_bytes: 0,
            asked_at: Instant::ZERO,
            next_at: None,
            report: Report::default(),
        }
    }

    /// Waits so long after each answer.
    pub fn pausing(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.connection else { return };
        let result = self.receive(connection, endpoint, now).and_then(|()| self.send(connection, endpoint, now));
        if let Err(error) = result {
            self.report.faults.push(format!("request {}: {error}", self.report.latencies.len()));
        }
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        endpoint: &mut Endpoint,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        while let Received::Data(data) = endpoint.recv(connection, usize::MAX, now)? {
            if !self.source.matches(self.received_bytes, &data) {
                self.report.faults.push(format!("the answer differs at octet {} or after", self.received_bytes));
            }
            self.received_bytes += data.len() as u64;
            self.report.received_bytes = self.received_bytes;
            self.report.first_byte_at.get_or_insert(now);
        }
        let answered = self.report.latencies.len() as u64;
        if answered < self.requests && self.received_bytes == (answered + 1) * self.request_bytes {
            self.report.latencies.push(now - self.asked_at);
            self.next_at = Some(now + self.pause);
        }
        Ok(())
    }

    fn send(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) -> Result<(), ConnectionError> {
        let answered = self.report.latencies.len() as u64;
        if self.next_at.take_if(|at| *at <= now).is_some() {
            if answered == self.requests {
                self.report.completed = 1;
                self.report.completed_at = Some(now);
                return endpoint.shutdown(connection, now);
            }
            self.asked_at = now;
        } else if self.next_at.is_some() {
            return Ok(());
        }
        let end = ((answered + 1) * self.request_bytes).min(self.source.len());
        if self.sent_bytes < end {
            let offer = self.source.slice(self.sent_bytes, (end - self.sent_bytes) as u32);
            self.sent_bytes += endpoint.send(connection, offer, now)? as u64;
            self.report.sent_bytes = self.sent_bytes;
        }
        Ok(())
    }
}

impl App for RequestResponse {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        match endpoint.connect(self.local, self.remote, self.config.clone(), now) {
            Ok(connection) => {
                self.connection = Some(connection);
                self.report.connections.push(connection);
            }
            Err(error) => self.report.faults.push(format!("connect to {}: {error}", self.remote)),
        }
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Connected { connection, .. } if Some(*connection) == self.connection => {
                self.next_at = Some(now);
                self.turn(endpoint, now);
            }
            Event::Readable(connection) | Event::Writable(connection) if Some(*connection) == self.connection => {
                self.turn(endpoint, now);
            }
            Event::Closed { connection, reason } if Some(*connection) == self.connection => {
                self.connection = None;
                self.next_at = None;
                self.report.closed.push(*reason);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.turn(endpoint, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_at
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}
