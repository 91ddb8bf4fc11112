//! An allocator that knows how many octets each thread holds, and how often it asked for memory.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;
use std::cell::Cell;

struct Counting;

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: i64, allocations: u64) {
    HELD_BYTES.with(|held| held.set(held.get() + bytes));
    ALLOCATIONS.with(|count| count.set(count.get() + allocations));
}

// SAFETY: every call goes to the system's allocator unchanged.
// SAFETY: the system's allocator does all the work; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64, 1);
        // SAFETY: what the caller promises is passed on as it is.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64), 0);
        // SAFETY: what the caller promises is passed on as it is.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64, 1);
        // SAFETY: what the caller promises is passed on as it is.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Octets that this thread allocated and has not freed.
pub fn held_bytes() -> i64 {
    HELD_BYTES.get()
}

/// How often this thread has asked for memory, or for more of it.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}
