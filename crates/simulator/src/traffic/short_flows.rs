//! Short flows: one connection after the other.

use core::net::SocketAddr;

use transport::{ConnectionConfig, Endpoint, Event};
use units::{Duration, Instant, Prng};

use super::writer::Writer;
use super::{Draw, Latencies, Octets};
use host::{App, Report};

/// Flows of a user who fetches something, looks at it for a while, and fetches the next.
#[derive(Clone, Debug)]
pub struct ShortFlows {
    /// Where they come from; port 0, or no flow but the first can begin while the one before lingers.
    pub local: SocketAddr,
    /// Where they go.
    pub remote: SocketAddr,
    /// Settings of the connections.
    pub config: ConnectionConfig,
    /// Octets of each, rounded; at least one.
    pub sizes_bytes: Draw,
    /// From the end of one to the begin of the next.
    pub pauses_s: Draw,
    /// What sizes and pauses are drawn with.
    pub prng: Prng,
    /// When the first begins.
    pub start: Instant,
    /// None begins from then on.
    pub stop: Instant,
}

/// Opens a connection, sends, ends it, pauses, and so on. Its report's latencies tell how long the flows took, from the
/// first SYN until everything was acknowledged.
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
    /// A source of `flows`.
    pub fn new(flows: ShortFlows) -> Self {
        let next_at = flows.start;
        let (demanded, latencies) = (Octets::default(), Latencies::default());
        Self { flows, flow: None, next_at, demanded, latencies, report: Report::default() }
    }

    /// How long each flow took, shared with the source.
    pub fn latencies(&self) -> Latencies {
        self.latencies.clone()
    }

    /// Octets of all flows begun so far, shared with the source.
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

    /// Forgets the flow that is over and waits for the next.
    fn end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(flow) = self.flow.take() else { return };
        // It broke off, if it is still awaited.
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
