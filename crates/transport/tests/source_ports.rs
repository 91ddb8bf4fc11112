//! The endpoint's choice of source ports: RFC 6056, algorithm 4 of section 3.3.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use transport::error::ConnectError;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::{Duration, Instant};

use crate::pair::{Pair, Side, client_address, is_rst, is_syn, server_address};

const FIRST: u16 = 49152;

fn endpoint(seed: u64) -> Endpoint {
    Endpoint::with_seed(EndpointConfig::default(), seed)
}

fn remote(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, last], port))
}

/// Opens a connection. Returns the source port of its SYN.
fn try_connect(endpoint: &mut Endpoint, remote: SocketAddr) -> Result<u16, ConnectError> {
    let local = SocketAddr::from(([10, 0, 0, 1], 0));
    let config = ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
    endpoint.connect(local, remote, config, Instant::ZERO)?;
    Ok(endpoint.poll_transmit(Instant::ZERO).expect("a SYN").src.port())
}

fn connect(endpoint: &mut Endpoint, remote: SocketAddr) -> u16 {
    try_connect(endpoint, remote).expect("a free port")
}

/// A restarted process must avoid the TIME-WAIT of the former one. With 16,384 ports, 100 seeds that choose at random
/// share a port about 0.3 times on average, and hardly ever 5 times.
#[test]
fn another_seed_begins_elsewhere() {
    let ports: BTreeSet<u16> = (1..=100).map(|seed| connect(&mut endpoint(seed), remote(1, 80))).collect();
    assert!(ports.len() > 95, "{} different first ports of 100 seeds", ports.len());
    assert!(ports.iter().all(|port| *port >= FIRST));
    assert!(ports.iter().any(|port| *port < FIRST + 4096) && ports.iter().any(|port| *port > u16::MAX - 4096));
}

/// A run is a function of the seed.
#[test]
fn the_same_seed_chooses_the_same_ports() {
    let run = || {
        let mut endpoint = endpoint(7);
        (0..50).map(|n| connect(&mut endpoint, remote(n % 5, 80))).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

/// Section 3.1: a port for one destination is reused as late as possible, after the peer's TIME-WAIT.
#[test]
fn ports_towards_one_destination_go_round() {
    let mut endpoint = endpoint(3);
    let mut last = connect(&mut endpoint, remote(1, 80));
    for _ in 0..100 {
        let next = connect(&mut endpoint, remote(1, 80));
        assert_eq!(next, last.checked_add(1).unwrap_or(FIRST));
        last = next;
    }
}

/// Section 3.3.4: the port for one destination does not reveal that for another.
#[test]
fn ports_towards_other_destinations_lie_elsewhere() {
    let mut endpoint = endpoint(3);
    let mut destinations: Vec<_> = (1..=20).map(|last| remote(last, 80)).collect();
    destinations.extend((81..=100).map(|port| remote(1, port)));
    let ports: Vec<u16> = destinations.iter().map(|destination| connect(&mut endpoint, *destination)).collect();
    let near = ports.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 16).count();
    assert!(near <= 2, "{near} of 39 neighbours are near: {ports:?}");
}

/// Every port of the range is used before the choice fails.
#[test]
fn all_ports_are_found_and_then_none() {
    let config = EndpointConfig { ephemeral_port_first: u16::MAX - 9, ..EndpointConfig::default() };
    let mut endpoint = Endpoint::with_seed(config, 5);
    let ports: BTreeSet<u16> = (0..10).map(|_| connect(&mut endpoint, remote(1, 80))).collect();
    assert_eq!(ports, (u16::MAX - 9..=u16::MAX).collect());
    assert_eq!(try_connect(&mut endpoint, remote(1, 80)), Err(ConnectError::InUse));
    assert!(try_connect(&mut endpoint, remote(2, 80)).is_ok(), "another destination");
}

/// If the same port must be used again, the peer's TIME-WAIT costs one round trip instead of the second of the SYN's
/// timer.
#[test]
fn the_time_wait_of_a_former_process_costs_one_round_trip() {
    let config = ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() };
    let mut pair = Pair::new(&[10], config.clone(), 1);
    let local = SocketAddr::new(client_address(0).ip(), 50_000);
    let client = pair.client.connect(local, server_address(0), config.clone(), pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    let server = pair.server.accept(pair.listener).unwrap();
    // The server closes first, so it has the TIME-WAIT.
    pair.server.close(server, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    pair.client.close(client, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server.stats(server).unwrap().subflows[0].state, "TIME-WAIT");

    pair.server.release(server);
    pair.client = endpoint(77);
    pair.log = Some(Vec::new());
    let client = pair.client.connect(local, server_address(0), config, pair.now).unwrap();
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.logged(|side, segment| side == Side::Client && is_syn(segment)).len(), 2);
    assert_eq!(pair.logged(|side, segment| side == Side::Client && is_rst(segment)).len(), 1);
    let server = pair.server.accept(pair.listener).expect("within 50 ms");
    assert_eq!(pair.client.stats(client).unwrap().state, "ESTABLISHED");
    pair.exchange_and_close(client, server);
}
