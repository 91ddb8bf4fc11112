//! A whole endpoint under arbitrary operations. The fuzzer drives the same interpreter (`fuzz/`, target `endpoint`).

use rand_core::RngCore;
use units::Prng;

use crate::live;
use crate::operations;

/// Minimum number of inputs per run: enough to reach every operation in every state within seconds. The fuzzer does the
/// rest.
const INPUTS_MIN: u64 = 4000;
const INPUT_BYTES_MAX: u64 = 1200;

/// Returns the number of inputs: the number of proptest cases if that is larger.
fn inputs() -> u64 {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    wanted.unwrap_or(0).max(INPUTS_MIN)
}

#[test]
fn no_sequence_of_operations_breaks_an_invariant() {
    for seed in 0..inputs() {
        let mut prng = Prng::fork(seed, "operations");
        let mut input = vec![0; prng.below(INPUT_BYTES_MAX) as usize];
        prng.fill_bytes(&mut input);
        println!("seed {seed}");
        operations::run(&input, live::live_bytes);
    }
}
