//! The behaviour of applications, within seconds.

use proptest::collection::vec;
use proptest::prelude::*;
use soak::transport::case::{Ending, Speaker, Talk};

use super::pick;

/// Draws mostly one connection, sometimes many.
pub fn talks() -> impl Strategy<Value = Vec<Talk>> {
    prop_oneof![
        4 => long().prop_map(|talk| vec![talk]),
        1 => short().prop_map(|talk| vec![talk]),
        1 => vec(prop_oneof![long(), short()], 2),
    ]
}

fn long() -> impl Strategy<Value = Talk> {
    (0..300_u64, speaker(6_000_000), speaker(6_000_000))
        .prop_map(|(at_ms, client, server)| one_way_or_two(Talk { at_ms, connections: 1, every_ms: 0, client, server }))
}

fn short() -> impl Strategy<Value = Talk> {
    let begin = (0..300_u64, 2..8_u32, pick(&[0_u64, 20, 200]));
    (begin, speaker(50_000), speaker(50_000)).prop_map(|((at_ms, connections, every_ms), client, server)| {
        one_way_or_two(Talk { at_ms, connections, every_ms, client, server })
    })
}

/// Prevents that both sides wait for each other, which would never end.
fn one_way_or_two(mut talk: Talk) -> Talk {
    talk.server.after_peer &= !talk.client.after_peer;
    talk
}

fn speaker(bytes_max: u64) -> impl Strategy<Value = Speaker> {
    let bytes = prop_oneof![1 => Just(0), 5 => bytes_max / 20..bytes_max, 1 => 1..3000_u64];
    let pieces = prop_oneof![3 => Just(1_u32 << 20), 2 => pick(&[10_000_u32, 1000, 100, 10])];
    let pause = prop_oneof![4 => Just(0_u64), 1 => pick(&[1_u64, 10, 100])];
    let idle = prop_oneof![4 => Just(0_u64), 1 => 1..1500_u64];
    let ending = prop_oneof![14 => Just(Ending::Shutdown), 1 => Just(Ending::Close), 1 => Just(Ending::Abort)];
    let speaking = (bytes, pieces, pause, idle, proptest::bool::weighted(0.2), ending);
    (speaking, listening()).prop_map(|(speaking, (read_bytes, read_pause_ms, read_after_ms))| {
        let (bytes, piece_bytes, pause_ms, idle_ms, after_peer, ending) = speaking;
        Speaker { bytes, piece_bytes, pause_ms, idle_ms, after_peer, ending, read_bytes, read_pause_ms, read_after_ms }
    })
}

fn listening() -> impl Strategy<Value = (u32, u64, u64)> {
    let bytes = prop_oneof![3 => Just(1_u32 << 20), 2 => pick(&[10_000_u32, 1000])];
    let pause = prop_oneof![4 => Just(0_u64), 1 => pick(&[1_u64, 10])];
    let after = prop_oneof![4 => Just(0_u64), 1 => 1..1500_u64];
    (bytes, pause, after)
}
