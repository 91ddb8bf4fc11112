//! A client that sends requests and waits for their answers.

use core::net::SocketAddr;

use transport::error::ConnectionError;
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, Received};
use units::{Duration, Instant, Prng};

use host::{App, Report};

use super::Source;
use crate::traffic::Draw;

/// Sends requests to an [`super::Echo`], one after the other on one connection. Each request follows a pause after the
/// answer to the previous one; the last answer ends the connection. Records how long each answer took.
pub struct RequestResponse {
    local: SocketAddr,
    remote: SocketAddr,
    config: ConnectionConfig,
    requests: u64,
    /// Size of each request, octets.
    sizes: Draw,
    /// Pause after each answer, seconds.
    pauses: Draw,
    prng: Prng,
    connection: Option<ConnectionId>,
    /// The stream that all requests are part of.
    source: Source,
    sent_bytes: u64,
    received_bytes: u64,
    /// Octets of the stream up to the end of the latest request.
    end_bytes: u64,
    asked_at: Instant,
    next_at: Option<Instant>,
    report: Report,
}

impl RequestResponse {
    /// Sends `requests` requests of `request_bytes` octets from `local` to `remote`, without pauses.
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
            sizes: Draw::Constant(request_bytes.into()),
            pauses: Draw::Constant(0.0),
            prng: Prng::new(0),
            connection: None,
            source: Source::endless(),
            sent_bytes: 0,
            received_bytes: 0,
            end_bytes: 0,
            asked_at: Instant::ZERO,
            next_at: None,
            report: Report::default(),
        }
    }

    /// Waits for `pause` after each answer.
    pub fn pausing(self, pause: Duration) -> Self {
        Self { pauses: Draw::Constant(pause.as_secs_f64()), ..self }
    }

    /// Draws the size of each request in octets, rounded and at least one, and each pause in seconds.
    pub fn drawing(self, sizes_bytes: Draw, pauses_s: Draw, prng: Prng) -> Self {
        Self { sizes: sizes_bytes, pauses: pauses_s, prng, ..self }
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
        let asked = self.end_bytes > 0 && self.next_at.is_none();
        if asked && answered < self.requests && self.received_bytes == self.end_bytes {
            self.report.latencies.push(now - self.asked_at);
            if answered + 1 == self.requests {
                return self.finish(connection, endpoint, now);
            }
            self.next_at = Some(now + Duration::from_secs_f64(self.pauses.draw(&mut self.prng)));
        }
        Ok(())
    }

    fn finish(
        &mut self,
        connection: ConnectionId,
        endpoint: &mut Endpoint,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.report.completed = 1;
        self.report.completed_at = Some(now);
        endpoint.shutdown(connection, now)
    }

    fn send(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) -> Result<(), ConnectionError> {
        if self.next_at.take_if(|at| *at <= now).is_some() {
            if self.requests == 0 {
                return self.finish(connection, endpoint, now);
            }
            self.asked_at = now;
            self.end_bytes += (self.sizes.draw(&mut self.prng).round() as u64).max(1);
        } else if self.next_at.is_some() {
            return Ok(());
        }
        if self.sent_bytes < self.end_bytes {
            let len = (self.end_bytes - self.sent_bytes).min(u32::MAX.into()) as u32;
            let offer = self.source.slice(self.sent_bytes, len);
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
