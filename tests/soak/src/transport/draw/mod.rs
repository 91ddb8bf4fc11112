//! Draws cases. The first option of each choice is the simplest; failing cases shrink towards it.

mod paths;
mod settings;
mod talks;

use proptest::prelude::*;
use proptest::sample::select;

use crate::transport::case::{Action, Case, Deed, Side};

/// Draws cases of every sort.
pub fn cases() -> BoxedStrategy<Case> {
    let shape = (any::<u64>(), proptest::bool::weighted(0.2), proptest::bool::weighted(0.5));
    let hosts = (settings::settings(), settings::settings());
    let happening = (talks::talks(), actions());
    (shape, hosts, paths::paths(), happening)
        .prop_map(|(shape, (client, server), paths, (talks, actions))| {
            let (seed, ipv6, one_server_address) = shape;
            Case { seed, ipv6, one_server_address, client, server, paths, talks, actions }
        })
        .boxed()
}

/// Draws one of these.
fn pick<T: Clone + std::fmt::Debug + 'static>(from: &[T]) -> impl Strategy<Value = T> + use<T> {
    select(from.to_vec())
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = (0..15_000_u64, sides(), 0..4_usize, deeds());
    let action = action.prop_map(|(at_ms, side, connection, deed)| Action { at_ms, side, connection, deed });
    prop_oneof![
        2 => Just(Vec::new()),
        3 => proptest::collection::vec(action, 1..12),
    ]
}

fn sides() -> impl Strategy<Value = Side> {
    select(vec![Side::Client, Side::Server])
}

fn deeds() -> impl Strategy<Value = Deed> {
    let few = || 0..4_usize;
    prop_oneof![
        (few(), any::<bool>()).prop_map(|(subflow, backup)| Deed::SetPriority { subflow, backup }),
        (few(), few(), any::<bool>()).prop_map(|(from, to, backup)| Deed::AddSubflow { from, to, backup }),
        few().prop_map(|subflow| Deed::RemoveSubflow { subflow }),
        (few(), any::<bool>()).prop_map(|(path, port)| Deed::Announce { path, port }),
        few().prop_map(|path| Deed::Withdraw { path }),
        few().prop_map(|path| Deed::LoseAddress { path }),
        (few(), select(vec![100_000_u64, 10_000, 0]))
            .prop_map(|(subflow, cwnd_bytes)| Deed::CutWindow { subflow, cwnd_bytes }),
    ]
}
