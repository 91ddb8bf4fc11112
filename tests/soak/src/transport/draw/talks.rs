//! The behaviour of applications.

use proptest::collection::vec;
use proptest::prelude::*;

use super::pick;
use crate::transport::case::{Ending, Speaker, Talk};

/// Draws mostly one long connection, sometimes several kinds of connections.
pub fn talks() -> BoxedStrategy<Vec<Talk>> {
    prop_oneof![
        4 => talk().prop_map(|talk| vec![talk]),
        1 => vec(talk(), 2..4),
    ]
    .boxed()
}

fn talk() -> impl Strategy<Value = Talk> {
    prop_oneof![4 => long(), 1 => short()]
}

fn long() -> impl Strategy<Value = Talk> {
    (0..5000_u64, speaker(1_500_000), speaker(1_500_000))
        .prop_map(|(at_ms, client, server)| one_way_or_two(Talk { at_ms, connections: 1, every_ms: 0, client, server }))
}

fn short() -> impl Strategy<Value = Talk> {
    let begin = (0..5000_u64, 2..40_u32, pick(&[0_u64, 1, 20, 500]));
    (begin, speaker(20_000), speaker(20_000)).prop_map(|((at_ms, connections, every_ms), client, server)| {
        one_way_or_two(Talk { at_ms, connections, every_ms, client, server })
    })
}

/// Prevents that both sides wait for each other, which would never end.
fn one_way_or_two(mut talk: Talk) -> Talk {
    talk.server.after_peer &= !talk.client.after_peer;
    talk
}

fn speaker(bytes_max: u64) -> impl Strategy<Value = Speaker> {
    let bytes = prop_oneof![1 => Just(0), 4 => 1..bytes_max, 1 => 1..3000_u64];
    let pieces = prop_oneof![3 => Just(1_u32 << 20), 2 => pick(&[10_000_u32, 1000, 100, 1])];
    let pause = prop_oneof![4 => Just(0_u64), 1 => pick(&[10_u64, 100, 1000])];
    let idle = prop_oneof![4 => Just(0_u64), 1 => 1..30_000_u64];
    let ending = prop_oneof![5 => Just(Ending::Shutdown), 1 => Just(Ending::Close), 1 => Just(Ending::Abort)];
    let speaking = (bytes, pieces, pause, idle, proptest::bool::weighted(0.2), ending);
    (speaking, listening()).prop_map(|(speaking, (read_bytes, read_pause_ms, read_after_ms))| {
        let (bytes, piece_bytes, pause_ms, idle_ms, after_peer, ending) = speaking;
        Speaker { bytes, piece_bytes, pause_ms, idle_ms, after_peer, ending, read_bytes, read_pause_ms, read_after_ms }
    })
}

fn listening() -> impl Strategy<Value = (u32, u64, u64)> {
    let bytes = prop_oneof![3 => Just(1_u32 << 20), 2 => pick(&[10_000_u32, 1000, 50])];
    let pause = prop_oneof![4 => Just(0_u64), 1 => pick(&[10_u64, 100, 1000])];
    let after = prop_oneof![4 => Just(0_u64), 1 => 1..30_000_u64];
    (bytes, pause, after)
}
