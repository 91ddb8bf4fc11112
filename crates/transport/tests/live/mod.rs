//! An allocator that counts the octets this thread holds and its requests for memory, so that tests can bound the cost
//! of an attack or a packet.

#![allow(dead_code, reason = "tests and the fuzzer use their own parts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn note(bytes: isize, allocations: u64) {
    // Allocations of a thread that is being destroyed need not be counted.
    let _ = LIVE_BYTES.try_with(|live| live.set(live.get() + bytes));
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
}

// SAFETY: every call is passed on unchanged to the system's allocator.
// SAFETY: the system's allocator does all the work; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize, 1);
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(-(layout.size() as isize), 0);
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as isize - layout.size() as isize, 1);
        // SAFETY: the caller's guarantees are passed on unchanged.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the octets that this thread has allocated and not freed.
pub fn live_bytes() -> isize {
    LIVE_BYTES.with(Cell::get)
}

/// Returns how often this thread has requested memory, reallocations included.
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}
