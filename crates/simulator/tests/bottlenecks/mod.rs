//! Users who download over shared bottlenecks: each has one path or two, and each path has one bottleneck or two in a
//! row.

mod early_drop;

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use network::{Link, Network, PortId, Prefix, Queue, Route, VertexId};
use simulator::app::Transfer;
use simulator::{EndpointHost, HostId, Simulation, Source};
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::{Duration, Instant, Prng, Rate};

pub use early_drop::DropCurve;
use early_drop::EarlyDrop;

/// Identical users.
pub struct Users {
    pub count: usize,
    pub controller: &'static str,
    /// The bottlenecks of each path, by number, in the order in which data pass them.
    pub paths: &'static [&'static [usize]],
}

/// An experiment.
pub struct Plan {
    /// Rate of each bottleneck in Mbit/s on the wire.
    pub bottlenecks_mbps: Vec<u64>,
    pub users: Vec<Users>,
    /// Round-trip time without queues.
    pub rtt_ms: u64,
    /// Which packets the bottlenecks drop.
    pub drops: DropCurve,
    /// How long users hold back the ACK for a lone segment.
    pub delayed_ack_ms: u64,
}

/// The engine's default for [`Plan::delayed_ack_ms`].
pub const DELAYED_ACK_MS: u64 = 40;

/// Results of an experiment, averaged over the time after it has settled.
pub struct Outcome {
    /// Goodput of one user of each kind, Mbit/s.
    pub goodput_mbps: Vec<f64>,
    /// Fraction of packets that each bottleneck dropped.
    #[allow(dead_code, reason = "not every test looks at it")]
    pub loss: Vec<f64>,
}

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 255, 0, 1));
/// Users arrive one after another within this time, to avoid synchronisation.
const ARRIVALS_MS: u64 = 5_000;
const SETTLE_S: u64 = 30;
const WATCH_S: u64 = 90;

/// The early drop of a bottleneck, and its link.
#[derive(Clone, Copy)]
struct Bottleneck {
    entry: VertexId,
    link: VertexId,
}

/// A user's port and address.
struct Place {
    kind: usize,
    user: usize,
    port: PortId,
    addresses: Vec<IpAddr>,
}

/// A running experiment.
struct Scene {
    simulation: Simulation<EndpointHost>,
    /// The users of each kind.
    kinds: Vec<Vec<HostId>>,
    bottlenecks: Vec<Bottleneck>,
}

/// Counts so far.
struct Counts {
    /// Payload received by each kind of user.
    received_bytes: Vec<u64>,
    /// Packets dropped and offered at each bottleneck.
    dropped_and_offered: Vec<(u64, u64)>,
}

impl Scene {
    fn counts(&self) -> Counts {
        let received = |hosts: &Vec<HostId>| hosts.iter().map(|host| self.received_bytes(*host)).sum();
        let packets = |bottleneck: &Bottleneck| {
            let counters = self.simulation.network().counters(bottleneck.entry);
            (counters.dropped_total().packets, counters.entered.packets)
        };
        Counts {
            received_bytes: self.kinds.iter().map(received).collect(),
            dropped_and_offered: self.bottlenecks.iter().map(packets).collect(),
        }
    }

    fn received_bytes(&self, host: HostId) -> u64 {
        self.simulation.host(host).reports()[0].received_bytes
    }
}

impl Plan {
    pub fn run(&self, seed: u64) -> Outcome {
        let mut scene = self.scene(seed);
        scene.simulation.run_until(Instant::from_secs(SETTLE_S));
        let before = scene.counts();
        scene.simulation.run_until(Instant::from_secs(SETTLE_S + WATCH_S));
        assert_eq!(scene.simulation.faults(), Vec::<String>::new());
        let after = scene.counts();
        Outcome {
            goodput_mbps: (0..self.users.len())
                .map(|kind| {
                    let bytes = after.received_bytes[kind] - before.received_bytes[kind];
                    bytes as f64 * 8.0 / WATCH_S as f64 / self.users[kind].count as f64 / 1e6
                })
                .collect(),
            loss: (after.dropped_and_offered.iter().zip(&before.dropped_and_offered))
                .map(|(after, before)| (after.0 - before.0) as f64 / (after.1 - before.1) as f64)
                .collect(),
        }
    }

    fn scene(&self, seed: u64) -> Scene {
        let mut network = Network::new(seed);
        let server = network.add_port();
        let bottlenecks: Vec<_> =
            self.bottlenecks_mbps.iter().map(|mbps| bottleneck(&mut network, *mbps, self.drops)).collect();
        let places = self.wire_all(&mut network, server, &bottlenecks);
        let mut simulation = Simulation::new(network);
        simulation.attach(server, self.server(seed));
        let mut kinds = vec![Vec::new(); self.users.len()];
        for place in places {
            let kind = place.kind;
            let host = self.client(seed, place);
            kinds[kind].push(simulation.attach(host.0, host.1));
        }
        Scene { simulation, kinds, bottlenecks }
    }

    fn wire_all(&self, network: &mut Network, server: PortId, bottlenecks: &[Bottleneck]) -> Vec<Place> {
        let mut places = Vec::new();
        for (kind, users) in self.users.iter().enumerate() {
            for user in 0..users.count {
                let port = network.add_port();
                let addresses = (0..users.paths.len()).map(|path| address(kind, path, user)).collect::<Vec<_>>();
                for (path, address) in users.paths.iter().zip(&addresses) {
                    let row: Vec<_> = path.iter().map(|number| bottlenecks[*number]).collect();
                    self.wire(network, server, port, *address, &row);
                }
                places.push(Place { kind, user, port, addresses });
            }
        }
        places
    }

    /// Adds one path: the bottlenecks, then half of the round trip to the user; the other half is on the way back,
    /// which is not shared.
    fn wire(&self, network: &mut Network, server: PortId, port: PortId, user: IpAddr, row: &[Bottleneck]) {
        let half = || {
            let link = Link::new(Rate::from_mbps(1000), Duration::from_millis(self.rtt_ms / 2));
            link.queue(Queue::unlimited())
        };
        let (access, back) = (network.add_link(half()), network.add_link(half()));
        network.connect(access, port.vertex());
        network.connect(back, server.vertex());
        network.add_route(port.vertex(), Route { from: Some(Prefix::host(user)), to: None, via: back });
        let mut last = server.vertex();
        for bottleneck in row {
            network.add_host_route(last, user, bottleneck.entry);
            last = bottleneck.link;
        }
        network.add_host_route(last, user, access);
    }

    fn config(&self, users: &Users) -> ConnectionConfig {
        ConnectionConfig {
            mptcp: users.paths.len() > 1,
            congestion: users.controller.parse().unwrap(),
            delayed_ack: Duration::from_millis(self.delayed_ack_ms),
            ..ConnectionConfig::default()
        }
    }

    fn server(&self, seed: u64) -> EndpointHost {
        let config = EndpointConfig { local_addresses: vec![local(SERVER)], ..EndpointConfig::default() };
        let host = EndpointHost::new(Endpoint::with_seed(config, seed));
        self.users.iter().enumerate().fold(host, |host, (kind, users)| {
            let listening = Transfer::listen(socket(kind), self.config(users));
            host.app(listening.sending(Source::pattern(u64::MAX / 2)))
        })
    }

    fn client(&self, seed: u64, place: Place) -> (PortId, EndpointHost) {
        let Place { kind, user, port, addresses } = place;
        let config = EndpointConfig {
            local_addresses: addresses.iter().copied().map(local).collect(),
            ..EndpointConfig::default()
        };
        let mut prng = Prng::fork(seed, &format!("user {kind} {user}"));
        let at = Instant::from_millis(prng.below(ARRIVALS_MS));
        let download =
            Transfer::connect(SocketAddr::new(addresses[0], 0), socket(kind), self.config(&self.users[kind])).at(at);
        (port, EndpointHost::new(Endpoint::with_seed(config, prng.below(u64::MAX))).app(download))
    }
}

fn bottleneck(network: &mut Network, mbps: u64, drops: DropCurve) -> Bottleneck {
    let rate = Rate::from_mbps(mbps);
    let entry = network.add_node(Box::new(EarlyDrop::new(rate, drops)));
    let link = network.add_link(Link::new(rate, Duration::ZERO).queue(Queue::unlimited()));
    network.connect(entry, link);
    Bottleneck { entry, link }
}

fn address(kind: usize, path: usize, user: usize) -> IpAddr {
    Ipv4Addr::new(10, kind as u8, path as u8, user as u8 + 1).into()
}

fn socket(kind: usize) -> SocketAddr {
    SocketAddr::new(SERVER, 80 + kind as u16)
}

fn local(ip: IpAddr) -> LocalAddress {
    LocalAddress { ip, backup: false }
}
