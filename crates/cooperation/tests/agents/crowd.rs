//! A thousand relays pair and leave within a minute, and leave nothing behind at the destination.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;
use std::cell::Cell;

use units::Duration;

use super::stage::{DESTINATION_KEY, Stage, crowded_stage};

const RELAYS: usize = 1000;

/// Counts the octets that each thread holds.
struct Counting;

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    HELD_BYTES.with(|held| held.set(held.get() + bytes));
}

// SAFETY: the system's allocator does all the work; counting touches none of its memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// All relays appear and are called within half a minute, and leave in the other half; the destination keeps calling
/// them in vain.
fn a_minute(stage: &mut Stage, life: u8) {
    let begin = stage.simulation.now();
    for step in 0..60 {
        stage.run_until(begin + Duration::from_millis(1000 * step));
        let batch = step as usize % 30 * RELAYS / 30..(step as usize % 30 + 1) * RELAYS / 30;
        if step < 30 {
            batch.for_each(|relay| stage.rouse(relay, life));
        } else {
            batch.for_each(|relay| stage.leave(relay));
        }
    }
    // Calls under way get no answer for 20 s.
    stage.run_until(begin + Duration::from_secs(90));
}

/// Returns the connections of the destination, and the octets that destination and network hold.
fn held(stage: &Stage) -> (usize, i64) {
    (stage.simulation.host(stage.destination).endpoint.footprint().connections, HELD_BYTES.get())
}

#[test]
fn a_thousand_relays_that_pair_and_leave_within_a_minute_leave_nothing_behind() {
    let mut stage = crowded_stage(RELAYS, DESTINATION_KEY, 0).0;
    (0..RELAYS).for_each(|relay| stage.leave(relay));
    let mut after = Vec::new();
    for life in 2..5 {
        a_minute(&mut stage, life);
        let opened = stage.opened_and_refused(0)[0].0;
        assert_eq!(opened, RELAYS as u64 * u64::from(life - 1), "every relay has paired");
        after.push(held(&stage));
    }
    assert!(after.iter().all(|(connections, _)| *connections <= RELAYS), "{after:?}");
    let grown = after[2].1 - after[1].1;
    assert!(grown < 50_000, "{grown} octets more after another thousand: {after:?}");
    assert_eq!(stage.simulation.broken_rules(), [""; 0]);
}
