//! Captures of the simulator: no malformed packet, and an MPTCP analysis that agrees with the engine's own.

use captures::{Connection, Inspection, Recording, available, inspect, record};
use core::net::SocketAddr;
use network::{Link, LossModel, TwoHosts};
use simulator::app::Transfer;
use simulator::{CLIENT, Source, two_hosts};
use tempfile::TempDir;
use transport::ConnectionConfig;
use units::{Duration, Instant, Rate};

const BYTES: u64 = 300_000;
/// Subtypes of RFC 8684 section 8.
const MP_CAPABLE: u64 = 0;
const MP_JOIN: u64 = 1;
const DSS: u64 = 2;

fn link() -> Link {
    Link::new(Rate::from_mbps(10), Duration::from_millis(10)).loss(LossModel::uniform(0.01))
}

/// A download of [`BYTES`] octets over `topology`; both hosts are configured by `config`.
fn download(topology: TwoHosts, config: &ConnectionConfig) -> (TempDir, Recording) {
    let (simulation, _) = two_hosts(topology, 7, |(id, paths), host| {
        let server = SocketAddr::new(paths[0].server, 40_000);
        if id == CLIENT {
            let local = SocketAddr::new(paths[0].client, 0);
            host.app(Transfer::connect(local, server, config.clone()).expecting(Source::pattern(BYTES)))
        } else {
            host.app(Transfer::listen(server, config.clone()).sending(Source::pattern(BYTES)))
        }
    });
    let directory = TempDir::new().unwrap();
    let recording = record(simulation, Instant::from_secs(20), directory.path());
    (directory, recording)
}

/// Returns tshark's findings, after the checks that hold for every capture.
fn inspected(recording: &Recording) -> Inspection {
    let inspection = inspect(&recording.path);
    assert!(inspection.packets > 100, "{inspection:?}");
    assert_eq!((&inspection.broken, &inspection.odd), (&vec![], &vec![]));
    inspection
}

/// Returns the only MPTCP connection, and checks that both agree on its keys and length.
fn agreed(recording: &Recording, inspection: &Inspection) -> Connection {
    assert_eq!(inspection.connections.len(), 1, "{inspection:?}");
    let (seen, known) = (&inspection.connections[&0], &recording.connections[0]);
    let tokens = [known.local_token, known.remote_token].map(Option::unwrap);
    assert_eq!(seen.tokens, tokens.into());
    assert_eq!(seen.idsns.len(), 2);
    assert_eq!(seen.dsn_end_max, BYTES);
    assert_eq!(known.received_bytes, BYTES);
    seen.clone()
}

#[test]
fn joins_go_to_the_connection_whose_token_they_carry() {
    if !available() {
        return;
    }
    let topology = TwoHosts::new(1).path(link()).path(link()).path(link()).one_server_address();
    let (_directory, recording) = download(topology, &ConnectionConfig::default());
    let inspection = inspected(&recording);
    let connection = agreed(&recording, &inspection);
    assert_eq!(connection.streams.len(), 3);
    assert_eq!(connection.joined_with, [recording.connections[0].remote_token.unwrap()].into());
    assert!(inspection.subtypes.is_superset(&[MP_CAPABLE, MP_JOIN, DSS].into()));
    let arrived: u64 = recording.connections[0].subflows.iter().map(|subflow| subflow.received_bytes).sum();
    assert_eq!(inspection.payload_bytes.values().sum::<u64>(), arrived);
}

#[test]
fn checksums_and_ipv6_are_dissected_too() {
    if !available() {
        return;
    }
    let config = ConnectionConfig { checksum: true, ..ConnectionConfig::default() };
    for topology in [TwoHosts::new(2).path(link()).path(link()), TwoHosts::new(3).path(link()).path(link()).ipv6()] {
        let (_directory, recording) = download(topology.one_server_address(), &config);
        let inspection = inspected(&recording);
        assert_eq!(agreed(&recording, &inspection).streams.len(), 2);
    }
}

#[test]
fn addresses_are_announced_in_options_that_others_can_read() {
    if !available() {
        return;
    }
    const ADD_ADDR: u64 = 3;
    let (_directory, recording) = download(TwoHosts::new(4).path(link()).path(link()), &ConnectionConfig::default());
    let inspection = inspected(&recording);
    let connection = agreed(&recording, &inspection);
    assert!(inspection.subtypes.contains(&ADD_ADDR), "{:?}", inspection.subtypes);
    assert!(connection.streams.len() >= 2, "{connection:?}");
}

#[test]
fn plain_tcp_is_plain() {
    if !available() {
        return;
    }
    let config = ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
    let (_directory, recording) = download(TwoHosts::new(5).path(link()), &config);
    let inspection = inspected(&recording);
    assert!(inspection.connections.is_empty() && inspection.subtypes.is_empty(), "{inspection:?}");
    assert!(inspection.payload_bytes[&0] >= BYTES);
}

#[test]
fn a_damaged_capture_is_found_out() {
    if !available() {
        return;
    }
    let (_directory, recording) = download(TwoHosts::new(6).path(link()), &ConnectionConfig::default());
    let mut octets = std::fs::read(&recording.path).unwrap();
    let middle = octets.len() / 2;
    // Payload octets in the middle of a packet: only checksums can detect the change.
    octets[middle] ^= 0x55;
    std::fs::write(&recording.path, octets).unwrap();
    assert_eq!(inspect(&recording.path).broken.len(), 1);
}

#[test]
fn the_demo_s_captures_are_clean_at_both_ends() {
    if !available() {
        return;
    }
    let text = include_str!("../../../scenarios/demo.toml");
    let size = "workload.size=500 kB".parse().unwrap();
    let scenario = lab::scenario::load("demo.toml", text, &[size]).unwrap();
    let directory = TempDir::new().unwrap();
    let run = lab::run::run(&scenario, Some(directory.path()), &mut |_| {}).unwrap();
    assert_eq!(run.recordings.len(), 2);
    for capture in &run.recordings {
        let inspection = inspect(capture);
        assert_eq!((&inspection.broken, &inspection.odd), (&vec![], &vec![]), "{}", capture.display());
        let connection = &inspection.connections[&0];
        assert_eq!((connection.streams.len(), connection.dsn_end_max), (4, 500_000));
        assert!(connection.tokens.is_superset(&connection.joined_with) && connection.joined_with.len() == 1);
    }
}
