//! Relays come and go every 100 ms: the stream arrives, and neither memory nor identifiers run out.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use network::{Link, MediumId, Network, PortId, Prefix, Queue, Route, VertexId};
use simulator::app::Transfer;
use simulator::relay::{DESTINATION_GATE, RelayMedium, SOURCE_GATE};
use simulator::{EndpointHost, HostId, Simulation, Source};
use transport::path_manager::LocalAddress;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig};
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig};
use units::{Duration, Instant, Rate};

use crate::live::live_bytes;

const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
const SOURCE_HOST: HostId = HostId(0);
const DESTINATION_HOST: HostId = HostId(1);
const RELAYS: usize = 3;
/// Rate of each path.
const PATH_MBPS: u64 = 2;
/// Interval at which a relay comes or goes.
const STEP: Duration = Duration::from_millis(100);

fn destination(path: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 1, path as u8, 2))
}

/// Whether the relays end subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relays {
    Routing,
    FastAck,
}

struct Stage {
    simulation: Simulation<EndpointHost>,
    relays: Vec<MediumId>,
    comings: u64,
}

impl Stage {
    /// Creates a path of the destination's own and paths over relays; the source has data for `duration`.
    fn new(relays: Relays, duration: Duration) -> Self {
        let mut network = Network::new(1);
        let (source, sink) = (network.add_port(), network.add_port());
        let (router, out) = (network.add_router(), network.add_router());
        network.connect(source.vertex(), router);
        network.add_host_route(router, SOURCE.ip(), source.vertex());
        network.connect(sink.vertex(), out);
        let media = (0..=RELAYS).filter_map(|path| {
            let seed = (relays == Relays::FastAck && path > 0).then_some([path as u8; 32]);
            add_path(&mut network, path, [router, out], sink, seed)
        });
        let media = media.collect();
        let mut simulation = Simulation::new(network);
        let config = ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() };
        // Half of 8 Mbit/s: relays are present half of the time.
        let data = Source::pattern(Rate::from_mbps(PATH_MBPS * (RELAYS as u64 + 1) / 2).bytes_in(duration));
        let host = |seed, addresses: Vec<IpAddr>| {
            let local_addresses = addresses.into_iter().map(|ip| LocalAddress { ip, backup: false }).collect();
            EndpointHost::new(Endpoint::with_seed(
                EndpointConfig { local_addresses, ..EndpointConfig::default() },
                seed,
            ))
        };
        let server = Transfer::listen(SOURCE, config.clone()).sending(data.clone());
        simulation.attach(source, host(1, vec![SOURCE.ip()]).app(server));
        let receiver = Transfer::connect(SocketAddr::new(destination(0), 0), SOURCE, config).expecting(data);
        simulation.attach(sink, host(2, (0..=RELAYS).map(destination).collect()).app(receiver));
        Self { simulation, relays: media, comings: 0 }
    }

    fn connection(&self, host: HostId) -> ConnectionId {
        self.simulation.host(host).endpoint.connections().next().expect("the connection stands")
    }

    /// Lets one relay come or go. It goes properly, or silently so that the source learns of it only over another
    /// subflow.
    fn come_or_go(&mut self, step: u64) {
        let connection = self.connection(DESTINATION_HOST);
        let local = destination(1 + (step % RELAYS as u64) as usize);
        let comings = &mut self.comings;
        self.simulation.with_host(DESTINATION_HOST, |host, now| {
            let endpoint = &mut host.endpoint;
            let subflows = endpoint.stats(connection).expect("it stands").subflows;
            // A subflow that is still closing does not prevent a new one.
            let is_there = |state| matches!(state, "SYN-SENT" | "ESTABLISHED");
            let there = subflows.iter().find(|subflow| subflow.local.ip() == local && is_there(subflow.state));
            match there {
                None => {
                    let joined = endpoint.add_subflow(connection, SocketAddr::new(local, 0), SOURCE, false, now);
                    *comings += u64::from(joined.is_ok());
                }
                // A subflow that is already closing cannot be removed again.
                Some(subflow) if step % 4 < 2 => drop(endpoint.remove_subflow(connection, subflow.id, now)),
                Some(_) => drop(endpoint.withdraw_address(connection, local, now)),
            }
        });
    }

    fn is_complete(&self) -> bool {
        self.simulation.host(DESTINATION_HOST).reports()[0].completed == 1
    }

    /// Lets relays come and go until `end` or the end of the stream.
    fn churn_until(&mut self, end: Instant) {
        while self.simulation.now() < end && !self.is_complete() {
            let at = self.simulation.now() + STEP;
            self.simulation.run_while(at, |_| true);
            self.simulation.run_until(at);
            let step = self.simulation.now().as_millis() / STEP.as_millis();
            if step >= 5 && !self.is_complete() {
                self.come_or_go(step);
            }
        }
    }

    /// Hosts and relays may only claim resources for subflows of the latest minute, the duration of TIME-WAIT.
    fn assert_claims_are_few(&self) {
        for host in [SOURCE_HOST, DESTINATION_HOST] {
            let footprint = self.simulation.host(host).endpoint.footprint();
            assert!(footprint.four_tuples < 300 && footprint.tokens <= 1, "{footprint:?}");
        }
        for relay in &self.relays {
            let medium = self.simulation.network().medium::<RelayMedium<AtOnce>>(*relay).expect("a relay");
            assert!(medium.relay().relay().splices().count() < 300);
        }
    }
}

/// Adds a link in each direction and, if there is a seed for it, a relay between the links and the destination.
fn add_path(
    network: &mut Network,
    path: usize,
    [router, out]: [VertexId; 2],
    sink: PortId,
    seed: Option<[u8; 32]>,
) -> Option<MediumId> {
    let link = || Link::new(Rate::from_mbps(PATH_MBPS), Duration::from_millis(20)).queue(Queue::packets(50));
    let [down, up] = [link(), link()].map(|link| network.add_link(link));
    network.add_host_route(router, destination(path), down);
    network.connect(up, router);
    let from = |via| Route { from: Some(Prefix::host(destination(path))), to: None, via };
    let Some(seed) = seed else {
        network.connect(down, sink.vertex());
        network.add_route(out, from(up));
        return None;
    };
    let relay = FastAckRelay::new(RelayConfig::default(), seed).expect("defaults are known");
    let medium = network.add_medium(Box::new(RelayMedium::new(ForwardingRelay::new(relay, AtOnce))));
    let [towards_source, towards_sink] = [SOURCE_GATE, DESTINATION_GATE].map(|gate| network.gate(medium, gate));
    network.connect(down, towards_source);
    network.connect(towards_source, up);
    network.connect(towards_sink, sink.vertex());
    network.add_route(out, from(towards_sink));
    Some(medium)
}

fn arrives(relays: Relays, duration: Duration) {
    let mut stage = Stage::new(relays, duration);
    stage.simulation.check();
    stage.churn_until(Instant::ZERO + duration * 4);
    assert_eq!(stage.simulation.faults(), [""; 0], "{relays:?}");
    assert!(stage.is_complete(), "{relays:?}: {:?}", stage.simulation.host(DESTINATION_HOST).reports());
    // A relay comes every 200 ms, if the limit on subflows allows it.
    let comings_min = duration.as_millis() / 400;
    assert!(stage.comings > comings_min, "{relays:?}: {} comings", stage.comings);
    stage.assert_claims_are_few();
}

/// The checkers are off here, because their memory grows with what they see; other tests use them.
fn memory_stays(relays: Relays, duration: Duration) {
    let mut stage = Stage::new(relays, duration);
    stage.churn_until(Instant::ZERO + duration / 3);
    let early = live_bytes();
    stage.churn_until(Instant::ZERO + duration * 2 / 3);
    let grown = live_bytes() - early;
    assert!(!stage.is_complete() && stage.comings > 400, "{relays:?}: {} comings", stage.comings);
    assert!(grown < 50_000, "{relays:?}: {grown} octets more after {} comings", stage.comings);
    stage.assert_claims_are_few();
}

#[test]
fn a_minute_of_relays_that_come_and_go_every_100_ms() {
    for relays in [Relays::Routing, Relays::FastAck] {
        arrives(relays, Duration::from_secs(60));
    }
}

#[test]
fn memory_and_identifiers_stay_few() {
    for relays in [Relays::Routing, Relays::FastAck] {
        memory_stays(relays, Duration::from_secs(180));
    }
}

#[test]
#[ignore = "slow: run by make test-long"]
fn an_hour_of_relays_that_come_and_go_every_100_ms() {
    for relays in [Relays::Routing, Relays::FastAck] {
        arrives(relays, Duration::from_secs(3600));
        memory_stays(relays, Duration::from_secs(3600));
    }
}
