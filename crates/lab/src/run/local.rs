//! Local traffic of the relays: turns sections of the scenario into flows between a relay and its correspondent.

use core::net::SocketAddr;

use cooperation::agent::Role;
use simulator::App;
use simulator::traffic::video::{FrameSizes, Screen, VideoFlow, VideoPlayer, VideoSource};
use simulator::traffic::{
    Background, DatagramSizes, Demand, Latencies, Octets, OnOff, PacedSource, ShortFlowSource, ShortFlows, Slope,
    TcpFlow, TcpSink, UdpFlow, UdpSink, UdpSource,
};
use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use units::{Duration, Instant, Prng, Rate};

use super::KernelFlow;
use super::hosts::{Counter, EngineHost, LabHost, host};
use crate::measure::results::{LatencyResults, VideoResults, Watched};
use crate::scenario::{self, Addresses, LocalKind, LocalTraffic, Relay, Scenario, drawing, value_of};

/// First port of a relay's flows.
const PORT_FIRST: u16 = 20_000;
/// How much of its demand a TCP source keeps waiting before it drops demand: as much as a short playback buffer holds.
const BACKLOG: Duration = Duration::from_millis(500);
/// Minimum of this backlog, which lets slow sources fill segments.
const BACKLOG_BYTES_MIN: u64 = 16_000;

/// Demand and arrivals of a relay's own traffic.
#[derive(Default)]
pub(super) struct LocalCounts {
    flows: Vec<Flow>,
    /// What its owner saw until the relay left; `None` if it is there.
    until_left: Option<Seen>,
}

/// What the owner of a relay saw.
struct Seen {
    video: Option<VideoResults>,
    flows: Option<LatencyResults>,
}

/// A flow from the view of measurement.
struct Flow {
    /// Payload octets demanded; `None` if it takes all it can get.
    demanded: Option<Octets>,
    /// Payload octets that arrived.
    received: Octets,
    /// Headers of its packets over their payload.
    header_ratio: f64,
    /// What its viewer sees.
    view: Option<View>,
    /// Durations of short flows.
    latencies: Option<Latencies>,
}

/// A viewer's screen, and the time in which there is something to see.
struct View {
    screen: Screen,
    from: Instant,
    until: Instant,
}

/// Octets of one flow.
pub(super) struct FlowCount {
    /// Demanded octets; `None` if it takes all it can get.
    pub demanded_bytes: Option<u64>,
    /// Octets that arrived.
    pub received_bytes: u64,
}

impl LocalCounts {
    /// Ends the counts: the relay leaves at `now`, and its owner with it. The other ends of the flows stay and continue
    /// to send, but nobody asks for that any more.
    pub fn leave(&mut self, now: Instant) {
        self.until_left = Some(Seen { video: self.video(now, now), flows: self.flows(now) });
        for flow in &mut self.flows {
            flow.received = flow.received.detached();
            flow.demanded = flow.demanded.as_ref().map(Octets::detached);
        }
    }

    /// Payload octets demanded so far; `None` if a flow takes all it can get.
    pub fn demanded_bytes(&self) -> Option<u64> {
        self.flows.iter().map(|flow| flow.demanded.as_ref().map(Octets::get)).sum()
    }

    /// Payload octets that have arrived, for each flow that takes all it can get.
    pub fn greedy_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.flows.iter().filter(|flow| flow.demanded.is_none()).map(|flow| flow.received.get())
    }

    /// What all viewers together saw until `now`; `None` if there are no viewers. They could have watched until `until`.
    pub fn video(&self, now: Instant, until: Instant) -> Option<VideoResults> {
        if let Some(seen) = &self.until_left {
            return seen.video;
        }
        let watched =
            |view: &View| Watched { stats: view.screen.stats(now), from: view.from, until: view.until.min(until) };
        VideoResults::of(self.flows.iter().filter_map(|flow| flow.view.as_ref()).map(watched))
    }

    /// Durations of short flows until `now`; `None` if there are none.
    pub fn flows(&self, now: Instant) -> Option<LatencyResults> {
        if let Some(seen) = &self.until_left {
            return seen.flows;
        }
        LatencyResults::of(self.flows.iter().filter_map(|flow| flow.latencies.as_ref()), now)
    }

    /// Payload octets that have arrived.
    pub fn received_bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.received.get()).sum()
    }

    /// Approximate octets of the packets of each flow.
    pub fn flows_in_packets(&self) -> Vec<FlowCount> {
        let count = |flow: &Flow| {
            let packets = |octets: &Octets| (octets.get() as f64 * (1.0 + flow.header_ratio)) as u64;
            FlowCount { demanded_bytes: flow.demanded.as_ref().map(packets), received_bytes: packets(&flow.received) }
        };
        self.flows.iter().map(count).collect()
    }

    /// Approximate octets of the packets demanded; for flows that take all they can get, of those that arrived.
    pub fn taken_packet_bytes(&self) -> u64 {
        let taken = |flow: FlowCount| flow.demanded_bytes.unwrap_or(flow.received_bytes);
        self.flows_in_packets().into_iter().map(taken).sum()
    }

    /// Approximate octets of the packets that arrived.
    pub fn received_packet_bytes(&self) -> u64 {
        let bytes = |flow: &Flow| flow.received.get() as f64 * (1.0 + flow.header_ratio);
        self.flows.iter().map(bytes).sum::<f64>() as u64
    }
}

/// The hosts at both ends of the traffic of a relay's owner, and its counts.
pub(super) struct LocalHosts {
    /// The host that sends the traffic, unless all of it comes from `feeds`.
    pub sources: Option<EngineHost>,
    /// Sources that the cell's own wire carries.
    pub feeds: Vec<UdpSource>,
    /// The relay.
    pub sinks: LabHost,
    pub counts: LocalCounts,
}

/// Returns whether datagrams of correspondents can arrive over the cell's own wire, because nothing lies between.
pub(super) fn feeds_cell(scenario: &Scenario) -> bool {
    scenario.cell.is_some() && scenario.bottleneck.is_none()
}

/// The controllers of the flows of relay `index`, if all of its own traffic is greedy TCP connections that last for the
/// whole run.
pub fn greedy_controllers(scenario: &Scenario, index: usize) -> Option<Vec<String>> {
    let local = &scenario.relays[index].local;
    let is_greedy = |local: &LocalTraffic| local.is_greedy() && local.start.is_none() && local.stop.is_none();
    let flows = local.iter().flat_map(|local| (0..local.count).map(move |_| controller(local).to_string()));
    (!local.is_empty() && local.iter().all(is_greedy)).then(|| flows.collect())
}

/// The congestion controller of a TCP flow.
fn controller(local: &LocalTraffic) -> ControllerSpec {
    local.congestion.as_ref().map_or_else(|| ControllerSpec::named("newreno"), |spec| spec.0.clone())
}

/// The flows of relay `index`, where kernels are its correspondent and the relay; `counts` counts them.
pub(super) fn kernel_flows(
    scenario: &Scenario,
    index: usize,
    addresses: &Addresses,
    counts: &LocalCounts,
) -> Vec<KernelFlow> {
    let controllers = greedy_controllers(scenario, index).unwrap_or_default();
    let flows = controllers.into_iter().zip(&counts.flows).zip(PORT_FIRST..);
    let flow = |((controller, flow), port): ((String, &Flow), u16)| KernelFlow {
        from: SocketAddr::new(addresses.correspondents[index], port),
        to: SocketAddr::new(addresses.relays[index], port),
        controller,
        received: flow.received.clone(),
    };
    flows.map(flow).collect()
}

/// Creates the host of relay `index`, with agent `role`, and the host that sends to it. If `feeds_cell`, sources of
/// datagrams are not part of that host.
pub(super) fn hosts(
    scenario: &Scenario,
    index: usize,
    addresses: &Addresses,
    role: Role,
    feeds_cell: bool,
) -> LocalHosts {
    let relay = &scenario.relays[index];
    let (at, from) = (addresses.relays[index], addresses.correspondents[index]);
    let is_counter = matches!(role, Role::Alone) && relay.local.iter().all(|local| local.kind.is_datagrams());
    let sinks = match is_counter {
        true => LabHost::Counter(Counter::default()),
        false => LabHost::Engine(host(scenario, &format!("relay {}", relay.name), &[at], role)),
    };
    let mut hosts = Hosts { sources: None, feeds: Vec::new(), sinks, flows: Vec::new() };
    let sections = relay.local.iter().flat_map(|local| (0..local.count).map(move |_| local));
    for (local, port) in sections.zip(PORT_FIRST..) {
        let prng = Prng::fork(scenario.seed, &format!("local flow {port} of {}", relay.name));
        let (from, to) = (SocketAddr::new(from, port), SocketAddr::new(at, port));
        hosts = Adding { scenario, relay, local, from, to, prng, feeds_cell }.add_to(hosts);
    }
    let Hosts { sources, feeds, sinks, flows } = hosts;
    LocalHosts { sources, feeds, sinks, counts: LocalCounts { flows, until_left: None } }
}

/// A flow that is about to be added.
struct Adding<'a> {
    scenario: &'a Scenario,
    relay: &'a Relay,
    local: &'a LocalTraffic,
    from: SocketAddr,
    to: SocketAddr,
    prng: Prng,
    feeds_cell: bool,
}

/// The hosts at both ends of a relay's traffic, and its counts.
struct Hosts {
    sources: Option<EngineHost>,
    feeds: Vec<UdpSource>,
    sinks: LabHost,
    flows: Vec<Flow>,
}

impl Hosts {
    /// Adds a flow whose sink is an application of the relay.
    fn received_by(mut self, sink: impl App + 'static, flow: Flow) -> Self {
        let LabHost::Engine(engine) = self.sinks else { unreachable!("a counter has flows of datagrams only") };
        self.flows.push(flow);
        Self { sinks: LabHost::Engine(engine.app(sink)), ..self }
    }

    /// Adds a flow of datagrams.
    fn counted_by(mut self, sink: UdpSink, flow: Flow) -> Self {
        let LabHost::Counter(counter) = &mut self.sinks else { return self.received_by(sink, flow) };
        counter.push(sink);
        self.flows.push(flow);
        self
    }
}

impl Adding<'_> {
    fn add_to(mut self, hosts: Hosts) -> Hosts {
        let demand = demand(self.local, &mut self.prng);
        match self.local.kind {
            LocalKind::Udp | LocalKind::Poisson => self.udp(hosts, demand.unwrap_or_else(nothing), None),
            LocalKind::Tcp => self.tcp(hosts, demand, None),
            LocalKind::Vbr => {
                let Background { tcp, udp } = Background::new(demand.unwrap_or_else(nothing));
                let (tcp_mix, udp_mix) = (self.fork(), self.fork());
                let hosts = self.tcp(hosts, Some(tcp), Some(tcp_mix));
                self.udp(hosts, udp, Some(udp_mix))
            }
            LocalKind::ShortFlows => self.short_flows(hosts),
            LocalKind::Video => self.video(hosts),
        }
    }

    /// Adds a source that is an application of the correspondent.
    fn sent_by(&self, hosts: Hosts, source: impl App + 'static) -> Hosts {
        let correspondent = || {
            let name = format!("correspondent of {}", self.relay.name);
            host(self.scenario, &name, &[self.from.ip()], Role::Alone)
        };
        Hosts { sources: Some(hosts.sources.unwrap_or_else(correspondent).app(source)), ..hosts }
    }

    fn fork(&mut self) -> Prng {
        Prng::new(self.prng.below(u64::MAX))
    }

    fn udp(&mut self, mut hosts: Hosts, demand: Demand, mix: Option<Prng>) -> Hosts {
        let sizes = mix.map_or(DatagramSizes::Constant(self.local.datagram.0 as u16), DatagramSizes::Mix);
        let flow = UdpFlow { local: self.from, remote: self.to, demand, sizes, stop: stop(self.local) };
        let (source, sink) = (UdpSource::new(flow), UdpSink::new(self.to));
        let source = match self.local.kind {
            LocalKind::Poisson => source.poisson(self.fork()),
            _ => source,
        };
        let flow = self.flow(Some(source.demanded()), sink.received());
        if !self.feeds_cell {
            return self.sent_by(hosts, source).counted_by(sink, flow);
        }
        hosts.feeds.push(source);
        hosts.counted_by(sink, flow)
    }

    fn tcp(&self, hosts: Hosts, demand: Option<Demand>, mix: Option<Prng>) -> Hosts {
        let mut config = self.config();
        if mix.is_some() {
            // Every write becomes a packet of its own size, without options.
            (config.nagle, config.timestamps) = (false, false);
        }
        let rate = self.local.rate.as_ref().map(value_of);
        let backlog_bytes = rate.map_or(0, |rate| rate.bytes_in(BACKLOG)).max(BACKLOG_BYTES_MIN);
        let limited = demand.is_some();
        let source = PacedSource::new(TcpFlow {
            local: self.from,
            remote: self.to,
            config: config.clone(),
            demand,
            backlog_bytes,
            start: start(self.local),
            stop: stop(self.local),
        });
        let source = match mix {
            Some(prng) => source.mixed(prng),
            None => source,
        };
        let sink = TcpSink::new(self.to, config);
        let flow = self.flow(limited.then(|| source.demanded()), sink.received());
        self.sent_by(hosts, source).received_by(sink, flow)
    }

    fn short_flows(&mut self, hosts: Hosts) -> Hosts {
        let source = ShortFlowSource::new(ShortFlows {
            local: SocketAddr::new(self.from.ip(), 0),
            remote: self.to,
            config: self.config(),
            sizes_bytes: drawing(self.local.sizes.as_ref()),
            pauses_s: drawing(self.local.pauses.as_ref()),
            prng: self.fork(),
            start: start(self.local),
            stop: stop(self.local),
        });
        let sink = TcpSink::new(self.to, self.config());
        let flow = self.flow(Some(source.demanded()), sink.received());
        let flow = Flow { latencies: Some(source.latencies()), ..flow };
        self.sent_by(hosts, source).received_by(sink, flow)
    }

    fn video(&mut self, hosts: Hosts) -> Hosts {
        let (rate, video) = (self.local.rate.as_ref().map(value_of), self.local.video.unwrap_or_default());
        let frames = FrameSizes::new(video.format(rate.unwrap_or(Rate::ZERO)), self.prng.below(u64::MAX));
        let source = VideoSource::new(VideoFlow {
            local: self.from,
            remote: self.to,
            config: self.config(),
            frames: frames.clone(),
            start: start(self.local),
            stop: stop(self.local),
        });
        let sink = VideoPlayer::new(self.to, self.config(), frames, video.playback());
        let flow = self.flow(Some(source.demanded()), sink.received());
        let leaves = self.relay.leaves.map_or(Instant::FAR_FUTURE, |leaves| Instant::ZERO + leaves.0);
        let view = View { screen: sink.screen(), from: start(self.local), until: leaves };
        let flow = Flow { view: Some(view), ..flow };
        self.sent_by(hosts, source).received_by(sink, flow)
    }

    fn flow(&self, demanded: Option<Octets>, received: Octets) -> Flow {
        let header_ratio = self.scenario.header_ratio(self.local);
        Flow { demanded, received, header_ratio, view: None, latencies: None }
    }

    fn config(&self) -> ConnectionConfig {
        let congestion = controller(self.local);
        ConnectionConfig { mptcp: false, congestion, ..self.scenario.connection.to_config(1) }
    }
}

fn nothing() -> Demand {
    Demand::constant(Rate::ZERO, Instant::ZERO)
}

fn start(local: &LocalTraffic) -> Instant {
    Instant::ZERO + local.start.map_or(Duration::ZERO, |start| start.0)
}

fn stop(local: &LocalTraffic) -> Instant {
    local.stop.map_or(Instant::FAR_FUTURE, |stop| Instant::ZERO + stop.0)
}

/// The demand of a flow; `None` if it takes all it can get.
fn demand(local: &LocalTraffic, prng: &mut Prng) -> Option<Demand> {
    let mut rate = value_of(local.rate.as_ref()?);
    // Flows of the same rate that begin at the same instant would collide for ever.
    let phase = rate.time_to_send(local.datagram.0).mul_div(prng.below(1 << 16), 1 << 16);
    // However rare its packets are at first, the first change of its rate happens on time.
    let first_change = local.changes.iter().map(|change| Instant::ZERO + change.at).min();
    let phase = first_change.map_or(phase, |at| phase.min(at.saturating_since(start(local))));
    // A Poisson process begins anew at every moment, so it needs none.
    let phase = if local.kind == LocalKind::Poisson { Duration::ZERO } else { phase };
    let base = rate;
    let mut slopes = Vec::new();
    for change in &local.changes {
        rate = after(rate, change);
        slopes.push(Slope { begin: Instant::ZERO + change.at, lasts: change.lasts(), to: rate });
    }
    let demand = Demand::slopes(base, start(local) + phase, &slopes);
    let own = Prng::new(prng.below(u64::MAX));
    Some(match (local.on_off, local.redrawn_every()) {
        (Some(scenario::OnOff { on, off }), _) => demand.on_off(OnOff { on, off }, own),
        (None, Some(every)) => demand.redrawn(every, own),
        (None, None) => demand,
    })
}

fn after(rate: Rate, change: &scenario::Change) -> Rate {
    let bps = |rate: Option<units::text::Text<Rate>>| rate.map_or(0, |rate| rate.0.as_bps());
    match change.to {
        Some(to) => to.0,
        None => Rate::from_bps(rate.as_bps().saturating_add(bps(change.raise)).saturating_sub(bps(change.lower))),
    }
}
