//! Transfers over TCP and MPTCP, both ways, with loss.

use transport::{ConnectionConfig, Event};
use units::Duration;

use crate::pair::{Pair, Side, assert_pattern};

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
