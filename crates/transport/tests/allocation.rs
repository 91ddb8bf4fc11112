//! Tests that steady state allocates nothing per packet. The allocator itself counts.

use transport::ConnectionConfig;
use transport::receiver_centric::ReceiverCentric;

use crate::live::allocations;
use crate::steady::Steady;

const WARM_UP: u64 = 500_000;
const MEASURED: u64 = 100_000;

fn allocations_of(config: &ConnectionConfig) -> u64 {
    let mut world = Steady::bulk(config);
    world.run(WARM_UP);
    let before = allocations();
    world.run(MEASURED);
    let after = allocations();
    let stats = world.client.stats(world.connections[0].1).unwrap();
    let busy = stats.subflows.iter().filter(|subflow| subflow.received_segments > 10_000).count();
    assert!(busy >= 2, "{:#?}", stats.subflows);
    after - before
}

#[test]
fn a_bulk_transfer_over_two_paths_allocates_nothing() {
    let plain = ConnectionConfig::default();
    assert_eq!(allocations_of(&plain), 0, "defaults");
    let careful = ConnectionConfig { checksum: true, scheduler: "round-robin".into(), ..plain.clone() };
    assert_eq!(allocations_of(&careful), 0, "checksums, round robin");
    // Every data segment carries a round. A report, sent a few times per round-trip time, is the second option of an
    // ACK.
    let receiver_centric = ConnectionConfig { receiver_centric: Some(ReceiverCentric::DEFAULT), ..plain.clone() };
    let reports = allocations_of(&receiver_centric);
    assert!((1..MEASURED / 100).contains(&reports), "MPTCP-rec: {reports}");
    let redundant = ConnectionConfig { scheduler: "redundant".into(), ..plain };
    assert_eq!(allocations_of(&redundant), 0, "redundant");
}
