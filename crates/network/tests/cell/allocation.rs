//! In steady state neither TTIs nor packets allocate: memory does not grow with simulated time.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;
use std::cell::Cell;

use network::cell::{CellConfig, HarqConfig, RESOURCE_SCHEDULERS};
use units::{Instant, Probability};

use super::rig::Rig;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    ALLOCATIONS.with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged.
// SAFETY: the system's allocator does all the work; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_one();
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations in ten thousand TTIs, after five thousand TTIs.
fn allocations(scheduler: &str, block_error_rate: f64) -> u64 {
    let block_error_rate = Probability::new(block_error_rate).unwrap();
    let harq = HarqConfig { block_error_rate, ..HarqConfig::default() };
    let mut rig = Rig::new(CellConfig { scheduler: scheduler.into(), harq, ..CellConfig::default() });
    // Space for the test's own records.
    rig.arrived.reserve(100_000);
    rig.saturate(60, Instant::from_secs(5));
    let before = ALLOCATIONS.get();
    rig.run(Instant::from_secs(15), true);
    ALLOCATIONS.get() - before
}

/// 10,000 TTIs with 25,000 packets: only rings may grow, for a longer wait than any before.
#[test]
fn a_saturated_cell_keeps_its_memory() {
    for scheduler in RESOURCE_SCHEDULERS {
        for block_error_rate in [0.0, 0.1] {
            let count = allocations(scheduler.name, block_error_rate);
            assert!(count < 10, "{}: {count}", scheduler.name);
        }
    }
}
