//! Transfers over TCP and MPTCP, both ways, with loss.

use transport::{ConnectionConfig, Event};
use units::Duration;

use crate::pair::{Pair, Side, assert_pattern, change, is_syn, is_syn_ack};

const MEGABYTE: u64 = 1 << 20;

fn tcp() -> ConnectionConfig {
    ConnectionConfig { mptcp: false, ..ConnectionConfig::default() }
}

#[test]
fn plain_tcp_both_ways() {
    let mut pair = Pair::new(&[10], tcp(), 1);
    let (client, server) = pair.establish(tcp());
    assert_eq!(pair.client_events[0], Event::Connected { connection: client, mptcp: false });
    assert_pattern(&pair.transfer(Side::Client, client, server, MEGABYTE), MEGABYTE);
    assert_pattern(&pair.transfer(Side::Server, server, client, MEGABYTE), MEGABYTE);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client.stats(client).unwrap().state, "TIME-WAIT");
    assert_eq!(pair.server.stats(server).unwrap().state, "CLOSED");
}

#[test]
fn mptcp_over_four_paths() {
    let config = ConnectionConfig::default();
    let mut pair = Pair::new(&[10, 20, 30, 40], config.clone(), 2);
    let (client, server) = pair.establish(config);
    assert!(pair.client.stats(client).unwrap().mptcp);
    assert_pattern(&pair.transfer(Side::Server, server, client, 20 * MEGABYTE), 20 * MEGABYTE);
    let stats = pair.server.stats(server).unwrap();
    assert!(stats.subflows.len() >= 4, "{} subflows", stats.subflows.len());
    assert!(stats.subflows.iter().filter(|subflow| subflow.acked_bytes > 0).count() >= 4);
    assert_pattern(&pair.transfer(Side::Client, client, server, MEGABYTE), MEGABYTE);
    pair.run_for(Duration::from_secs(2));
    assert!(pair.client_events.iter().any(|event| matches!(event, Event::Closed { .. })));
    assert!(pair.server_events.iter().any(|event| matches!(event, Event::Closed { .. })));
}

#[test]
fn losses_are_repaired() {
    for seed in 0..8 {
        for config in [tcp(), ConnectionConfig::default()] {
            let mut pair = Pair::new(&[5, 25], config.clone(), seed);
            let (client, server) = pair.establish(config);
            pair.loss = 0.03;
            assert_pattern(&pair.transfer(Side::Server, server, client, 3 * MEGABYTE), 3 * MEGABYTE);
            assert_pattern(&pair.transfer(Side::Client, client, server, MEGABYTE), MEGABYTE);
        }
    }
}

/// A network removes timestamps: from the SYN/ACK, or from everything, in one direction or both, after the connection
/// SYNs. Nothing stands still, and losses are repaired.
#[test]
fn timestamps_that_a_network_removes_are_not_missed() {
    let sides: [&[Side]; 3] = [&[Side::Client], &[Side::Server], &[Side::Client, Side::Server]];
    for (seed, (on_syn_ack, sides)) in
        [(true, sides[1]), (false, sides[0]), (false, sides[1]), (false, sides[2])].into_iter().enumerate()
    {
        let config = ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() };
        let mut pair = Pair::new(&[10], config.clone(), seed as u64);
        pair.interfere = change(move |side, segment| {
            if sides.contains(&side) && is_syn_ack(segment) == on_syn_ack && !is_syn(segment) {
                segment.options.timestamps = None;
            }
        });
        let (client, server) = pair.establish(config);
        pair.loss = 0.01;
        let before = pair.now;
        assert_pattern(&pair.transfer(Side::Server, server, client, MEGABYTE), MEGABYTE);
        assert_pattern(&pair.transfer(Side::Client, client, server, MEGABYTE), MEGABYTE);
        let took = pair.now.saturating_since(before);
        assert!(took < Duration::from_secs(20), "{took:?} {on_syn_ack} {sides:?}");
    }
}
