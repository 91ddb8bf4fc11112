//! Per-window series of a connection and of links.

use network::VertexId;
use transport::{ConnectionId, ConnectionStats, SubflowId};
use units::{Duration, Instant, Rate};

use crate::{EndpointHost, HostId, Simulation};

/// Whose series: a connection at both of its ends, and the links of interest.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The end that sends: windows, round-trip times, throughput.
    pub sender: (HostId, ConnectionId),
    /// The end that receives: goodput in order; the sender's acknowledged data stand in for it if absent.
    pub receiver: Option<(HostId, ConnectionId)>,
    /// Links whose queues are sampled.
    pub links: Vec<VertexId>,
}

/// One window of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its end.
    pub at: Instant,
    /// Data that became available in order at the receiver.
    pub goodput: Rate,
    /// Payload acknowledged on all subflows.
    pub throughput: Rate,
    /// Octets that waited at the receiver for a hole to fill, at the end.
    pub out_of_order_bytes: u64,
    /// The subflows, in order of creation; those that are gone stay with a throughput of zero.
    pub subflows: Vec<SubflowWindow>,
    /// The links, in order of [`Subject::links`].
    pub links: Vec<LinkWindow>,
}

/// One subflow in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowWindow {
    /// Which.
    pub id: SubflowId,
    /// Payload acknowledged.
    pub throughput: Rate,
    /// Congestion window at the end, octets.
    pub cwnd_bytes: u64,
    /// Octets in flight at the end.
    pub in_flight_bytes: u64,
    /// Smoothed round-trip time at the end.
    pub srtt: Option<Duration>,
    /// Segments sent again within the window.
    pub retransmitted_segments: u64,
}

/// One link in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkWindow {
    /// What left it.
    pub throughput: Rate,
    /// Octets waiting or in service at the end.
    pub queue_bytes: u64,
    /// Packets dropped within the window.
    pub dropped_packets: u64,
}

/// Records windows of equal length.
pub struct Recorder {
    subject: Subject,
    window: Duration,
    last: Baseline,
    /// The windows so far.
    pub windows: Vec<Window>,
}

/// Totals at the end of the last window.
#[derive(Default)]
struct Baseline {
    delivered_bytes: u64,
    /// Acknowledged octets and retransmitted segments by subflow.
    subflows: Vec<(u64, u64)>,
    /// Octets that left and packets dropped by link.
    links: Vec<(u64, u64)>,
}

impl Recorder {
    /// Records `subject` every `window`.
    pub fn new(subject: Subject, window: Duration) -> Self {
        let last = Baseline { links: vec![(0, 0); subject.links.len()], ..Baseline::default() };
        Self { subject, window, last, windows: Vec::new() }
    }

    /// Runs the simulation to `end` and takes a sample at the end of every window.
    pub fn run(&mut self, simulation: &mut Simulation<EndpointHost>, end: Instant) {
        self.run_while(simulation, end, |_| true);
    }

    /// The same, for as long as `goes_on` holds at the ends of windows.
    pub fn run_while(
        &mut self,
        simulation: &mut Simulation<EndpointHost>,
        end: Instant,
        mut goes_on: impl FnMut(&Simulation<EndpointHost>) -> bool,
    ) {
        while simulation.now() < end && goes_on(simulation) {
            simulation.run_until(end.min(simulation.now() + self.window));
            self.sample(simulation);
        }
    }

    /// Closes a window now.
    pub fn sample(&mut self, simulation: &Simulation<EndpointHost>) {
        let at = simulation.now();
        let span = at - self.windows.last().map_or(Instant::ZERO, |window| window.at);
        let stats_of = |(host, connection): (HostId, ConnectionId)| simulation.host(host).endpoint.stats(connection);
        let sender = stats_of(self.subject.sender).unwrap_or_default();
        let receiver = self.subject.receiver.and_then(stats_of);
        let delivered = receiver.as_ref().map_or(sender.acked_bytes, |stats| stats.received_bytes);
        let goodput = Rate::from_bytes_per(delivered - self.last.delivered_bytes, span);
        self.last.delivered_bytes = delivered;
        let (throughput, subflows) = self.sample_subflows(&sender, span);
        let links = self.sample_links(simulation, span);
        let out_of_order_bytes = receiver.map_or(0, |stats| stats.out_of_order_bytes);
        self.windows.push(Window { at, goodput, throughput, out_of_order_bytes, subflows, links });
    }

    fn sample_subflows(&mut self, sender: &ConnectionStats, span: Duration) -> (Rate, Vec<SubflowWindow>) {
        self.last.subflows.resize(sender.subflows.len(), (0, 0));
        let mut acked_in_window = 0;
        let windows = sender.subflows.iter().zip(&mut self.last.subflows).map(|(stats, last)| {
            let (acked, resent) = (stats.acked_bytes - last.0, stats.retransmitted_segments - last.1);
            *last = (stats.acked_bytes, stats.retransmitted_segments);
            acked_in_window += acked;
            SubflowWindow {
                id: stats.id,
                throughput: Rate::from_bytes_per(acked, span),
                cwnd_bytes: stats.cwnd_bytes,
                in_flight_bytes: stats.in_flight_bytes,
                srtt: stats.srtt,
                retransmitted_segments: resent,
            }
        });
        let windows = windows.collect();
        (Rate::from_bytes_per(acked_in_window, span), windows)
    }

    fn sample_links(&mut self, simulation: &Simulation<EndpointHost>, span: Duration) -> Vec<LinkWindow> {
        let network = simulation.network();
        let sample = |(link, last): (&VertexId, &mut (u64, u64))| {
            let counters = network.counters(*link);
            let (left, dropped) = (counters.left.bytes, counters.dropped_total().packets);
            let before = core::mem::replace(last, (left, dropped));
            LinkWindow {
                throughput: Rate::from_bytes_per(left - before.0, span),
                queue_bytes: network.backlog(*link).bytes,
                dropped_packets: dropped - before.1,
            }
        };
        self.subject.links.iter().zip(&mut self.last.links).map(sample).collect()
    }
}
