//! Settings that change while a connection over two paths carries data, and requests of applications.

use transport::congestion::{CONTROLLERS, ControllerSpec};
use transport::scheduler::SCHEDULERS;
use transport::{ConnectionConfig, ConnectionId, Received, SettingsChange, SubflowId};
use units::Duration;

use crate::pair::{Pair, Side, assert_pattern, client_address, pattern, server_address};

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

fn over_two_paths(seed: u64) -> (Pair, ConnectionId, ConnectionId) {
    over_two_paths_with(config(), seed)
}

fn over_two_paths_with(config: ConnectionConfig, seed: u64) -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(&[10, 25], config.clone(), seed);
    let (client, server) = pair.establish(config);
    pair.client.add_subflow(client, client_address(1), server_address(0), false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    (pair, client, server)
}

/// Every controller takes over from another in the middle of a transfer with losses, every scheduler likewise, and the
/// stream arrives intact.
#[test]
fn controllers_and_schedulers_change_in_the_middle_of_a_transfer() {
    const PIECE: u32 = 400_000;
    let (mut pair, client, server) = over_two_paths(3);
    pair.loss = 0.01;
    let mut received = Vec::new();
    // The sequence visits every controller after its neighbour, the last before the first, and one that paces in
    // between.
    for (n, known) in CONTROLLERS.iter().chain([&CONTROLLERS[0]]).enumerate() {
        for name in [known.name, "bbr", known.name] {
            let change = SettingsChange {
                congestion: Some(ControllerSpec::named(name)),
                scheduler: Some(SCHEDULERS[n % SCHEDULERS.len()].name.into()),
                ..SettingsChange::default()
            };
            pair.client.change(client, &change, pair.now).unwrap();
            assert_eq!(pair.client.config(client).unwrap().congestion.name, name);
            let written = pair.client.stats(client).unwrap().written_bytes;
            assert_eq!(pair.client.send(client, pattern(written, PIECE), pair.now), Ok(PIECE as usize));
            pair.run_for(Duration::from_millis(150));
            while let Ok(Received::Data(piece)) = pair.server.recv(server, usize::MAX, pair.now) {
                received.push(piece);
            }
        }
    }
    let written = pair.client.stats(client).unwrap().written_bytes;
    for _ in 0..3000 {
        if pair.client.stats(client).unwrap().acked_bytes == written {
            break;
        }
        pair.run_for(Duration::from_millis(100));
        while let Ok(Received::Data(piece)) = pair.server.recv(server, usize::MAX, pair.now) {
            received.push(piece);
        }
    }
    assert_pattern(&received, written);
    for subflow in pair.client.stats(client).unwrap().subflows {
        assert!(subflow.acked_bytes > 1_000_000, "both paths carry data: {subflow:?}");
    }
}

/// Sends a little data at a time, 200 kB in all: BBR believes that the path is slow.
fn trickle(pair: &mut Pair, client: ConnectionId, server: ConnectionId) {
    for n in 0..200 {
        pair.client.send(client, pattern(n * 1000, 1000), pair.now).unwrap();
        pair.run_for(Duration::from_millis(50));
        let _ = pair.server.recv(server, usize::MAX, pair.now);
    }
}

/// A controller that does not pace is not limited by the pace of its predecessor.
#[test]
fn the_pace_goes_with_its_controller() {
    let burst = |after: Option<&str>| {
        let (mut pair, client, server) = over_two_paths(4);
        let switch = |pair: &mut Pair, name: &str| {
            let congestion = Some(ControllerSpec::named(name));
            pair.client.change(client, &SettingsChange { congestion, ..SettingsChange::default() }, pair.now).unwrap();
        };
        switch(&mut pair, "bbr");
        trickle(&mut pair, client, server);
        after.into_iter().for_each(|name| switch(&mut pair, name));
        pair.log = Some(Vec::new());
        pair.client.send(client, pattern(200_000, 14_000), pair.now).unwrap();
        pair.run_for(Duration::ZERO);
        pair.logged(|side, segment| side == Side::Client && !segment.payload.is_empty()).len()
    };
    let (free, paced) = (burst(Some("lia")), burst(None));
    assert!(free >= 2 * paced, "{free} segments leave at once, and {paced} when paced, with the same windows");
}

/// The driver cuts super-segments, but all their packets leave at once: with a pace they are no longer than the pace
/// allows in a moment.
#[test]
fn a_paced_subflow_sends_no_long_super_segments() {
    let config = ConnectionConfig { congestion: ControllerSpec::named("bbr"), offload_max_bytes: 65_000, ..config() };
    let (mut pair, client, server) = over_two_paths_with(config, 4);
    trickle(&mut pair, client, server);
    pair.log = Some(Vec::new());
    pair.client.send(client, pattern(200_000, 14_000), pair.now).unwrap();
    pair.run_for(Duration::ZERO);
    let mss = pair.client.mss(client, SubflowId(0)).unwrap();
    let sent = pair.logged(|side, segment| side == Side::Client && !segment.payload.is_empty());
    let longest = sent.iter().map(|segment| segment.payload.len()).max();
    assert!(longest.is_some_and(|bytes| bytes <= 2 * mss as usize), "{longest:?} octets, in packets of {mss}");
}

#[test]
fn a_cork_holds_over_all_subflows() {
    let (mut pair, client, server) = over_two_paths(5);
    pair.client.set_corked(client, true, pair.now).unwrap();
    pair.client.send(client, pattern(0, 3000), pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    let readable = pair.server.readable_bytes(server);
    let mss = pair.client.mss(client, SubflowId(0)).unwrap();
    assert_eq!(readable, u64::from(2 * mss), "two whole segments of {mss} octets");
    pair.client.set_corked(client, false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server.readable_bytes(server), 3000);
}

#[test]
fn an_accepted_connection_knows_its_addresses() {
    let mut pair = Pair::new(&[10, 25], config(), 6);
    let client = pair.connect(config());
    assert_eq!(pair.server.pending_accepts(pair.listener), 0);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server.pending_accepts(pair.listener), 1);
    let server = pair.server.accept(pair.listener).unwrap();
    assert_eq!(pair.server.pending_accepts(pair.listener), 0);
    let (local, remote) = pair.server.addresses(server).unwrap();
    assert_eq!((local, remote.ip()), (server_address(0), client_address(0).ip()));
    assert_eq!(pair.client.addresses(client), Some((remote, local)));
    pair.exchange_and_close(client, server);
    assert_eq!(pair.client.addresses(client), None);
}
