//! Paths between the hosts.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{PATHS_MAX, pick};
use crate::case::{Middlebox, PathCase, StripFrom, Way};

/// Draws paths, of which the first is sound more often than not.
pub fn paths() -> impl Strategy<Value = Vec<PathCase>> {
    let first = prop_oneof![6 => path(false), 1 => path(true)];
    let others = prop_oneof![1 => vec(path(true), 0..PATHS_MAX), 1 => vec(path(false), 0..PATHS_MAX)];
    (first, others).prop_map(|(first, others)| [vec![first], others].concat())
}

/// Draws a sound path, or any.
fn path(any: bool) -> BoxedStrategy<PathCase> {
    let sound_outage = (0..1500_u64, 20..700_u64).prop_map(|(from, length)| [from, from + length]);
    let outage = match any {
        true => prop_oneof![sound_outage, (0..3000_u64).prop_map(|from| [from, 1_000_000])].boxed(),
        false => sound_outage.boxed(),
    };
    let outages = prop_oneof![7 => Just(Vec::new()), 1 => vec(outage, 1)];
    let boxes = prop_oneof![3 => Just(Vec::new()), 1 => vec(middlebox(any), 1..3)];
    let mtu = prop_oneof![4 => Just(1500_u16), 1 => pick(&[1400_u16, 1280])];
    ((way(any), way(any), any_of_two()), mtu, outages, boxes)
        .prop_map(|((up, down, symmetric), mtu, outages_ms, boxes)| PathCase {
            up,
            down: if symmetric { up } else { down },
            mtu,
            outages_ms,
            boxes,
        })
        .boxed()
}

fn any_of_two() -> impl Strategy<Value = bool> {
    any::<bool>()
}

fn way(any: bool) -> impl Strategy<Value = Way> {
    let delay_ms = prop_oneof![4 => 0..30_u64, 1 => 30..150_u64];
    let queue_packets = if any { pick(&[100_u64, 1000, 30, 10, 4]) } else { pick(&[100_u64, 100, 1000, 30]) };
    let loss = match any {
        true => (pick(&[0.0, 0.0, 0.5, 5.0, 30.0]), pick(&[1.0, 5.0])).boxed(),
        false => (pick(&[0.0, 0.0, 0.0, 0.0, 0.1, 1.0]), Just(1.0)).boxed(),
    };
    let reorder = (pick(&[0.0, 0.0, 0.0, 1.0, 10.0]), 1..20_u64);
    let rest = (pick(&[0.0, 0.0, 0.0, 1.0, 50.0]), pick(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]));
    (pick(&[50_000_u64, 20_000, 5_000, 2_000]), delay_ms, queue_packets, loss, reorder, rest).prop_map(
        |(rate_kbps, delay_ms, queue_packets, loss, (reorder_percent, reorder_ms), rest)| Way {
            rate_kbps,
            delay_ms,
            queue_packets,
            loss_percent: loss.0,
            burst_packets: loss.1,
            reorder_percent,
            reorder_ms,
            duplicate_percent: rest.0,
            corrupt_percent: rest.1,
        },
    )
}

fn middlebox(any: bool) -> impl Strategy<Value = Middlebox> {
    let narrow = (pick(&[1400_u16, 1300, 1280]), if any { any_of_two().boxed() } else { Just(false).boxed() });
    prop_oneof![
        3 => narrow.prop_map(|(mtu, silent)| Middlebox::Narrow { mtu, silent }),
        2 => pick(&[500_u32, 1000]).prop_map(|bytes| Middlebox::Split { bytes }),
        2 => Just(Middlebox::Nat),
        1 => pick(&[StripFrom::Syn, StripFrom::SynAck, StripFrom::All]).prop_map(Middlebox::StripMptcp),
        1 => Just(Middlebox::StripTcp),
    ]
}
