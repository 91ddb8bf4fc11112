//! Short flows: one connection after the other.

use core::net::SocketAddr;

use transport::{ConnectionConfig, Endpoint, Event};
use units::{Duration, Instant, Prng};

use super::writer::Writer;
use super::{Draw, Latencies, Octets};
use host::{App, Report};

/// Flows of a user who fetches an object, pauses, and fetches the next.
#[derive(Clone, Debug)]
pub struct ShortFlows {
    /// Source address and port. Use port 0: with a fixed port, a flow cannot begin while the previous one lingers.
    pub local: SocketAddr,
    /// Destination address and port.
    pub remote: SocketAddr,
    /// Settings of the connections.
    pub config: ConnectionConfig,
    /// Octets of each flow, rounded; at least one.
    pub sizes_bytes: Draw,
    /// Time from the end of one flow to the start of the next.
    pub pauses_s: Draw,
    /// Generator for sizes and pauses.
    pub prng: Prng,
    /// When the first flow begins.
    pub start: Instant,
    /// No flow begins from this time on.
    pub stop: Instant,
}

/// Opens a connection, sends an object, ends the connection, pauses, and repeats. The latencies in its report are the
/// durations of the flows, from the first SYN until everything is acknowledged.
pub struct ShortFlowSource {
    flows: ShortFlows,
    flow: Option<Flow>,
    next_at: Instant,
    demanded: Octets,
    latencies: Latencies,
    report: Report,
}

struct Flow {
    writer: Writer,
    len_bytes: u64,
    began: Instant,
    ended: bool,
}

impl ShortFlowSource {
    /// Creates a source of `flows`.
    pub fn new(flows: ShortFlows) -> Self {
        let next_at = flows.start;
        let (demanded, latencies) = (Octets::default(), Latencies::default());
        Self { flows, flow: None, next_at, demanded, latencies, report: Report::default() }
    }

    /// Returns how long each flow took, shared with the source.
    pub fn latencies(&self) -> Latencies {
        self.latencies.clone()
    }

    /// Returns the octets of all flows begun so far, shared with the source.
    pub fn demanded(&self) -> Octets {
        self.demanded.clone()
    }

    fn begin(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let len_bytes = (self.flows.sizes_bytes.draw(&mut self.flows.prng).round() as u64).max(1);
        self.demanded.add(len_bytes);
        let mut writer = Writer::default();
        let ShortFlows { local, remote, config, .. } = &self.flows;
        writer.connect((*local, *remote), config, endpoint, now);
        self.flow = Some(Flow { writer, len_bytes, began: now, ended: false });
        self.latencies.begin(now);
    }

    /// Discards the finished flow and plans the next one.
    fn end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(flow) = self.flow.take() else { return };
        // If the flow is still awaited, it broke off.
        self.latencies.break_off(now);
        flow.writer.connection().into_iter().for_each(|connection| endpoint.release(connection));
        self.report.sent_bytes += flow.writer.written_bytes();
        self.report.faults.extend_from_slice(flow.writer.faults());
        self.next_at = now + Duration::from_secs_f64(self.flows.pauses_s.draw(&mut self.flows.prng));
    }
}

impl Flow {
    fn write(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.writer.write(self.len_bytes - self.writer.written_bytes(), endpoint, now);
        if self.writer.written_bytes() == self.len_bytes && !self.ended {
            self.ended = true;
            self.writer.finish(endpoint, now);
        }
    }
}

impl App for ShortFlowSource {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.handle_timeout(endpoint, now);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        let Some(flow) = &mut self.flow else { return };
        if !flow.writer.handle_event(event) {
            return;
        }
        flow.write(endpoint, now);
        match event {
            Event::AllAcknowledged(_) if flow.ended => {
                self.report.completed += 1;
                self.report.completed_at = Some(now);
                self.latencies.push(now - flow.began);
                self.end(endpoint, now);
            }
            Event::Closed { reason, .. } => {
                self.report.closed.push(*reason);
                self.end(endpoint, now);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.begin(endpoint, now);
        }
        if self.flow.as_ref().is_some_and(|flow| !flow.writer.faults().is_empty()) {
            self.end(endpoint, now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let broken = !self.report.faults.is_empty();
        (self.flow.is_none() && !broken && self.next_at < self.flows.stop).then_some(self.next_at)
    }

    fn report(&self) -> Report {
        let flow = self.flow.iter();
        let under_way: u64 = flow.clone().map(|flow| flow.writer.written_bytes()).sum();
        Report {
            connections: flow.filter_map(|flow| flow.writer.connection()).collect(),
            sent_bytes: self.report.sent_bytes + under_way,
            latencies: self.latencies.to_vec(),
            ..self.report.clone()
        }
    }
}
