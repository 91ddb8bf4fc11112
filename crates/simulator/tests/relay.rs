//! Downloads over fast-ACK relays, with ordinary MPTCP hosts as source and destination.

use core::cell::RefCell;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use network::middlebox::{NarrowEntry, NarrowHop};
use network::{Link, LossModel, MediumId, Network, PortId, Prefix, Queue, Route, VertexId};
use simulator::app::Transfer;
use simulator::relay::{DESTINATION_GATE, RelayMedium, SOURCE_GATE};
use simulator::{Direction, EndpointHost, HostId, Interface, Simulation, Source, Tap};
use transport::error::CloseReason;
use transport::path_manager::LocalAddress;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig, RelayError, Side};
use transport::{ConnectionConfig, Endpoint, EndpointConfig, SubflowId};
use units::{Duration, Instant, Rate};
use wire::Segment;
use wire::mptcp::{MptcpOption, Token};

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SOURCE_HOST: HostId = HostId(0);
const DESTINATION_HOST: HostId = HostId(1);

fn destination(path: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 1, path as u8, 2))
}

fn link(mbps: u64, delay_ms: u64) -> Link {
    Link::new(Rate::from_mbps(mbps), Duration::from_millis(delay_ms))
}

/// A source, the destination's own path, and relays, each with a cellular link of 10 Mbit/s and Wi-Fi.
struct Stage {
    simulation: Simulation<EndpointHost>,
    relays: Vec<MediumId>,
}

struct Setup {
    relays: usize,
    wifi_loss: f64,
    config: ConnectionConfig,
    relay: RelayConfig,
    source: Source,
    wifi_mbps: u64,
    /// Data that the destination sends.
    upstream: Option<Source>,
    /// Narrow hops of cellular links and Wi-Fi, both ways.
    narrow: [Option<NarrowHop>; 2],
}

impl Default for Setup {
    fn default() -> Self {
        let config = ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() };
        let (relay, source) = (RelayConfig::default(), Source::pattern(4_000_000));
        Self { relays: 2, wifi_loss: 0.0, config, relay, source, wifi_mbps: 20, upstream: None, narrow: [None, None] }
    }
}

impl Setup {
    fn build(self) -> Stage {
        self.build_with(None)
    }

    /// Builds the stage with an address for the first relay itself.
    fn build_with(self, own: Option<IpAddr>) -> Stage {
        let mut network = Network::new(1);
        let (source, sink) = (network.add_port(), network.add_port());
        let router = network.add_router();
        network.connect(source.vertex(), router);
        network.add_host_route(router, SOURCE, source.vertex());
        let out = network.add_router();
        network.connect(sink.vertex(), out);
        add_own_path(&mut network, router, out, sink);
        let relays =
            (1..=self.relays).map(|index| add_relay(&mut network, &self, index, [router, out], sink, own)).collect();
        let mut simulation = Simulation::new(network);
        let listen = SocketAddr::new(SOURCE, 80);
        let host = |seed, addresses: Vec<IpAddr>| {
            let local_addresses = addresses.into_iter().map(|ip| LocalAddress { ip, backup: false }).collect();
            EndpointHost::new(Endpoint::with_seed(
                EndpointConfig { local_addresses, ..EndpointConfig::default() },
                seed,
            ))
        };
        let mut server = Transfer::listen(listen, self.config.clone()).sending(self.source.clone());
        if let Some(upstream) = &self.upstream {
            server = server.expecting(upstream.clone());
        }
        simulation.attach(source, host(1, vec![SOURCE]).app(server));
        let from = SocketAddr::new(destination(0), 0);
        let mut receiver = Transfer::connect(from, listen, self.config.clone()).expecting(self.source);
        if let Some(upstream) = self.upstream {
            receiver = receiver.sending(upstream);
        }
        let addresses = (0..=self.relays).map(destination).collect();
        simulation.attach(sink, host(2, addresses).app(receiver));
        simulation.check();
        Stage { simulation, relays }
    }
}

/// Sends packets from the destination's address on a path `via` a vertex.
fn from(path: usize, via: VertexId) -> Route {
    Route { from: Some(Prefix::host(destination(path))), to: None, via }
}

/// Adds a path of 1 Mbit/s; a fast download must therefore have used relays.
fn add_own_path(network: &mut Network, router: VertexId, out: VertexId, sink: PortId) {
    let (down, up) = (network.add_link(link(1, 20)), network.add_link(link(1, 20)));
    network.add_host_route(router, destination(0), down);
    network.connect(down, sink.vertex());
    network.add_route(out, from(0, up));
    network.connect(up, router);
}

fn add_relay(
    network: &mut Network,
    setup: &Setup,
    index: usize,
    [router, out]: [VertexId; 2],
    sink: PortId,
    own: Option<IpAddr>,
) -> MediumId {
    let relay = FastAckRelay::new(setup.relay.clone(), [index as u8; 32]).unwrap();
    let medium = network.add_medium(Box::new(RelayMedium::new(ForwardingRelay::new(relay, AtOnce))));
    let [towards_source, towards_sink] = [SOURCE_GATE, DESTINATION_GATE].map(|gate| network.gate(medium, gate));
    let wifi = || link(setup.wifi_mbps, 5).loss(LossModel::uniform(setup.wifi_loss));
    let cellular = || link(10, 30).queue(Queue::packets(1000));
    let [cellular_down, cellular_up] = [cellular(), cellular()].map(|link| network.add_link(link));
    let [wifi_down, wifi_up] = [wifi(), wifi()].map(|link| network.add_link(link));
    let [narrow_cellular, narrow_wifi] = &setup.narrow;
    let down = enter(network, narrow_cellular.as_ref(), cellular_down, router);
    let up = enter(network, narrow_cellular.as_ref(), cellular_up, towards_source);
    let wifi_down_in = enter(network, narrow_wifi.as_ref(), wifi_down, towards_sink);
    let wifi_up_in = enter(network, narrow_wifi.as_ref(), wifi_up, sink.vertex());
    network.add_host_route(router, destination(index), down);
    own.into_iter().for_each(|own| network.add_host_route(router, own, down));
    network.connect(cellular_down, towards_source);
    network.connect(towards_sink, wifi_down_in);
    network.connect(wifi_down, sink.vertex());
    network.add_route(out, from(index, wifi_up_in));
    network.connect(wifi_up, towards_sink);
    network.connect(towards_source, up);
    network.connect(cellular_up, router);
    medium
}

/// Returns the entry of a link: a narrow hop, which answers packets that are too large `back`, or the link itself.
fn enter(network: &mut Network, narrow: Option<&NarrowHop>, link: VertexId, back: VertexId) -> VertexId {
    let Some(hop) = narrow else { return link };
    let entry = network.add_medium(Box::new(NarrowEntry::new(hop.clone())));
    let [outside, inside] = [NarrowEntry::OUTSIDE, NarrowEntry::LINK].map(|gate| network.gate(entry, gate));
    network.connect(inside, link);
    network.connect(outside, back);
    outside
}

impl Stage {
    /// The destination joins through every relay as soon as it may.
    fn join(&mut self) {
        self.simulation.run_until(Instant::from_millis(500));
        let now = self.simulation.now();
        let relays = self.relays.len();
        self.simulation.with_host(DESTINATION_HOST, |host, _| {
            let connection = host.endpoint.connections().next().unwrap();
            for path in 1..=relays {
                let local = SocketAddr::new(destination(path), 0);
                host.endpoint.add_subflow(connection, local, SocketAddr::new(SOURCE, 80), false, now).unwrap();
            }
        });
    }

    /// Tells the relays all bits of the data sequence numbers.
    fn anchor(&mut self) {
        self.simulation.run_until(Instant::from_millis(600));
        let sequence = self.simulation.with_host(DESTINATION_HOST, |host, _| {
            let connection = host.endpoint.connections().next().unwrap();
            host.endpoint.data_sequence(connection).unwrap()
        });
        for medium in &self.relays {
            self.simulation.with_medium(*medium, |relay: &mut RelayMedium<AtOnce>, _| {
                let relay = relay.parts().0;
                let splice = relay.splices().next().unwrap().0;
                relay.anchor(splice, Side::Source, sequence.0);
                relay.anchor(splice, Side::Destination, sequence.1);
            });
        }
    }

    fn finish(&mut self, limit: Instant) -> Instant {
        self.simulation.run_while(limit, |simulation| simulation.host(DESTINATION_HOST).reports()[0].completed == 0);
        assert_eq!(self.simulation.faults(), Vec::<String>::new());
        let report = self.simulation.host(DESTINATION_HOST).reports().remove(0);
        assert_eq!(report.completed, 1, "at {:?}: {report:?}", self.simulation.now());
        report.completed_at.unwrap()
    }

    fn relay(&self, index: usize) -> &FastAckRelay {
        self.simulation.network().medium::<RelayMedium<AtOnce>>(self.relays[index]).unwrap().relay().relay()
    }
}

/// A window of 100 octets is less than one step of the window that the relay would announce for its own buffer.
#[test]
fn windows_smaller_than_a_step_of_the_relays_own_pass() {
    let mut setup = Setup { relays: 1, source: Source::pattern(5_000), ..Setup::default() };
    setup.config.receive_buffer_bytes = 100;
    let mut stage = setup.build();
    stage.join();
    stage.simulation.run_until(Instant::from_millis(800));
    let connection = stage.simulation.host(DESTINATION_HOST).endpoint.connections().next().expect("it stands");
    stage.simulation.with_host(DESTINATION_HOST, |host, now| {
        host.endpoint.remove_subflow(connection, SubflowId(0), now).expect("it stands");
    });
    stage.finish(Instant::from_secs(60));
}

#[test]
fn a_download_goes_through_two_relays() {
    let mut stage = Setup::default().build();
    stage.join();
    let done = stage.finish(Instant::from_secs(60));
    // 4 MB: 32 s at 1 Mbit/s, under 2 s at 21.
    assert!(done < Instant::from_secs(4), "{done:?}");
    for relay in [stage.relay(0), stage.relay(1)] {
        let (_, stats) = relay.splices().next().unwrap();
        assert!(stats.joined && stats.towards_destination.sent_bytes > 1_000_000, "{stats:?}");
    }
}

#[test]
fn the_source_sees_neither_loss_nor_delay_of_the_wifi() {
    let setup = Setup { relays: 1, wifi_loss: 0.05, ..Setup::default() };
    let mut stage = setup.build();
    stage.join();
    stage.finish(Instant::from_secs(60));
    let connection = stage.simulation.host(SOURCE_HOST).endpoint.connections().next().unwrap();
    let stats = stage.simulation.host(SOURCE_HOST).endpoint.stats(connection).unwrap();
    let through = stats.subflows.iter().find(|subflow| subflow.remote.ip() == destination(1)).unwrap();
    assert_eq!(through.retransmitted_bytes, 0, "{through:?}");
    // 30 ms each way to the relay; the Wi-Fi would add 10 ms.
    assert!(through.min_rtt.unwrap() < Duration::from_millis(64), "{through:?}");
    let (_, splice) = stage.relay(0).splices().next().unwrap();
    assert!(splice.towards_destination.retransmitted_bytes > 50_000, "{splice:?}");
}

#[test]
fn a_relay_with_hardly_any_buffer_works_and_one_without_is_refused() {
    let mtu = u64::from(RelayConfig::default().tcp.mtu);
    let least = RelayConfig { buffer_bytes: 2 * mtu, ..RelayConfig::default() };
    let mut stage = Setup { relay: least.clone(), source: Source::pattern(1_000_000), ..Setup::default() }.build();
    stage.join();
    stage.finish(Instant::from_secs(60));
    for buffer_bytes in [0, 2 * mtu - 1] {
        let refused = FastAckRelay::new(RelayConfig { buffer_bytes, ..least.clone() }, [1; 32]).err().unwrap();
        assert_eq!(refused, RelayError::NoRoom { buffer_bytes, least_bytes: 2 * mtu });
        assert!(refused.to_string().contains("buffer_bytes"), "{refused}");
    }
}

#[test]
fn the_source_joins_at_the_relay_s_own_address() {
    let own = IpAddr::V4(Ipv4Addr::new(10, 1, 1, 1));
    let relay = RelayConfig { address_towards_source: Some(own), ..RelayConfig::default() };
    let mut stage = Setup { relays: 1, relay, ..Setup::default() }.build_with(Some(own));
    stage.simulation.run_until(Instant::from_millis(500));
    let now = stage.simulation.now();
    let (token, id) = stage.simulation.with_host(DESTINATION_HOST, |host, _| {
        let connection = host.endpoint.connections().next().unwrap();
        (Token(host.endpoint.stats(connection).unwrap().local_token.unwrap()), connection)
    });
    let target = SocketAddr::new(destination(1), 7000);
    let medium = stage.relays[0];
    stage.simulation.with_medium(medium, |relay: &mut RelayMedium<AtOnce>, _| relay.parts().0.serve(token, target));
    stage
        .simulation
        .with_host(DESTINATION_HOST, |host, _| host.endpoint.announce_address(id, own, Some(7001), now))
        .unwrap();
    stage.simulation.run_until(Instant::from_millis(600));
    let now = stage.simulation.now();
    stage.simulation.with_host(SOURCE_HOST, |host, _| {
        let connection = host.endpoint.connections().next().unwrap();
        let from = SocketAddr::new(SOURCE, 0);
        host.endpoint.add_subflow(connection, from, SocketAddr::new(own, 7001), false, now).unwrap();
    });
    let done = stage.finish(Instant::from_secs(60));
    assert!(done < Instant::from_secs(6), "{done:?}");
}

#[test]
fn a_relay_that_dies_takes_nothing_with_it() {
    for at_ms in [900, 1500, 2200] {
        let mut stage = Setup { source: Source::pattern(6_000_000), ..Setup::default() }.build();
        stage.join();
        stage.simulation.run_until(Instant::from_millis(at_ms));
        let medium = stage.relays[0];
        assert!(stage.relay(0).splices().next().unwrap().1.stored_bytes > 0, "it holds data when it dies");
        stage.simulation.with_medium(medium, |relay: &mut RelayMedium<AtOnce>, _| relay.kill());
        stage.finish(Instant::from_secs(60));
    }
}

#[test]
fn a_relay_that_leaves_delivers_what_it_has() {
    let mut stage = Setup { source: Source::pattern(6_000_000), ..Setup::default() }.build();
    stage.join();
    stage.simulation.run_until(Instant::from_millis(1500));
    let medium = stage.relays[0];
    let splice = stage.relay(0).splices().next().unwrap().0;
    let now = stage.simulation.now();
    stage.simulation.with_medium(medium, |relay: &mut RelayMedium<AtOnce>, _| relay.parts().0.close(splice, now));
    stage.finish(Instant::from_secs(60));
    let connection = stage.simulation.host(SOURCE_HOST).endpoint.connections().next().unwrap();
    let stats = stage.simulation.host(SOURCE_HOST).endpoint.stats(connection).unwrap();
    let through = stats.subflows.iter().find(|subflow| subflow.remote.ip() == destination(1)).unwrap();
    assert_eq!(through.sent_bytes, through.acked_bytes, "{through:?}");
    let later = stage.simulation.now() + Duration::from_secs(200);
    stage.simulation.run_until(later);
    assert_eq!(stage.relay(0).splices().count() + stage.relay(1).splices().count(), 0, "nothing is remembered");
}

/// Each leg finds the path MTU of its own link and cuts the other leg's data accordingly.
#[test]
fn each_leg_has_a_path_mtu_of_its_own() {
    for silent in [false, true] {
        let hop = if silent { NarrowHop::new(1400).silent() } else { NarrowHop::new(1400) };
        for narrow in [[Some(hop.clone()), None], [None, Some(hop)]] {
            let (cellular, wifi) = (narrow[0].is_some(), narrow[1].is_some());
            let (source, upstream) = (Source::pattern(9_000_000), Some(Source::pattern(9_000_000)));
            let mut stage = Setup { relays: 1, narrow, source, upstream, ..Setup::default() }.build();
            stage.join();
            stage.simulation.run_until(Instant::from_secs(6));
            let (_, stats) = stage.relay(0).splices().next().expect("it stands");
            let (up, down) = (stats.towards_source, stats.towards_destination);
            // Without ICMP the search begins at 1280, and 1390 is its first step up that passes.
            let found = |narrow: bool, bytes: u16| match (narrow, silent) {
                (false, _) => bytes == 1500,
                (true, false) => bytes == 1400,
                (true, true) => (1390..=1400).contains(&bytes),
            };
            assert!(found(cellular, up.path_mtu_bytes), "silent {silent}, cellular {cellular}: {up:?}");
            assert!(found(wifi, down.path_mtu_bytes), "silent {silent}, Wi-Fi {wifi}: {down:?}");
            stage.finish(Instant::from_secs(60));
        }
    }
}

/// After a black hole, a leg searches upwards with pieces as large as they arrived, even if no data wait any more.
#[test]
fn a_leg_searches_for_what_passes() {
    let narrow = [None, Some(NarrowHop::new(1400).silent())];
    let source = Source::pattern(8_000_000);
    let mut stage = Setup { relays: 1, narrow, source, wifi_mbps: 54, ..Setup::default() }.build();
    stage.join();
    stage.simulation.run_until(Instant::from_secs(6));
    let (_, stats) = stage.relay(0).splices().next().expect("it stands");
    let leg = stats.towards_destination;
    assert!((1392..=1400).contains(&leg.path_mtu_bytes), "{leg:?}");
}

#[test]
fn memory_bounds_what_a_slow_wifi_piles_up() {
    let relay = RelayConfig { buffer_bytes: 100_000, ..RelayConfig::default() };
    let mut stage =
        Setup { relays: 1, relay, wifi_mbps: 2, source: Source::pattern(2_000_000), ..Setup::default() }.build();
    stage.join();
    let mut most = 0;
    while stage.simulation.host(DESTINATION_HOST).reports()[0].completed == 0 {
        let step = stage.simulation.now() + Duration::from_millis(20);
        stage.simulation.run_until(step);
        most = most.max(stage.relay(0).splices().next().map_or(0, |(_, stats)| stats.stored_bytes));
        assert!(step < Instant::from_secs(60));
    }
    assert_eq!(stage.simulation.faults(), Vec::<String>::new());
    assert!((50_000..=102_000).contains(&most), "{most}");
}

#[test]
fn data_go_upstream_too_and_checksums_are_made_anew() {
    // Relays deduce the numbers' upper half from the checksums, or are told.
    for told in [false, true] {
        checksums_are_made_anew(told);
    }
}

fn checksums_are_made_anew(told: bool) {
    let config = ConnectionConfig { checksum: true, path_manager: "manual".into(), ..ConnectionConfig::default() };
    let mut stage = Setup { config, upstream: Some(Source::pattern(3_000_000)), ..Setup::default() }.build();
    stage.join();
    if told {
        stage.anchor();
    }
    let done = stage.finish(Instant::from_secs(60));
    let all = |stage: &Stage| stage.simulation.host(SOURCE_HOST).reports()[0].completed == 1;
    stage
        .simulation
        .run_while(Instant::from_secs(60), |simulation| simulation.host(SOURCE_HOST).reports()[0].completed == 0);
    assert!(all(&stage) && done < Instant::from_secs(5), "{done:?}");
    let (_, stats) = stage.relay(0).splices().next().unwrap();
    assert!(stats.towards_source.sent_bytes > 500_000, "{stats:?}");
    assert_eq!(stage.simulation.faults(), Vec::<String>::new());
}

#[test]
fn an_abort_reaches_the_other_host_through_the_relay() {
    for (aborts, hears) in [(SOURCE_HOST, DESTINATION_HOST), (DESTINATION_HOST, SOURCE_HOST)] {
        let mut stage = Setup { relays: 1, ..Setup::default() }.build();
        stage.join();
        stage.simulation.run_until(Instant::from_millis(900));
        let now = stage.simulation.now();
        // Without the destination's own path, the news has no other way.
        stage.simulation.with_host(DESTINATION_HOST, |host, _| {
            let connection = host.endpoint.connections().next().unwrap();
            host.endpoint.remove_subflow(connection, SubflowId(0), now).unwrap();
        });
        stage.simulation.run_until(Instant::from_millis(1300));
        let now = stage.simulation.now();
        stage.simulation.with_host(aborts, |host, _| {
            let connection = host.endpoint.connections().next().unwrap();
            host.endpoint.abort(connection, now).unwrap();
        });
        stage.simulation.run_until(Instant::from_millis(1500));
        let report = stage.simulation.host(hears).reports().remove(0);
        assert_eq!(report.closed.last(), Some(&CloseReason::Fastclose), "{report:?}");
    }
}

/// Everything that passes the relays' legs, and the connection's keys.
struct Eavesdropper(Rc<RefCell<Heard>>);

#[derive(Default)]
struct Heard {
    packets: Vec<Vec<u8>>,
    keys: Vec<u64>,
}

impl Tap for Eavesdropper {
    fn segment(&mut self, _: Instant, _: Interface, _: Direction, segment: &Segment) {
        let mut heard = self.0.borrow_mut();
        for option in &segment.options.mptcp {
            if let MptcpOption::Capable(capable) = option {
                heard.keys.extend(capable.sender_key.iter().chain(&capable.receiver_key).map(|key| key.0));
            }
        }
        if [segment.src.ip(), segment.dst.ip()].contains(&destination(1)) {
            let mut octets = Vec::new();
            segment.emit(&mut octets);
            heard.packets.push(octets);
        }
    }
}

#[test]
fn keys_never_pass_a_relay() {
    let mut stage = Setup { relays: 1, ..Setup::default() }.build();
    let heard = Rc::new(RefCell::new(Heard::default()));
    stage.simulation.add_tap(Box::new(Eavesdropper(Rc::clone(&heard))));
    stage.join();
    stage.finish(Instant::from_secs(60));
    let heard = heard.borrow();
    assert!(heard.packets.len() > 1000 && heard.keys.len() >= 2);
    for key in &heard.keys {
        let octets = key.to_be_bytes();
        let holds_key = |packet: &Vec<u8>| packet.windows(8).any(|window| window == octets);
        assert!(!heard.packets.iter().any(holds_key));
    }
}
