//! A source, and a destination that loads a file from it over relays with agents, each with its own cellular link.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeSet;

use cooperation::agent::Role;
use cooperation::agent::control::{AnswererSettings, ControlSettings};
use cooperation::agent::destination::{
    DestinationAgent, DestinationSettings, KnownRelay, RangesSettings, SelectionSettings,
};
use cooperation::agent::relay::{
    LendingLimits, Measurement, OfferSettings, PassageSettings, RelayAgent, RelaySettings,
};
use cooperation::channel::Identity;
use cooperation::forwarding::hold_queue::HoldLimits;
use cooperation::forwarding::range_keeper::RangeSettings;
use cooperation::relay_selection::manager::{ManagerSettings, RelayManager};
use cooperation::relay_selection::monitor::{Configured, LinkMonitor};
use cooperation::relay_selection::{self, Goal, Mode, RelayId, SelectorSettings, SelectorSpec};
use host::Report;
use network::{Link, Network, Node, PortId, Prefix, Queue, Route, VertexId};
use simulator::app::Transfer;
use simulator::{EndpointHost, HostId, Simulation, Source};
use transport::path_manager::LocalAddress;
use transport::relay::RelayConfig;
use transport::{ConnectionConfig, ConnectionStats, Endpoint, EndpointConfig};
use units::{Duration, Instant, Prng, Rate};

use super::clocked::{Clock, Clocked};

pub const CONTROL_PORT: u16 = 40_001;
/// Interval of the relays' offers.
pub const F: Duration = Duration::from_secs(2);
/// Rate of a relay's cellular link.
const CELLULAR: Rate = Rate::from_mbps(2);
/// H.
pub const RANGE_BYTES: u64 = 60_000;
/// MAX_BF_SIZE.
pub const HOLD_BYTES: u64 = 120_000;
pub const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
const DESTINATION_KEY: u8 = 200;

/// The wishes of a test.
pub struct Wish {
    pub relays: usize,
    /// Size of the file.
    pub bytes: u64,
    /// Whether relays splice subflows.
    pub splices: bool,
    /// Bit rate for which relays are selected; `None` uses all of them.
    pub target: Option<Rate>,
    /// From where the destination loads the file first: the source, or another server.
    pub first_from: SocketAddr,
    /// When the destination begins to load the file a second time, over another connection, from the source.
    pub again_at: Option<Instant>,
    /// Send buffer of the destination's control connections.
    pub control_buffer_bytes: u64,
    /// Node between a relay and the destination, in each direction.
    pub wifi: fn(usize) -> Option<Box<dyn Node>>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            relays: 3,
            bytes: 12_000_000,
            splices: false,
            target: None,
            first_from: SOURCE,
            again_at: None,
            control_buffer_bytes: 16 << 10,
            wifi: |_| None,
        }
    }
}

pub struct World {
    pub simulation: Simulation<Clocked>,
    pub destination: HostId,
    pub relays: Vec<(PortId, HostId)>,
    /// Hosts that have crashed.
    dead: BTreeSet<HostId>,
    wish: Wish,
    /// Port of the destination.
    sink: PortId,
}

/// Returns the destination's address on a relay's path: one number for each life of its Wi-Fi.
pub fn path(relay: usize, life: u8) -> IpAddr {
    Ipv4Addr::new(10, 1, relay as u8, 100 + life).into()
}

/// Returns a relay's own address, likewise.
pub fn control(relay: usize, life: u8) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 1, relay as u8, life).into(), CONTROL_PORT)
}

pub fn identity(number: u8) -> Identity {
    Identity::from_secret([number; 32])
}

/// Returns the identity of relay `relay`.
pub fn relay_identity(relay: usize) -> Identity {
    identity(relay as u8 + 1)
}

/// A relay at its start.
pub struct Birth {
    pub address: SocketAddr,
    pub identity: Identity,
    pub clock: Clock,
    pub seed: u8,
}

impl Birth {
    /// Returns the relay as the destination knows it from the start.
    pub fn first(relay: usize) -> Self {
        Self { address: control(relay, 1), identity: relay_identity(relay), clock: Clock::TRUE, seed: relay as u8 }
    }
}

fn endpoint(seed: u64, addresses: impl IntoIterator<Item = IpAddr>) -> Endpoint {
    let local_addresses = addresses.into_iter().map(|ip| LocalAddress { ip, backup: false }).collect();
    Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, seed)
}

fn relay_host(relay: usize, birth: Birth, splices: bool) -> Clocked {
    let monitor = LinkMonitor::new(RelayId(relay as u16), Box::new(Configured(CELLULAR)), Rate::ZERO);
    let destination = vec![path(relay, 1)];
    let limits = HoldLimits { size_bytes: HOLD_BYTES, stay: Duration::from_secs(2) };
    let passage = match splices {
        true => PassageSettings::Spliced { destination, limits, relay: Box::new(RelayConfig::default()) },
        false => PassageSettings::Routed { destination, limits },
    };
    let settings = RelaySettings {
        control: AnswererSettings {
            address: birth.address,
            identity: birth.identity,
            serves: vec![identity(DESTINATION_KEY).public()],
            seed: [birth.seed; 32],
            connections: ControlSettings::new(1500),
        },
        offers: Some(OfferSettings { monitor, every: F, exaggerates: 1.0 }),
        load: None,
        lends: LendingLimits::default(),
        passage,
        reports_delay_every: None,
    };
    let agent = Role::Relay(Box::new(RelayAgent::new(settings).expect("the defaults are known")));
    let host = EndpointHost::with_agent(endpoint(1000 + u64::from(birth.seed), []), agent);
    Clocked { host, clock: birth.clock }
}

fn selection(target: Rate) -> SelectionSettings {
    let selector = SelectorSettings { epsilon: 0.1, mode: Mode::Build };
    let selector = relay_selection::build(&SelectorSpec::named("ssrs"), selector).expect("there is such a selector");
    let manager = RelayManager::new(ManagerSettings::build(F), Goal { target, tolerance: 0.1 }, selector, Prng::new(1));
    SelectionSettings { manager, period: F, prompt: false, plays_at: target }
}

fn destination_host(wish: &Wish, seed: u8) -> Clocked {
    let known = |relay| KnownRelay {
        path: path(relay, 1),
        control: Some((control(relay, 1), relay_identity(relay).public())),
        calls_from: None,
    };
    let range = RangeSettings { capacity_bytes: 1_000_000, ..RangeSettings::new(RANGE_BYTES) };
    let mut control_settings = ControlSettings::new(1500);
    control_settings.tcp.send_buffer_bytes = wish.control_buffer_bytes;
    let settings = DestinationSettings {
        identity: identity(DESTINATION_KEY),
        seed: [seed; 32],
        control: control_settings,
        relays: (0..wish.relays).map(known).collect(),
        source: SOURCE,
        source_agent: None,
        first: wish.target.is_none().then_some(RelayId(0)),
        relays_splice: wish.splices,
        selection: wish.target.map(selection),
        ranges: Some(RangesSettings { range, hold_bytes: HOLD_BYTES, by_rate: false }),
        watch: None,
    };
    let agent = Role::Destination(Box::new(DestinationAgent::new(settings)));
    let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let load = |from| Transfer::connect(any, from, tcp(wish)).expecting(Source::pattern(wish.bytes));
    let addresses = (0..wish.relays).map(|relay| path(relay, 1));
    let host = EndpointHost::with_agent(endpoint(seed.into(), addresses), agent).app(load(wish.first_from));
    wish.again_at.into_iter().fold(host, |host, start| host.app(load(SOURCE).at(start))).into()
}

fn tcp(wish: &Wish) -> ConnectionConfig {
    let path_manager = if wish.target.is_some() { "manual" } else { "full-mesh" };
    ConnectionConfig {
        path_manager: path_manager.into(),
        receive_buffer_bytes: 1_000_000,
        ..ConnectionConfig::default()
    }
}

fn link(rate: Rate, delay_ms: u64) -> Link {
    Link::new(rate, Duration::from_millis(delay_ms)).queue(Queue::packets(100))
}

/// Adds the wished node behind a link; returns the vertex from which packets leave.
fn behind(network: &mut Network, link: VertexId, node: Option<Box<dyn Node>>) -> VertexId {
    let Some(node) = node else { return link };
    let node = network.add_node(node);
    network.connect(link, node);
    node
}

fn add_relay(network: &mut Network, wish: &Wish, relay: usize, [core, out]: [VertexId; 2], sink: PortId) -> PortId {
    let (port, router) = (network.add_port(), network.add_router());
    let paths = Prefix::new(path(relay, 1), 24);
    let [down, up] = [link(CELLULAR, 20), link(CELLULAR, 20)].map(|link| network.add_link(link));
    let [wifi_down, wifi_up] =
        [link(Rate::from_mbps(20), 5), link(Rate::from_mbps(20), 5)].map(|link| network.add_link(link));
    network.add_route(core, Route { from: None, to: Some(paths), via: down });
    network.connect(down, port.vertex());
    network.connect(up, core);
    network.connect(port.vertex(), router);
    network.add_host_route(router, SOURCE.ip(), up);
    network.add_route(router, Route { from: None, to: Some(paths), via: wifi_down });
    let last = behind(network, wifi_down, (wish.wifi)(relay));
    network.connect(last, sink.vertex());
    network.add_route(out, Route { from: Some(paths), to: None, via: wifi_up });
    let last = behind(network, wifi_up, (wish.wifi)(relay));
    network.connect(last, port.vertex());
    port
}

impl World {
    pub fn new(wish: Wish) -> Self {
        Self::seeded(wish, 1)
    }

    /// Creates the world with another seed of the source, which draws other data sequence numbers.
    pub fn seeded(wish: Wish, seed: u64) -> Self {
        let mut network = Network::new(1);
        let (source, sink) = (network.add_port(), network.add_port());
        let routers = [network.add_router(), network.add_router()];
        network.connect(source.vertex(), routers[0]);
        network.connect(sink.vertex(), routers[1]);
        network.add_host_route(routers[0], SOURCE.ip(), source.vertex());
        let ports = (0..wish.relays).map(|relay| add_relay(&mut network, &wish, relay, routers, sink));
        let ports: Vec<PortId> = ports.collect();
        let mut simulation = Simulation::new(network);
        let servers: BTreeSet<SocketAddr> = [SOURCE, wish.first_from].into();
        let serve = |host: EndpointHost<Role>, address| {
            host.app(Transfer::listen(address, tcp(&wish)).sending(Source::pattern(wish.bytes)))
        };
        let host = EndpointHost::with_agent(endpoint(1 + seed, []), Role::Alone);
        simulation.attach(source, servers.into_iter().fold(host, serve).into());
        let destination = simulation.attach(sink, destination_host(&wish, 1));
        let mut attach = |(relay, port): (usize, PortId)| {
            (port, simulation.attach(port, relay_host(relay, Birth::first(relay), wish.splices)))
        };
        let relays = ports.into_iter().enumerate().map(&mut attach).collect();
        simulation.check();
        Self { simulation, destination, relays, dead: BTreeSet::new(), wish, sink }
    }

    /// Lets time pass; relays read their counters when they want to.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let alive: Vec<HostId> =
                self.relays.iter().map(|(_, id)| *id).filter(|id| !self.dead.contains(id)).collect();
            let next = |id: &HostId| {
                let Clocked { host, clock } = self.simulation.host(*id);
                host.agent().relay().map_or(Instant::FAR_FUTURE, |agent| clock.when(agent.next_measurement()))
            };
            let next = alive.iter().map(next).min().unwrap_or(Instant::FAR_FUTURE);
            self.simulation.run_until(next.min(end));
            self.assert_bounded();
            if next > end {
                return;
            }
            for id in alive {
                self.simulation.with_host(id, |Clocked { host, clock }, now| {
                    host.with_agent_mut(|role, endpoint| measure(role, endpoint, clock.shows(now)));
                });
            }
        }
    }

    /// Asserts that hosts hold at most what their settings allow.
    fn assert_bounded(&self) {
        let relays = self.relays.len();
        let footprint = self.simulation.host(self.destination).host.endpoint.footprint();
        // One channel to each relay, and the applications' connections.
        let loads = 1 + usize::from(self.wish.again_at.is_some());
        assert!(footprint.connections <= relays + loads, "{footprint:?}");
        for (_, id) in &self.relays {
            let host = &self.simulation.host(*id).host;
            let connections = host.endpoint.footprint().connections;
            // The relay may not have noticed yet that an earlier channel of the same caller is over.
            assert!(connections <= ControlSettings::new(1500).channels_max, "{connections} at a relay");
            let held = host.agent().relay().and_then(RelayAgent::held_bytes).unwrap_or(0);
            assert!(held <= HOLD_BYTES, "{held} octets held");
        }
    }

    /// Crashes the relay without notice.
    pub fn crash(&mut self, relay: usize) {
        let id = self.relays[relay].1;
        self.simulation.with_host(id, |host, _| host.host.switch_off());
        self.dead.insert(id);
    }

    /// Puts another host in the relay's place.
    pub fn revive(&mut self, relay: usize, birth: Birth) {
        self.crash(relay);
        let port = self.relays[relay].0;
        self.relays[relay].1 = self.simulation.attach(port, relay_host(relay, birth, self.wish.splices));
    }

    /// Crashes the destination; another host with its key and its addresses takes its place, and loads the file anew.
    pub fn restart_destination(&mut self, seed: u8) {
        self.simulation.with_host(self.destination, |host, _| host.host.switch_off());
        self.destination = self.simulation.attach(self.sink, destination_host(&self.wish, seed));
    }

    /// Moves the relay's agent to another address, and runs `app` beside it; call this before the run begins.
    pub fn add_app(&mut self, relay: usize, app: impl host::App + 'static) {
        let address = SocketAddr::new(control(relay, 1).ip(), CONTROL_PORT + 1);
        self.crash(relay);
        let host = relay_host(relay, Birth { address, ..Birth::first(relay) }, self.wish.splices);
        let host = Clocked { host: host.host.app(app), clock: Clock::TRUE };
        self.relays[relay].1 = self.simulation.attach(self.relays[relay].0, host);
    }

    /// Calls `act` with the destination's agent.
    pub fn with_destination(&mut self, act: impl FnOnce(&mut DestinationAgent, &mut Endpoint, Instant)) {
        self.simulation.with_host(self.destination, |host, now| {
            host.host.with_agent_mut(|role, endpoint| {
                act(role.destination_mut().expect("it is the destination"), endpoint, now);
            });
        });
    }

    /// Returns the reports of the destination's applications.
    pub fn reports(&self) -> Vec<Report> {
        self.simulation.host(self.destination).host.reports()
    }

    /// Returns the report of the destination's application.
    pub fn report(&self) -> Report {
        self.reports().remove(0)
    }

    /// Returns the destination's addresses with a subflow that carries new data.
    pub fn carrying(&self) -> Vec<IpAddr> {
        let subflows = self.stats().subflows;
        let regular = subflows
            .iter()
            .filter(|subflow| subflow.established_at.is_some() && subflow.closed_at.is_none() && !subflow.backup);
        regular.map(|subflow| subflow.local.ip()).collect()
    }

    /// Returns the statistics of the application's connection at the destination.
    pub fn stats(&self) -> ConnectionStats {
        self.stats_of(0)
    }

    /// The same for the destination's application `app`.
    pub fn stats_of(&self, app: usize) -> ConnectionStats {
        let endpoint = &self.simulation.host(self.destination).host.endpoint;
        endpoint.stats(self.reports()[app].connections[0]).expect("it has begun")
    }

    /// Returns the octets that arrived over one of the destination's addresses.
    pub fn arrived_at(&self, address: IpAddr) -> u64 {
        let subflows = self.stats().subflows;
        subflows.iter().filter(|subflow| subflow.local.ip() == address).map(|subflow| subflow.received_bytes).sum()
    }

    /// Returns the channels that the destination, and relay `relay` in its present life, opened, and those that they
    /// refused.
    pub fn opened_and_refused(&self, relay: usize) -> [(u64, u64); 2] {
        [self.destination, self.relays[relay].1].map(|id| {
            let stats = self.simulation.host(id).host.agent().control_stats();
            (stats.opened, stats.refused)
        })
    }

    /// Returns the octets that a relay holds for later.
    pub fn held_bytes(&self, relay: usize) -> u64 {
        let agent = self.simulation.host(self.relays[relay].1).host.agent().relay();
        agent.and_then(RelayAgent::held_bytes).unwrap_or(0)
    }

    /// Returns the octets that a relay sent on its channels.
    pub fn sent_control_bytes(&self, relay: usize) -> u64 {
        self.simulation.host(self.relays[relay].1).host.agent().control_stats().sent_bytes
    }

    /// Returns the octets that a relay received on its channels.
    pub fn heard_control_bytes(&self, relay: usize) -> u64 {
        self.simulation.host(self.relays[relay].1).host.agent().control_stats().received_bytes
    }

    /// Runs until the file has arrived complete and unchanged; returns when that was.
    pub fn finish(&mut self, limit: Instant) -> Instant {
        while self.report().completed == 0 {
            let next = self.simulation.now() + Duration::from_millis(100);
            assert!(next < limit, "{} of {} octets", self.report().received_bytes, self.wish.bytes);
            self.run_until(next);
        }
        assert_eq!(self.report().received_bytes, self.wish.bytes);
        assert_eq!(self.simulation.faults(), [""; 0]);
        self.report().completed_at.expect("it has completed")
    }
}

fn measure(role: &mut Role, endpoint: &mut Endpoint, now: Instant) {
    let Some(agent) = role.relay_mut().filter(|agent| agent.next_measurement() <= now) else { return };
    agent.handle_measurement(&Measurement::default(), endpoint, now);
}
