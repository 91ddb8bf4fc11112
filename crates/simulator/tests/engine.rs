//! The engine at both ends: whole transfers, checked by observers.

use core::net::SocketAddr;

use bytes::Bytes;
use network::impairment::{Duplicate, Reorder};
use network::{Link, LossModel, Path, PathEnds, Queue, Trace, TwoHosts};
use simulator::app::{Echo, RequestResponse, Transfer};
use simulator::{CLIENT, EndpointHost, Report, SERVER, Simulation, Source, two_hosts};
use transport::ConnectionConfig;
use units::{Duration, Instant, Rate};

const LIMIT: Instant = Instant::from_secs(600);

fn link(rate_mbps: u64, delay_ms: u64) -> Link {
    Link::new(Rate::from_mbps(rate_mbps), Duration::from_millis(delay_ms))
}

fn server(paths: &[PathEnds]) -> SocketAddr {
    SocketAddr::new(paths[0].server, 80)
}

fn client(paths: &[PathEnds]) -> SocketAddr {
    SocketAddr::new(paths[0].client, 0)
}

/// Downloads and checks `source`; returns the simulation and the receiver's report.
fn download(topology: TwoHosts, source: &Source, config: &ConnectionConfig) -> (Simulation<EndpointHost>, Report) {
    let (mut simulation, _) = two_hosts(topology, 7, |(id, paths), host| {
        if id == SERVER {
            host.app(Transfer::listen(server(paths), config.clone()).sending(source.clone()))
        } else {
            let receiver = Transfer::connect(client(paths), server(paths), config.clone());
            host.app(receiver.expecting(source.clone()).digesting())
        }
    });
    simulation.run_while(LIMIT, |simulation| simulation.host(CLIENT).reports()[0].completed == 0);
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let report = simulation.host(CLIENT).reports().remove(0);
    assert_eq!(report.received_bytes, source.len(), "at {:?}: {report:?}", simulation.now());
    (simulation, report)
}

#[test]
fn two_paths_carry_more_than_one() {
    let megabytes = Source::pattern(20_000_000);
    let config = ConnectionConfig::default();
    let two = TwoHosts::new(1).path(link(20, 10)).path(link(20, 10));
    let (simulation, report) = download(two, &megabytes, &config);
    // 20 MB take 8 s on one path and 4 s on two; coupled windows (RFC 6356) approach that slowly.
    assert!(report.completed_at.unwrap() < Instant::from_millis(6500), "{:?}", report.completed_at);
    let stats = simulation.host(CLIENT).endpoint.stats(report.connections[0]).unwrap();
    assert!(stats.mptcp && stats.subflows.len() >= 2, "{stats:?}");
}

/// The trace has an opportunity exactly at the time of sending, and there is no delay: the network has no event for it.
#[test]
fn what_a_link_passes_on_at_once_arrives_at_once() {
    let link = Link::traced(Trace::constant(Rate::from_mbps(12), Duration::from_millis(1)), Duration::ZERO);
    let source = Source::pattern(10_000);
    let (mut simulation, _) = two_hosts(TwoHosts::new(1).path(link), 7, |(id, paths), host| {
        let config = ConnectionConfig::default();
        if id == SERVER {
            host.app(Transfer::listen(server(paths), config).sending(source.clone()))
        } else {
            let receiver = Transfer::connect(client(paths), server(paths), config);
            host.app(receiver.at(Instant::from_millis(1)).expecting(source.clone()))
        }
    });
    simulation.run_until(Instant::from_millis(1));
    let connection = simulation.host(CLIENT).endpoint.connections().next().expect("it was opened");
    let stats = simulation.host(CLIENT).endpoint.stats(connection).expect("it was opened");
    assert_eq!(stats.established_at, Some(Instant::from_millis(1)));
    simulation.run_until(Instant::from_secs(1));
    assert_eq!(simulation.host(CLIENT).reports()[0].received_bytes, source.len());
}

#[test]
fn real_octets_arrive_with_their_digest() {
    use sha2::Digest;
    let octets: Vec<u8> = (0..1_000_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let expected: [u8; 32] = sha2::Sha256::digest(&octets).into();
    let topology = TwoHosts::new(1).path(link(20, 10)).path(link(5, 50));
    let (_, report) = download(topology, &Source::Bytes(Bytes::from(octets)), &ConnectionConfig::default());
    assert_eq!(report.sha256, Some(expected));
}

#[test]
fn impaired_paths_deliver_everything() {
    for seed in 1..=3 {
        let lossy = link(10, 20).queue(Queue::packets(50)).loss(LossModel::uniform(0.02));
        let bursty = link(5, 60).loss(LossModel::gilbert(0.02, 4.0));
        let reordering =
            Path::from(bursty).each_way(Duplicate::new(0.01)).to_client(Reorder::new(0.05, Duration::from_millis(8)));
        download(
            TwoHosts::new(seed).path(lossy).path(reordering),
            &Source::pattern(3_000_000),
            &ConnectionConfig::default(),
        );
    }
}

#[test]
fn plain_tcp_and_ipv6_work_too() {
    let plain = ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
    let lossy = || link(10, 20).loss(LossModel::uniform(0.01));
    let (simulation, report) = download(TwoHosts::new(1).path(lossy()).ipv6(), &Source::pattern(2_000_000), &plain);
    assert!(!simulation.host(CLIENT).endpoint.stats(report.connections[0]).unwrap().mptcp);
}

#[test]
fn same_seeds_same_run() {
    let run = |seed| {
        let lossy = link(10, 20).loss(LossModel::uniform(0.01));
        let topology = TwoHosts::new(seed).path(lossy).path(link(5, 50));
        let (simulation, report) = download(topology, &Source::pattern(1_000_000), &ConnectionConfig::default());
        (simulation.fingerprint(), report.completed_at)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn an_echo_answers_every_request() {
    let config = ConnectionConfig::default();
    let (mut simulation, _) = two_hosts(TwoHosts::new(1).path(link(100, 10)), 1, |(id, paths), host| {
        if id == SERVER {
            host.app(Echo::listen(server(paths), config.clone()))
        } else {
            host.app(RequestResponse::new(client(paths), server(paths), config.clone(), 10, 1000))
        }
    });
    simulation.run_while(LIMIT, |simulation| simulation.host(CLIENT).reports()[0].completed == 0);
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let report = simulation.host(CLIENT).reports().remove(0);
    assert_eq!((report.received_bytes, report.latencies.len()), (10_000, 10));
    // A request of one segment and its answer: slightly more than one round trip of 20 ms.
    let quick = Duration::from_millis(20)..Duration::from_millis(21);
    assert!(report.latencies.iter().all(|latency| quick.contains(latency)), "{:?}", report.latencies);
}
