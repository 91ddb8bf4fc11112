//! A destination and some relays around one router, each on its own wire.

use core::cell::Cell;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeSet;
use std::rc::Rc;

use cooperation::agent::Role;
use cooperation::agent::control::{AnswererSettings, ControlSettings};
use cooperation::agent::destination::{DestinationAgent, DestinationSettings, KnownRelay, SelectionSettings};
use cooperation::agent::relay::{
    LendingLimits, Measurement, OfferSettings, PassageSettings, RelayAgent, RelaySettings,
};
use cooperation::channel::Identity;
use cooperation::relay_selection::manager::{ManagerSettings, RelayManager};
use cooperation::relay_selection::monitor::{Configured, LinkMonitor};
use cooperation::relay_selection::{self, Goal, Mode, RelayId, SelectorSettings, SelectorSpec};
use host::{App, Host as _};

use network::{Link, Network, PortId};
use simulator::{EndpointHost, HostId, Simulation};
use transport::{Endpoint, EndpointConfig, Event};
use units::{Duration, Instant, Prng, Rate};

const CONTROL_PORT: u16 = 40_001;
/// Interval of the relays' offers.
pub const F: Duration = Duration::from_secs(2);
/// Time by which the others start before the destination under test.
pub const OTHERS_LEAD: Instant = Instant::from_secs(1);
/// One-way delay between any two hosts.
pub const WAY: Duration = Duration::from_millis(20);

pub struct Stage {
    pub simulation: Simulation<EndpointHost<Role>>,
    pub destination: HostId,
    /// Port and host of each relay.
    pub relays: Vec<(PortId, HostId)>,
    /// Time at which the application started.
    pub started_at: Rc<Cell<Option<Instant>>>,
    /// Relays that have left.
    away: BTreeSet<HostId>,
}

/// Records when it starts.
struct Starter(Rc<Cell<Option<Instant>>>);

impl App for Starter {
    fn start(&mut self, _endpoint: &mut Endpoint, now: Instant) {
        self.0.set(Some(now));
    }

    fn handle_event(&mut self, _event: &Event, _endpoint: &mut Endpoint, _now: Instant) {}

    fn report(&self) -> host::Report {
        host::Report::default()
    }
}

pub fn identity(number: u8) -> Identity {
    Identity::from_secret([number; 32])
}

/// The destination's key; relay n has n + 1.
pub const DESTINATION_KEY: u8 = 200;

fn address(relay: usize, host: u8) -> IpAddr {
    Ipv4Addr::new(10, (relay / 250) as u8 + 1, (relay % 250) as u8, host).into()
}

fn relay_key(relay: usize) -> Identity {
    let mut secret = [7; 32];
    secret[..8].copy_from_slice(&(relay as u64 + 1).to_le_bytes());
    Identity::from_secret(secret)
}

fn endpoint(seed: u64) -> Endpoint {
    Endpoint::with_seed(EndpointConfig::default(), seed)
}

/// Returns a relay that offers 1 Mbit/s to a destination with the key `serves` or one of the keys after it, and has
/// `identity`.
pub fn relay_host(relay: usize, identity: Identity, serves: u8, life: u8) -> EndpointHost<Role> {
    let monitor = LinkMonitor::new(RelayId(relay as u16), Box::new(Configured(Rate::from_mbps(1))), Rate::ZERO);
    let settings = RelaySettings {
        control: AnswererSettings {
            address: SocketAddr::new(address(relay, 1), CONTROL_PORT),
            identity,
            serves: (serves..serves + 10).map(|key| self::identity(key).public()).collect(),
            seed: [life; 32],
            connections: ControlSettings::new(1500),
        },
        offers: Some(OfferSettings { monitor, every: F, exaggerates: 1.0 }),
        load: None,
        lends: LendingLimits::default(),
        passage: PassageSettings::Beside,
        reports_delay_every: None,
    };
    let agent = RelayAgent::new(settings).expect("nothing is spliced");
    EndpointHost::with_agent(endpoint(1000 * u64::from(life) + relay as u64), Role::Relay(Box::new(agent)))
}

/// Returns a destination with the key `key`, whose path address towards each relay ends in `host`.
fn destination_host(relays: usize, key: u8, host: u8, started_at: &Rc<Cell<Option<Instant>>>) -> EndpointHost<Role> {
    let known = |relay| KnownRelay {
        path: address(relay, host),
        control: Some((SocketAddr::new(address(relay, 1), CONTROL_PORT), relay_key(relay).public())),
        calls_from: None,
    };
    let selector = SelectorSettings { epsilon: 0.1, mode: Mode::Build };
    let selector = relay_selection::build(&SelectorSpec::named("ssrs"), selector).expect("there is such a selector");
    let goal = Goal { target: Rate::from_mbps(2), tolerance: 0.1 };
    let manager = RelayManager::new(ManagerSettings::build(F), goal, selector, Prng::new(1));
    let settings = DestinationSettings {
        identity: identity(key),
        seed: [key; 32],
        control: ControlSettings::new(1500),
        relays: (0..relays).map(known).collect(),
        source: "10.0.0.1:80".parse().expect("an address"),
        source_agent: None,
        first: None,
        relays_splice: false,
        selection: Some(SelectionSettings { manager, period: F, prompt: false, plays_at: Rate::from_mbps(2) }),
        ranges: None,
        watch: None,
    };
    let agent = Role::Destination(Box::new(DestinationAgent::new(settings)));
    EndpointHost::with_agent(endpoint(key.into()), agent).app(Starter(Rc::clone(started_at)))
}

/// Returns a network on which `relays` relays serve the destination, except the first, which serves the key
/// `first_serves`.
pub fn stage(relays: usize, first_serves: u8) -> Stage {
    let mut stage = crowded_stage(relays, first_serves, 0).0;
    stage.simulation.check();
    stage
}

/// As `stage`, with `others` additional destinations that know the first relay only and start before the destination
/// under test. Without checkers, because they remember what they see.
pub fn crowded_stage(relays: usize, first_serves: u8, others: usize) -> (Stage, Vec<HostId>) {
    let mut network = Network::new(1);
    let router = network.add_router();
    let wire = |network: &mut Network| {
        let port = network.add_port();
        let link = || Link::new(Rate::from_mbps(100), WAY.mul_div(1, 2));
        let (up, down) = (network.add_link(link()), network.add_link(link()));
        network.connect(port.vertex(), up);
        network.connect(up, router);
        network.connect(down, port.vertex());
        (port, down)
    };
    let (port, towards_destination) = wire(&mut network);
    let ports: Vec<_> = (0..relays).map(|_| wire(&mut network)).collect();
    for (relay, (_, towards_relay)) in ports.iter().enumerate() {
        network.add_host_route(router, address(relay, 1), *towards_relay);
        network.add_host_route(router, address(relay, 2), towards_destination);
    }
    let other_ports = (0..others as u8).map(|other| {
        let (port, down) = wire(&mut network);
        network.add_host_route(router, address(0, 3 + other), down);
        port
    });
    let other_ports: Vec<_> = other_ports.collect();
    let mut simulation = Simulation::new(network);
    let started_at = Rc::default();
    let attach_other = |(other, port): (u8, PortId)| {
        simulation.attach(port, destination_host(1, DESTINATION_KEY + 1 + other, 3 + other, &Rc::default()))
    };
    let others: Vec<_> = (0..).zip(other_ports).map(attach_other).collect();
    let attach = |(relay, (port, _)): (usize, (PortId, _))| {
        let serves = if relay == 0 { first_serves } else { DESTINATION_KEY };
        (port, simulation.attach(port, relay_host(relay, relay_key(relay), serves, 1)))
    };
    let attached = ports.into_iter().enumerate().map(attach).collect();
    if !others.is_empty() {
        simulation.run_until(OTHERS_LEAD);
    }
    let destination = simulation.attach(port, destination_host(relays, DESTINATION_KEY, 2, &started_at));
    (Stage { simulation, destination, relays: attached, started_at, away: BTreeSet::new() }, others)
}

impl Stage {
    /// Lets time pass; relays read their counters when they want to.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let there: Vec<HostId> =
                self.relays.iter().map(|(_, host)| *host).filter(|host| !self.away.contains(host)).collect();
            let next = |host: &HostId| {
                self.simulation.host(*host).agent().relay().map_or(Instant::FAR_FUTURE, RelayAgent::next_measurement)
            };
            let next = there.iter().map(next).min().unwrap_or(Instant::FAR_FUTURE);
            self.simulation.run_until(next.min(end));
            if next > end {
                return;
            }
            for host in there {
                self.simulation.with_host(host, |host, now| {
                    host.with_agent_mut(|role, endpoint| {
                        let agent = role.relay_mut().expect("it is a relay");
                        if agent.next_measurement() <= now {
                            agent.handle_measurement(&Measurement::default(), endpoint, now);
                        }
                    });
                });
            }
        }
    }

    /// Crashes the relay; another host that knows nothing of its state takes its place.
    pub fn restart(&mut self, relay: usize, identity: Option<Identity>, life: u8) {
        let (port, host) = self.relays[relay];
        self.simulation.with_host(host, |host, _| host.switch_off());
        let identity = identity.unwrap_or_else(|| relay_key(relay));
        let host = self.simulation.attach(port, relay_host(relay, identity, DESTINATION_KEY, life));
        self.relays[relay] = (port, host);
    }

    /// Ends the host in good order.
    pub fn retire(&mut self, host: HostId) {
        self.simulation.with_host(host, |host, now| host.handle_end(now));
    }

    /// Lets the relay leave in good order.
    pub fn leave(&mut self, relay: usize) {
        let (_, id) = self.relays[relay];
        self.retire(id);
        self.simulation.with_host(id, |host, _| host.switch_off());
        self.away.insert(id);
    }

    /// Restarts a relay that has left; it knows nothing of its earlier lives.
    pub fn rouse(&mut self, relay: usize, life: u8) {
        let (_, id) = self.relays[relay];
        self.away.remove(&id);
        self.simulation.with_host(id, |host, now| {
            *host = relay_host(relay, relay_key(relay), DESTINATION_KEY, life);
            host.start(now);
        });
    }

    /// Returns the channels that the destination, and relay `relay` in its present life, opened, and those that they
    /// refused.
    pub fn opened_and_refused(&self, relay: usize) -> [(u64, u64); 2] {
        [self.destination, self.relays[relay].1].map(|host| {
            let stats = self.simulation.host(host).agent().control_stats();
            (stats.opened, stats.refused)
        })
    }
}
