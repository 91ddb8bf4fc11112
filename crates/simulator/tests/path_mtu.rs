//! Transfers over paths that are narrower than the hosts' interfaces, with and without ICMP from the router (RFC 1191,
//! RFC 8201, RFC 4821, RFC 8899).

use core::net::SocketAddr;

use network::middlebox::NarrowHop;
use network::{Link, Path, TwoHosts};
use simulator::app::Transfer;
use simulator::{CLIENT, EndpointHost, HostId, SERVER, Simulation, Source, two_hosts};
use transport::{ConnectionConfig, SubflowStats};
use units::{Duration, Instant, Rate};

const OCTETS: u64 = 8_000_000;

/// A path with a hop behind the client's link.
fn path(rate: Rate, hop: NarrowHop) -> Path {
    Path::from(Link::new(rate, Duration::from_millis(10))).middlebox(hop)
}

fn narrow(hop: NarrowHop) -> Path {
    path(Rate::from_mbps(20), hop)
}

/// The server sends `octets` to the client; returns the simulation and the server's subflows.
fn download(
    topology: TwoHosts,
    config: &ConnectionConfig,
    octets: u64,
) -> (Simulation<EndpointHost>, Vec<SubflowStats>) {
    transfer(topology, config, octets, SERVER)
}

/// The same from the client to the server.
fn upload(topology: TwoHosts, config: &ConnectionConfig, octets: u64) -> (Simulation<EndpointHost>, Vec<SubflowStats>) {
    transfer(topology, config, octets, CLIENT)
}

fn transfer(
    topology: TwoHosts,
    config: &ConnectionConfig,
    octets: u64,
    sender: HostId,
) -> (Simulation<EndpointHost>, Vec<SubflowStats>) {
    let source = Source::pattern(octets);
    let receiver = if sender == SERVER { CLIENT } else { SERVER };
    let (mut simulation, _) = two_hosts(topology, 3, |(id, paths), host| {
        let remote = SocketAddr::new(paths[0].server, 80);
        let app = if id == SERVER {
            Transfer::listen(remote, config.clone())
        } else {
            Transfer::connect(SocketAddr::new(paths[0].client, 0), remote, config.clone())
        };
        host.app(if id == sender { app.sending(source.clone()) } else { app.expecting(source.clone()) })
    });
    let limit = Instant::from_secs(2000);
    simulation.run_while(limit, |simulation| simulation.host(receiver).reports()[0].completed == 0);
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let host = simulation.host(sender);
    let stats = host.endpoint.stats(host.reports()[0].connections[0]).expect("the connection is known");
    let received = simulation.host(receiver).reports()[0].received_bytes;
    assert_eq!(received, octets, "at {:?}: {stats:#?}", simulation.now());
    (simulation, stats.subflows)
}

/// Checks what a subflow found for `path` octets: exactly this if a router reported it, otherwise within one step of
/// the search.
fn assert_found(subflow: &SubflowStats, path: u16, silent: bool) {
    let least = if silent { path - 8 } else { path };
    assert!((least..=path).contains(&subflow.path_mtu_bytes), "{path}, silent {silent}: {subflow:#?}");
}

/// Both paths are behind PPPoE or a tunnel: no path is left for large packets.
#[test]
fn two_narrow_paths_carry_a_file() {
    for mtu in [1280, 1400, 1492] {
        for silent in [false, true] {
            for ipv6 in [false, true] {
                let hop = || if silent { NarrowHop::new(mtu).silent() } else { NarrowHop::new(mtu) };
                let topology = TwoHosts::new(1).path(narrow(hop())).path(narrow(hop())).one_server_address();
                let topology = if ipv6 { topology.ipv6() } else { topology };
                let (simulation, subflows) = download(topology, &ConnectionConfig::default(), OCTETS);
                assert_eq!(subflows.len(), 2);
                subflows.iter().for_each(|subflow| assert_found(subflow, mtu, silent));
                // Time for several time-outs of 200 ms and more, and for the data.
                let patience = if silent { 8 } else { 3 };
                assert!(simulation.now() < Instant::from_secs(patience), "{mtu} {silent}: {:?}", simulation.now());
            }
        }
    }
}

/// A NAT between the narrow hop and either host translates the router's error with the packet that it quotes; without
/// this, the connection would be behind a black hole (RFC 5508 section 4.2).
#[test]
fn a_word_from_the_router_passes_a_nat() {
    for nat_outside in [false, true] {
        for ipv6 in [false, true] {
            for up in [false, true] {
                let link = Path::from(Link::new(Rate::from_mbps(20), Duration::from_millis(10)));
                let (hop, idle) = (NarrowHop::new(1400), Duration::from_secs(60));
                let path = if nat_outside { link.middlebox(hop).nat(idle) } else { link.nat(idle).middlebox(hop) };
                let topology = if ipv6 { TwoHosts::new(1).ipv6() } else { TwoHosts::new(1) };
                let transfer = if up { upload } else { download };
                let (simulation, subflows) = transfer(topology.path(path), &ConnectionConfig::default(), OCTETS);
                let case = format!("NAT outside {nat_outside}, IPv6 {ipv6}, up {up}");
                assert_eq!((subflows[0].path_mtu_bytes, subflows[0].timeouts), (1400, 0), "{case}");
                assert!(simulation.now() < Instant::from_millis(3700), "{case}: {:?}", simulation.now());
            }
        }
    }
}

/// A router's error costs the packets that it refers to, and no window.
#[test]
fn a_word_from_the_router_costs_little() {
    let config = ConnectionConfig::default();
    let (narrow_run, subflows) = download(TwoHosts::new(1).path(narrow(NarrowHop::new(1400))), &config, OCTETS);
    let (wide_run, wide) = download(TwoHosts::new(1).path(narrow(NarrowHop::new(1500))), &config, OCTETS);
    assert_eq!((subflows[0].congestion_events, subflows[0].timeouts), (wide[0].congestion_events, 0));
    let (narrow_s, wide_s) = (narrow_run.now().as_millis() as f64, wide_run.now().as_millis() as f64);
    assert!(narrow_s < wide_s * 1.1 + 50.0, "{narrow_s} ms, {wide_s} ms");
}

/// Without SACK, a black hole leaves the path MTU at the base: the search goes no further.
#[test]
fn without_sack_the_base_is_as_far_as_it_goes() {
    let config = ConnectionConfig { sack: false, ..ConnectionConfig::default() };
    let hop = NarrowHop::new(1400).silent();
    let (_, subflows) = download(TwoHosts::new(1).path(narrow(hop)), &config, OCTETS);
    assert_eq!(subflows[0].path_mtu_bytes, 1280);
}

/// IPv4 below the base: the second step down. The first step takes 500 octets of a packet that fits the base. The
/// remaining 728 pass some of these paths, but this is no sign that the whole packet passes.
#[test]
fn a_very_narrow_path_of_ipv4() {
    for size in [600, 800, 1000, 1270] {
        for silent in [false, true] {
            let hop = || if silent { NarrowHop::new(size).silent() } else { NarrowHop::new(size) };
            let config = ConnectionConfig::default();
            let (simulation, subflows) = download(TwoHosts::new(1).path(narrow(hop())), &config, OCTETS);
            assert_found(&subflows[0], size, silent);
            assert!(subflows[0].timeouts <= 7, "{size}, silent {silent}: {:#?}", subflows[0]);
            assert!(simulation.now() < Instant::from_secs(12), "{size}, silent {silent}: {:?}", simulation.now());
        }
    }
}

#[test]
fn a_path_shrinks_under_a_connection() {
    for silent in [false, true] {
        let hop = NarrowHop::new(1500).then(Instant::from_millis(500), 1300);
        let hop = if silent { hop.silent() } else { hop };
        let (simulation, subflows) = download(TwoHosts::new(1).path(narrow(hop)), &ConnectionConfig::default(), OCTETS);
        assert_found(&subflows[0], 1300, silent);
        assert!(simulation.now() < Instant::from_secs(12), "{silent}: {:?}", simulation.now());
    }
}

/// Ten minutes after a path was found narrow the search repeats, once on a path that is wide again and once on one that
/// is not.
#[test]
fn a_path_grows_back_after_ten_minutes() {
    for silent in [false, true] {
        for wide_later in [false, true] {
            let hop = NarrowHop::new(1400);
            let hop = if wide_later { hop.then(Instant::from_secs(300), 1500) } else { hop };
            let hop = if silent { hop.silent() } else { hop };
            let slow = path(Rate::from_bps(200_000), hop);
            let (simulation, subflows) =
                download(TwoHosts::new(1).path(slow), &ConnectionConfig::default(), 17_000_000);
            assert!(simulation.now() > Instant::from_secs(610));
            assert_found(&subflows[0], if wide_later { 1500 } else { 1400 }, silent && !wide_later);
        }
    }
}

/// An outage of many time-outs is not a black hole.
#[test]
fn an_outage_changes_no_size() {
    for end_ms in [1500, 3000, 10_000, 30_000] {
        let span = Instant::from_millis(300)..Instant::from_millis(end_ms);
        let path = Path::from(Link::new(Rate::from_mbps(20), Duration::from_millis(10))).down(span);
        let (_, subflows) = download(TwoHosts::new(1).path(path), &ConnectionConfig::default(), OCTETS);
        assert_eq!(subflows[0].path_mtu_bytes, 1500, "{end_ms} ms");
    }
}
