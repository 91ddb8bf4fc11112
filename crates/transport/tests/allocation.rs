//! No allocation per packet in steady state, counted by the allocator itself.

mod steady;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use steady::Steady;
use transport::ConnectionConfig;
use transport::receiver_centric::ReceiverCentric;

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
// SAFETY: the system's allocator does all the work; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: what the caller promises is passed on as it is.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: what the caller promises is passed on as it is.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: what the caller promises is passed on as it is.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WARM_UP: u64 = 500_000;
const MEASURED: u64 = 100_000;

fn allocations_of(config: &ConnectionConfig) -> u64 {
    let mut world = Steady::bulk(config);
    world.run(WARM_UP);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    world.run(MEASURED);
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    let stats = world.client.stats(world.connections[0].1).unwrap();
    let busy = stats.subflows.iter().filter(|subflow| subflow.received_segments > 10_000).count();
    assert!(busy >= 2, "{:#?}", stats.subflows);
    after - before
}

/// One test function: the counter sees all threads.
#[test]
fn a_bulk_transfer_over_two_paths_allocates_nothing() {
    let plain = ConnectionConfig::default();
    assert_eq!(allocations_of(&plain), 0, "defaults");
    let careful = ConnectionConfig { checksum: true, scheduler: "round-robin".into(), ..plain.clone() };
    assert_eq!(allocations_of(&careful), 0, "checksums, round robin");
    // Rounds go with every data segment; reports, a few a round-trip time, are the second option of an ACK.
    let receiver_centric = ConnectionConfig { receiver_centric: Some(ReceiverCentric::DEFAULT), ..plain.clone() };
    let reports = allocations_of(&receiver_centric);
    assert!((1..MEASURED / 100).contains(&reports), "MPTCP-rec: {reports}");
    let redundant = ConnectionConfig { scheduler: "redundant".into(), ..plain };
    assert_eq!(allocations_of(&redundant), 0, "redundant");
}
