//! Transfers through networks that interfere (RFC 8684 sections 3.7 and 6): the stream always arrives intact.

use core::net::SocketAddr;

use network::impairment::{Corrupt, Detection};
use network::middlebox::{Edit, EditStream, ForgetfulFirewall, Merge, ShiftDsn, Split, StripOn, StripOptions};
use network::{Link, Path, TwoHosts};
use simulator::app::Transfer;
use simulator::{CLIENT, EndpointHost, SERVER, Simulation, Source, two_hosts};
use transport::{ConnectionConfig, ConnectionStats};
use units::{Duration, Instant, Rate};

const LIMIT: Instant = Instant::from_secs(300);
const OCTETS: u64 = 2_000_000;

fn link() -> Link {
    Link::new(Rate::from_mbps(20), Duration::from_millis(10))
}

/// Downloads and checks a file; returns the simulation and the client's statistics.
fn download(topology: TwoHosts, config: &ConnectionConfig) -> (Simulation<EndpointHost>, ConnectionStats) {
    let source = Source::pattern(OCTETS);
    let (mut simulation, _) = two_hosts(topology, 3, |(id, paths), host| {
        let remote = SocketAddr::new(paths[0].server, 80);
        if id == SERVER {
            host.app(Transfer::listen(remote, config.clone()).sending(source.clone()))
        } else {
            let local = SocketAddr::new(paths[0].client, 0);
            host.app(Transfer::connect(local, remote, config.clone()).expecting(source.clone()))
        }
    });
    simulation.run_while(LIMIT, |simulation| simulation.host(CLIENT).reports()[0].completed == 0);
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let report = simulation.host(CLIENT).reports().remove(0);
    let stats = simulation.host(CLIENT).endpoint.stats(report.connections[0]).expect("the connection is known");
    assert_eq!(report.received_bytes, OCTETS, "at {:?}: {report:?} {stats:?}", simulation.now());
    (simulation, stats)
}

fn default() -> ConnectionConfig {
    ConnectionConfig::default()
}

/// Whether the engine detected the interference and gave up a subflow because of it (RFC 8684 section 3.7).
fn has_lost_a_subflow(stats: &ConnectionStats) -> bool {
    stats.mptcp && stats.subflows.iter().any(|subflow| subflow.closed_at.is_some())
}

#[test]
fn options_stripped_from_the_handshake_mean_plain_tcp() {
    let syn = Path::from(link()).to_server(StripOptions::mptcp(StripOn::Syn));
    let syn_ack = Path::from(link()).to_client(StripOptions::mptcp(StripOn::SynAck));
    for path in [syn, syn_ack] {
        let (_, stats) = download(TwoHosts::new(1).path(path), &default());
        assert!(!stats.mptcp, "{stats:?}");
    }
}

#[test]
fn options_stripped_right_after_the_handshake_mean_a_fallback() {
    let path = Path::from(link())
        .to_server(StripOptions::mptcp(StripOn::All).after(1))
        .to_client(StripOptions::mptcp(StripOn::All).after(1));
    let (_, stats) = download(TwoHosts::new(1).path(path), &default());
    assert!(stats.fell_back || !stats.mptcp, "{stats:?}");
}

#[test]
fn a_join_that_loses_its_options_leaves_the_first_subflow() {
    let second = Path::from(link()).to_server(StripOptions::mptcp(StripOn::Syn));
    let (_, stats) = download(TwoHosts::new(1).path(link()).path(second).one_server_address(), &default());
    assert!(stats.mptcp && !stats.fell_back, "{stats:?}");
}

#[test]
fn split_segments_keep_their_mapping() {
    let path = || Path::from(link()).to_client(Split::new(500));
    let (_, stats) = download(TwoHosts::new(1).path(path()).path(path()), &default());
    assert!(stats.mptcp && !stats.fell_back, "{stats:?}");
}

#[test]
fn merged_segments_lose_mappings_but_no_data() {
    let merging = Path::from(link()).to_client(Merge::new(9000, Duration::from_millis(2)));
    download(TwoHosts::new(1).path(merging).path(link()), &default());
}

#[test]
fn address_translation_goes_unnoticed() {
    let nat = || Path::from(link()).nat(Duration::from_secs(60));
    let (_, stats) = download(TwoHosts::new(1).path(nat()).path(nat()).one_server_address(), &default());
    assert!(stats.mptcp && stats.subflows.len() == 2, "{stats:?}");
}

/// Section 3.5: a RST ends a subflow. A RST from a middlebox ends no connection, even on the only path: the side that
/// opened the connection joins again, and the other side waits for that. A sender hears of the RST; a client that only
/// receives finds out by keep-alives.
#[test]
fn resets_of_a_firewall_that_forgets_end_no_connection() {
    let forgetful = || {
        let times = [200, 1700, 3500].map(Instant::from_millis);
        Path::from(link()).middlebox(ForgetfulFirewall::new(times))
    };
    for topology in [TwoHosts::new(1).path(forgetful()), TwoHosts::new(1).path(forgetful()).path(forgetful())] {
        let config = ConnectionConfig { keep_alive: Some(Duration::from_secs(5)), ..default() };
        let (_, stats) = download(topology.one_server_address(), &config);
        assert!(stats.mptcp && has_lost_a_subflow(&stats), "{stats:?}");
    }
}

/// As above, with resets by the engine itself: both paths begin to strip options in the middle, and joins lose theirs,
/// until the middleboxes are gone.
#[test]
fn options_stripped_on_both_paths_for_a_while_end_no_connection() {
    let stripping = || {
        let strip = || StripOptions::mptcp(StripOn::All).after(100).until(Instant::from_secs(4));
        Path::from(link()).to_server(strip()).to_client(strip())
    };
    let (_, stats) = download(TwoHosts::new(1).path(stripping()).path(stripping()).one_server_address(), &default());
    assert!(has_lost_a_subflow(&stats), "{stats:?}");
}

#[test]
fn checksums_find_changed_octets_on_one_of_two_paths() {
    let checksum = ConnectionConfig { checksum: true, ..default() };
    let corrupting = Path::from(link()).to_client(Corrupt::new(0.01, Detection::Undetected));
    let (_, stats) = download(TwoHosts::new(1).path(link()).path(corrupting).one_server_address(), &checksum);
    assert!(has_lost_a_subflow(&stats), "{stats:?}");
}

#[test]
fn checksums_find_inserted_octets_on_one_of_two_paths() {
    let checksum = ConnectionConfig { checksum: true, ..default() };
    let server = "10.1.1.1".parse().unwrap();
    let edit = Edit::Insert { at: 100_000, octets: b"inserted"[..].into() };
    let gateway = Path::from(link()).middlebox(EditStream::new(server, edit));
    let (_, stats) = download(TwoHosts::new(1).path(link()).path(gateway).one_server_address(), &checksum);
    assert!(has_lost_a_subflow(&stats), "{stats:?}");
}

#[test]
fn checksums_find_shifted_mappings_on_one_of_two_paths() {
    let checksum = ConnectionConfig { checksum: true, ..default() };
    let splicing = Path::from(link()).to_client(ShiftDsn::new(1000).after(20));
    let (_, stats) = download(TwoHosts::new(1).path(link()).path(splicing).one_server_address(), &checksum);
    assert!(has_lost_a_subflow(&stats), "{stats:?}");
}

#[test]
fn a_path_that_dies_hands_its_data_to_the_other() {
    let dying = Path::from(link()).down(Instant::from_millis(400)..Instant::FAR_FUTURE);
    let (simulation, stats) = download(TwoHosts::new(1).path(dying).path(link()).one_server_address(), &default());
    assert!(simulation.now() < Instant::from_secs(10), "{:?} {stats:?}", simulation.now());
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let path = Path::from(link()).down(Instant::from_millis(200)..Instant::from_millis(900));
    let (simulation, _) = download(TwoHosts::new(1).path(path), &default());
    assert!(simulation.now() < Instant::from_secs(6), "{:?}", simulation.now());
}
