//! Feeds arbitrary segments, time-outs and commands to a whole endpoint, and checks invariants after each.
//!
//! Input: a sequence of operations, as interpreted by the engine's tests. Set `OPERATIONS_TRACE` to see the segments of
//! one input.

#![no_main]

#[path = "../../crates/transport/tests/forger/mod.rs"]
mod forger;
#[path = "../../crates/transport/tests/live/mod.rs"]
mod live;
#[path = "../../crates/transport/tests/operations/mod.rs"]
mod operations;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| operations::run(input, live::live_bytes));
