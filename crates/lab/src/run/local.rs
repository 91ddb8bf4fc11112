//! Local traffic of the relays: sections of the scenario to flows between a relay and its correspondent.

use core::net::SocketAddr;

use simulator::traffic::{
    Change, DatagramSizes, Demand, Octets, OnOff, PacedSource, TcpFlow, TcpSink, UdpFlow, UdpSink, UdpSource,
};
use simulator::{EndpointHost, Simulation};
use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use units::{Duration, Instant, Prng, Rate};

use super::stage;
use super::topology::LocalPorts;
use crate::scenario::{self, Addresses, LocalKind, LocalTraffic, Scenario, value_of};

/// First port of a relay's flows.
const PORT_FIRST: u16 = 20_000;
/// How far a TCP source may fall behind its demand before it gives up what is oldest: as much as a short playback buffer.
const BACKLOG: Duration = Duration::from_millis(500);
/// The least it may fall behind, so that slow sources still fill segments.
const BACKLOG_BYTES_MIN: u64 = 16_000;

/// What was asked for and what arrived of a relay's own traffic.
#[derive(Default)]
pub(super) struct LocalCounts(Vec<(Octets, Octets)>);

impl LocalCounts {
    /// Payload octets asked for so far.
    pub fn demanded_bytes(&self) -> u64 {
        self.0.iter().map(|(demanded, _)| demanded.get()).sum()
    }

    /// Payload octets that arrived so far.
    pub fn received_bytes(&self) -> u64 {
        self.0.iter().map(|(_, received)| received.get()).sum()
    }
}

/// Attaches the hosts between which the traffic of relay `index` goes.
pub(super) fn attach(
    simulation: &mut Simulation<EndpointHost>,
    scenario: &Scenario,
    index: usize,
    ports: LocalPorts,
    addresses: &Addresses,
) -> LocalCounts {
    let relay = &scenario.relays[index];
    let (at, from) = (addresses.relays[index], addresses.correspondents[index]);
    let mut sinks = stage::host(scenario, &format!("relay {}", relay.name), &[at]);
    let mut sources = stage::host(scenario, &format!("correspondent of {}", relay.name), &[from]);
    let mut counts = Vec::new();
    let flows = relay.local.iter().flat_map(|local| (0..local.count).map(move |_| local));
    for (local, port) in flows.zip(PORT_FIRST..) {
        let ends = Ends { from: SocketAddr::new(from, port), to: SocketAddr::new(at, port) };
        let prng = Prng::fork(scenario.seed, &format!("local flow {port} of {}", relay.name));
        let count;
        (sources, sinks, count) = match local.kind {
            LocalKind::Tcp => add_tcp(sources, sinks, scenario, local, ends, prng),
            LocalKind::Udp | LocalKind::Vbr => add_udp(sources, sinks, local, ends, prng),
        };
        counts.push(count);
    }
    simulation.attach(ports.relay, sinks);
    simulation.attach(ports.correspondent, sources);
    LocalCounts(counts)
}

struct Ends {
    from: SocketAddr,
    to: SocketAddr,
}

type Added = (EndpointHost, EndpointHost, (Octets, Octets));

fn add_udp(sources: EndpointHost, sinks: EndpointHost, local: &LocalTraffic, ends: Ends, mut prng: Prng) -> Added {
    let demand = demand(local, &mut prng).unwrap_or_else(|| Demand::constant(Rate::ZERO, Instant::ZERO));
    let sizes = match local.kind {
        LocalKind::Vbr => DatagramSizes::Mix(prng),
        LocalKind::Udp | LocalKind::Tcp => DatagramSizes::Constant(local.datagram.0 as u16),
    };
    let flow = UdpFlow { local: ends.from, remote: ends.to, demand, sizes, stop: stop(local) };
    let (source, sink) = (UdpSource::new(flow), UdpSink::new(ends.to));
    let count = (source.demanded(), sink.received());
    (sources.app(source), sinks.app(sink), count)
}

fn add_tcp(
    sources: EndpointHost,
    sinks: EndpointHost,
    scenario: &Scenario,
    local: &LocalTraffic,
    ends: Ends,
    mut prng: Prng,
) -> Added {
    let congestion = local.congestion.as_ref().map_or_else(|| ControllerSpec::named("newreno"), |spec| spec.0.clone());
    let config = ConnectionConfig { mptcp: false, congestion, ..scenario.connection.to_config(1) };
    let rate = local.rate.as_ref().map(value_of);
    let backlog_bytes = rate.map_or(0, |rate| rate.bytes_in(BACKLOG)).max(BACKLOG_BYTES_MIN);
    let flow = TcpFlow {
        local: ends.from,
        remote: ends.to,
        config: config.clone(),
        demand: demand(local, &mut prng),
        backlog_bytes,
        start: start(local),
        stop: stop(local),
    };
    let (source, sink) = (PacedSource::new(flow), TcpSink::new(ends.to, config));
    let count = (source.demanded(), sink.received());
    (sources.app(source), sinks.app(sink), count)
}

fn start(local: &LocalTraffic) -> Instant {
    Instant::ZERO + local.start.map_or(Duration::ZERO, |start| start.0)
}

fn stop(local: &LocalTraffic) -> Instant {
    local.stop.map_or(Instant::FAR_FUTURE, |stop| Instant::ZERO + stop.0)
}

/// The demand of a flow; `None` for all it can get.
fn demand(local: &LocalTraffic, prng: &mut Prng) -> Option<Demand> {
    let mut rate = value_of(local.rate.as_ref()?);
    // Flows of one rate that began at one instant would collide for ever.
    let phase = rate.time_to_send(local.datagram.0).mul_div(prng.below(1 << 16), 1 << 16);
    let mut changes = vec![Change { at: start(local) + phase, rate }];
    for change in &local.changes {
        rate = after(rate, change);
        changes.push(Change { at: Instant::ZERO + change.at, rate });
    }
    let demand = Demand::steps(changes);
    let own = Prng::new(prng.below(u64::MAX));
    Some(match local.on_off {
        Some(scenario::OnOff { on, off }) => demand.on_off(OnOff { on, off }, own),
        None => demand,
    })
}

fn after(rate: Rate, change: &scenario::Change) -> Rate {
    let bps = |rate: Option<units::text::Text<Rate>>| rate.map_or(0, |rate| rate.0.as_bps());
    match change.to {
        Some(to) => to.0,
        None => Rate::from_bps((rate.as_bps() + bps(change.raise)).saturating_sub(bps(change.lower))),
    }
}
