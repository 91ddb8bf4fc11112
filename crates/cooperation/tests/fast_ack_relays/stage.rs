//! A source, a destination with a path of its own, and three relays; the destination's ranges reach the relays with a
//! delay.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::VecDeque;

use cooperation::forwarding::differentiated::{About, Differentiated};
use cooperation::forwarding::hold_queue::{HoldLimits, HoldStats};
use cooperation::forwarding::range_keeper::{Announcement, RangeKeeper, RangeSettings};
use cooperation::relay_selection::RelayId;
use network::{Link, MediumId, Network, PortId, Prefix, Queue, Route, VertexId};
use simulator::app::Transfer;
use simulator::relay::{DESTINATION_GATE, RelayMedium, SOURCE_GATE};
use simulator::{EndpointHost, HostId, Simulation, Source};
use transport::path_manager::LocalAddress;
use transport::relay::{FastAckRelay, ForwardingRelay, RelayConfig};
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig};
use units::{Duration, Instant, Rate};
use wire::mptcp::Token;

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SOURCE_HOST: HostId = HostId(0);
const DESTINATION_HOST: HostId = HostId(1);
/// How often the destination checks what it has, and how long its messages travel.
const STEP: Duration = Duration::from_millis(1);
const CONTROL_DELAY: Duration = Duration::from_millis(5);
/// Rates of the relays' cellular links.
const CELLULAR_MBPS: [u64; 3] = [10, 5, 2];
/// H: 0.1 s of 17 Mbit/s.
pub const RANGE_BYTES: u64 = 212_500;

type Medium = RelayMedium<Differentiated>;

fn destination(path: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 1, path as u8, 2))
}

fn link(mbps: u64, delay_ms: u64) -> Link {
    Link::new(Rate::from_mbps(mbps), Duration::from_millis(delay_ms)).queue(Queue::packets(1000))
}

/// The wishes of a test.
pub struct Wish {
    pub limits: HoldLimits,
    /// Whether the relays hear of the first range only.
    pub deaf: bool,
    /// The destination's receive buffer, octets.
    pub buffer_bytes: u64,
}

impl Default for Wish {
    fn default() -> Self {
        let limits = HoldLimits { size_bytes: 2 * RANGE_BYTES, stay: Duration::from_secs(1_000) };
        Self { limits, deaf: false, buffer_bytes: 4_000_000 }
    }
}

pub struct Stage {
    pub simulation: Simulation<EndpointHost>,
    relays: Vec<MediumId>,
    keeper: RangeKeeper,
    connection: ConnectionId,
    about: About,
    /// Announcements on their way to the relays.
    words: VecDeque<(Instant, Announcement)>,
    wish: Wish,
}

impl Stage {
    /// Creates a stage on which the destination has joined through all relays and told them the first range.
    pub fn new(wish: Wish) -> Self {
        let (mut simulation, relays) = build(&wish);
        simulation.run_until(Instant::from_millis(500));
        let now = simulation.now();
        let (connection, about, next) = simulation.with_host(DESTINATION_HOST, |host, _| {
            let connection = host.endpoint.connections().next().unwrap();
            for path in 1..=CELLULAR_MBPS.len() {
                let local = SocketAddr::new(destination(path), 0);
                host.endpoint.add_subflow(connection, local, SocketAddr::new(SOURCE, 80), false, now).unwrap();
            }
            let token = Token(host.endpoint.stats(connection).unwrap().remote_token.unwrap());
            let about = About { connection: token, destination: None };
            (connection, about, host.endpoint.data_sequence(connection).unwrap().1)
        });
        let settings = RangeSettings { capacity_bytes: wish.buffer_bytes, ..RangeSettings::new(RANGE_BYTES) };
        let mut keeper = RangeKeeper::new(settings, next);
        for (index, medium) in relays.iter().enumerate() {
            let update = keeper.add_relay(now, RelayId(index as u16), wish.limits.size_bytes);
            simulation.with_medium(*medium, |medium: &mut Medium, now| {
                let (relay, policy) = medium.parts();
                policy.on_range(about, update, relay, now);
            });
        }
        Self { simulation, relays, keeper, connection, about, words: VecDeque::new(), wish }
    }

    /// Runs for a step, then passes on the destination's announcements and those that have reached the relays.
    fn step(&mut self) {
        let now = self.simulation.now() + STEP;
        self.simulation.run_until(now);
        let next = self.simulation.with_host(DESTINATION_HOST, |host, _| host.endpoint.data_sequence(self.connection));
        if let Some((_, rcv_nxt)) = next {
            self.keeper.on_packet(now, rcv_nxt, 0, rcv_nxt, 0);
        }
        self.keeper.handle_timeout(now);
        while let Some(word) = self.keeper.poll_announcement() {
            self.words.push_back((now + CONTROL_DELAY, word));
        }
        while self.words.front().is_some_and(|(at, _)| *at <= now) {
            let (_, word) = self.words.pop_front().unwrap();
            if !self.wish.deaf {
                self.tell(word);
            }
        }
    }

    fn tell(&mut self, word: Announcement) {
        let about = self.about;
        for medium in &self.relays {
            self.simulation.with_medium(*medium, |medium: &mut Medium, now| {
                let (relay, policy) = medium.parts();
                match word {
                    Announcement::Range(update) => policy.on_range(about, update, relay, now),
                    Announcement::Ack(ack) => policy.on_ack(about, ack, relay),
                }
            });
        }
    }

    pub fn run_until(&mut self, until: Instant) {
        while self.simulation.now() < until {
            self.step();
        }
    }

    /// Runs until the download is complete; returns when that was.
    pub fn finish(&mut self, limit: Instant) -> Instant {
        while self.simulation.host(DESTINATION_HOST).reports()[0].completed == 0 {
            assert!(self.simulation.now() < limit, "not complete: {:?}", self.keeper);
            self.step();
        }
        assert_eq!(self.simulation.faults(), Vec::<String>::new());
        self.simulation.host(DESTINATION_HOST).reports()[0].completed_at.unwrap()
    }

    pub fn hold_stats(&self, relay: usize) -> HoldStats {
        *self.policy(relay).queue().stats()
    }

    /// Returns the maximum of octets that waited behind a hole at the destination.
    pub fn out_of_order_peak_bytes(&self) -> u64 {
        let endpoint = &self.simulation.host(DESTINATION_HOST).endpoint;
        endpoint.stats(self.connection).unwrap().out_of_order_peak_bytes
    }

    pub fn policy(&self, relay: usize) -> &Differentiated {
        self.simulation.network().medium::<Medium>(self.relays[relay]).unwrap().relay().forwarding()
    }

    /// Removes the relay without notice.
    pub fn kill(&mut self, relay: usize) {
        self.simulation.with_medium(self.relays[relay], |medium: &mut Medium, _| medium.kill()).unwrap();
        self.keeper.remove_relay(RelayId(relay as u16));
    }

    /// Lets the relay forward what it holds and end its subflow in good order.
    pub fn leave(&mut self, relay: usize) {
        self.keeper.remove_relay(RelayId(relay as u16));
        let leave = |medium: &mut Medium, now| {
            let (relay, policy) = medium.parts();
            policy.leave(relay, now);
            let splices: Vec<_> = relay.splices().map(|(splice, _)| splice).collect();
            splices.into_iter().for_each(|splice| relay.close(splice, now));
        };
        self.simulation.with_medium(self.relays[relay], leave).unwrap();
    }

    /// Returns the octets sent and the octets acknowledged on the source's subflow through the relay.
    pub fn sent_and_acked(&self, relay: usize) -> (u64, u64) {
        let endpoint = &self.simulation.host(SOURCE_HOST).endpoint;
        let stats = endpoint.stats(endpoint.connections().next().unwrap()).unwrap();
        let through = stats.subflows.iter().find(|subflow| subflow.remote.ip() == destination(relay + 1)).unwrap();
        (through.sent_bytes, through.acked_bytes)
    }
}

fn build(wish: &Wish) -> (Simulation<EndpointHost>, Vec<MediumId>) {
    let mut network = Network::new(1);
    let (source, sink) = (network.add_port(), network.add_port());
    let (router, out) = (network.add_router(), network.add_router());
    network.connect(source.vertex(), router);
    network.add_host_route(router, SOURCE, source.vertex());
    network.connect(sink.vertex(), out);
    let (down, up) = (network.add_link(link(1, 20)), network.add_link(link(1, 20)));
    network.add_host_route(router, destination(0), down);
    network.connect(down, sink.vertex());
    network.add_route(out, from(0, up));
    network.connect(up, router);
    let relays = (1..=CELLULAR_MBPS.len()).map(|index| add_relay(&mut network, wish, index, [router, out], sink));
    let relays = relays.collect();
    let mut simulation = Simulation::new(network);
    let path_manager = "manual".into();
    let config =
        ConnectionConfig { path_manager, receive_buffer_bytes: wish.buffer_bytes, ..ConnectionConfig::default() };
    let (listen, data) = (SocketAddr::new(SOURCE, 80), Source::pattern(6_000_000));
    let server = Transfer::listen(listen, config.clone()).sending(data.clone());
    simulation.attach(source, host(1, vec![SOURCE]).app(server));
    let receiver = Transfer::connect(SocketAddr::new(destination(0), 0), listen, config).expecting(data);
    let addresses = (0..=CELLULAR_MBPS.len()).map(destination).collect();
    simulation.attach(sink, host(2, addresses).app(receiver));
    simulation.check();
    (simulation, relays)
}

fn host(seed: u64, addresses: Vec<IpAddr>) -> EndpointHost {
    let local_addresses = addresses.into_iter().map(|ip| LocalAddress { ip, backup: false }).collect();
    EndpointHost::new(Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, seed))
}

/// Routes packets from the destination's address on a path `via` it.
fn from(path: usize, via: VertexId) -> Route {
    Route { from: Some(Prefix::host(destination(path))), to: None, via }
}

fn add_relay(network: &mut Network, wish: &Wish, index: usize, [router, out]: [VertexId; 2], sink: PortId) -> MediumId {
    let relay = FastAckRelay::new(RelayConfig::default(), [index as u8; 32]).unwrap();
    let relay = ForwardingRelay::new(relay, Differentiated::new(wish.limits));
    let medium = network.add_medium(Box::new(RelayMedium::new(relay)));
    let [towards_source, towards_sink] = [SOURCE_GATE, DESTINATION_GATE].map(|gate| network.gate(medium, gate));
    let cellular = || link(CELLULAR_MBPS[index - 1], 30);
    let [down, up] = [cellular(), cellular()].map(|link| network.add_link(link));
    let [wifi_down, wifi_up] = [link(20, 5), link(20, 5)].map(|link| network.add_link(link));
    network.add_host_route(router, destination(index), down);
    network.connect(down, towards_source);
    network.connect(towards_sink, wifi_down);
    network.connect(wifi_down, sink.vertex());
    network.add_route(out, from(index, wifi_up));
    network.connect(wifi_up, towards_sink);
    network.connect(towards_source, up);
    network.connect(up, router);
    medium
}
