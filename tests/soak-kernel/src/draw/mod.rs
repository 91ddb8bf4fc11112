//! Draws cases. Everything that takes long in real time is reduced to seconds.

mod engine;
mod fit;
mod kernel;
mod paths;
mod talks;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use soak::transport::case::Side;

use crate::case::{Action, Case, Deed};

/// Maximum number of paths of a case.
const PATHS_MAX: usize = 3;

/// Draws case `number` of a seed.
///
/// # Panics
/// Never: no strategy rejects a case.
pub fn draw(seed: u64, number: u64) -> Case {
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_le_bytes());
    octets[8..16].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &octets);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    fit::fitted(cases().new_tree(&mut runner).expect("no strategy rejects a case").current())
}

fn cases() -> impl Strategy<Value = Case> {
    let shape = (any::<u64>(), proptest::bool::weighted(0.25), pick(&Side::ALL));
    let hosts = (kernel::kernels(), engine::engines());
    (shape, hosts, paths::paths(), talks::talks(), actions()).prop_map(
        |((seed, ipv6, kernel_is), (kernel, engine), paths, talks, actions)| Case {
            seed,
            ipv6,
            kernel_is,
            kernel,
            engine,
            paths,
            talks,
            actions,
        },
    )
}

/// Draws one of these.
fn pick<T: Clone + std::fmt::Debug + 'static>(from: &[T]) -> impl Strategy<Value = T> + use<T> {
    select(from.to_vec())
}

/// Draws the number of a path, including the first.
fn path() -> impl Strategy<Value = usize> {
    0..PATHS_MAX
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = (0..2500_u64, deeds()).prop_map(|(at_ms, deed)| Action { at_ms, deed });
    prop_oneof![
        1 => Just(Vec::new()),
        1 => proptest::collection::vec(action, 1..6),
    ]
}

fn deeds() -> impl Strategy<Value = Deed> {
    let backup = any::<bool>;
    prop_oneof![
        (path(), 10..3000_u64).prop_map(|(path, for_ms)| Deed::Cut { path, for_ms }),
        kernel::endpoint().prop_map(Deed::KernelAdds),
        path().prop_map(|path| Deed::KernelRemoves { path }),
        (path(), backup()).prop_map(|(path, backup)| Deed::KernelSetsPriority { path, backup }),
        (path(), backup()).prop_map(|(path, backup)| Deed::EngineAdds { path, backup }),
        path().prop_map(|path| Deed::EngineLoses { path }),
        path().prop_map(|path| Deed::EngineAnnounces { path }),
        path().prop_map(|path| Deed::EngineWithdraws { path }),
        (0..4_u16, backup()).prop_map(|(subflow, backup)| Deed::EngineSetsPriority { subflow, backup }),
    ]
}
