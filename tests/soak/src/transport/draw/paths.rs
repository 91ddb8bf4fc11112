//! Paths between hosts.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::pick;
use crate::transport::case::{Element, Gateway, Loss, PathCase, Relay, Segments, Strip, Way};
use crate::transport::goals::CALM_MS;

/// Draws paths, of which the first is sound more often than not.
pub fn paths() -> BoxedStrategy<Vec<PathCase>> {
    let first = prop_oneof![4 => path(sound_element().boxed(), false), 1 => path(element().boxed(), true)];
    let others = vec(path(element().boxed(), true), 0..4);
    (first, others).prop_map(|(first, others)| [vec![first], others].concat()).boxed()
}

fn path(elements: BoxedStrategy<Element>, any: bool) -> BoxedStrategy<PathCase> {
    let nat = option::weighted(0.15, if any { pick(&[300_u64, 60, 5]) } else { pick(&[300_u64, 600, 3600]) });
    let gateway = if any { option::weighted(0.06, gateway()).boxed() } else { Just(None).boxed() };
    let ways = (way(elements.clone(), any), way(elements, any));
    (nat, gateway, option::weighted(0.15, relay()), ways, proptest::bool::weighted(0.5))
        .prop_map(|(nat_idle_s, gateway, relay, (up, down), symmetric)| {
            let link = Way { elements: up.elements.clone(), ..down.clone() };
            PathCase { nat_idle_s, gateway, relay, up: if symmetric { link } else { up }, down }
        })
        .boxed()
}

fn gateway() -> impl Strategy<Value = Gateway> {
    (any::<bool>(), 0..100_000_u32, 1..50_u32, any::<bool>()).prop_map(|(of_server, at, octets, inserts)| Gateway {
        of_server,
        at,
        octets,
        inserts,
    })
}

fn relay() -> impl Strategy<Value = Relay> {
    (pick(&[2_u64 << 20, 100_000, 10_000, 0]), pick(&[1500_u16, 1280, 600]), 0..30_u64)
        .prop_map(|(buffer_bytes, mtu, delay_ms)| Relay { buffer_bytes, mtu, delay_ms })
}

fn way(elements: BoxedStrategy<Element>, any: bool) -> BoxedStrategy<Way> {
    let rate = pick(&[10_000_u64, 2_000, 50_000, 500, 128]);
    let delay = prop_oneof![4 => 1..60_u64, 1 => 60..400_u64, 1 => Just(0)];
    let queue = prop_oneof![3 => Just(100_u64), 3 => pick(&[1000_u64, 30, 10, 4]), 1 => if any { pick(&[2_u64, 1, 3]) } else { pick(&[4_u64, 5, 6]) }];
    let limits = (queue, option::weighted(0.1, pick(&[100_000_u64, 30_000, 5_000])), option::weighted(0.2, 1..50_u64));
    let link = (rate, option::weighted(0.1, trace()), delay, limits, loss(any));
    (link, prop_oneof![1 => Just(Vec::new()), 1 => vec(elements, 1..4)])
        .prop_map(|((rate_kbps, trace, delay_ms, (queue_packets, queue_bytes, mark_above), loss), elements)| Way {
            rate_kbps,
            trace_ms: trace.unwrap_or_default(),
            delay_ms,
            queue_packets,
            queue_bytes,
            mark_above,
            loss,
            elements,
        })
        .boxed()
}

/// Bursts of opportunities, with gaps between them.
fn trace() -> impl Strategy<Value = Vec<u32>> {
    vec((pick(&[1_u32, 5, 20, 100, 1000, 4000]), 1..20_usize), 1..12).prop_map(|bursts| {
        let mut now_ms = 0;
        let mut times_ms = Vec::new();
        for (gap_ms, packets) in bursts {
            now_ms += gap_ms;
            times_ms.extend(vec![now_ms; packets]);
        }
        times_ms
    })
}

fn loss(any: bool) -> BoxedStrategy<Loss> {
    let percent = || if any { pick(&[0.1, 1.0, 5.0, 30.0]) } else { pick(&[0.1, 1.0, 2.0, 4.0]) };
    let uniform = percent().prop_map(|percent| Loss::Uniform { percent });
    let gilbert = (percent(), pick(&[2.0, 5.0, 10.0])).prop_map(|(percent, burst)| Loss::Gilbert { percent, burst });
    match any {
        true => prop_oneof![4 => Just(Loss::None), 2 => uniform, 1 => gilbert].boxed(),
        false => prop_oneof![4 => Just(Loss::None), 2 => uniform].boxed(),
    }
    .boxed()
}

/// An element with which a connection must survive on its only path.
fn sound_element() -> impl Strategy<Value = Element> {
    prop_oneof![
        3 => (0..10_000_u64, 1..10_000_u64).prop_map(|(from_ms, length_ms)| Element::Outage {
            from_ms,
            until_ms: (from_ms + length_ms).min(CALM_MS)
        }),
        2 => (300..5000_u64, 1..30_u64).prop_map(|(every_ms, for_ms)| Element::Flaps { every_ms, for_ms }),
        2 => (pick(&[1.0, 10.0, 50.0]), 1..200_u64).prop_map(|(percent, delay_ms)| Element::Reorder { percent, delay_ms }),
        2 => pick(&[1.0, 10.0, 100.0]).prop_map(|percent| Element::Duplicate { percent }),
        1 => pick(&[0.1, 1.0]).prop_map(|percent| Element::Damage { percent }),
        1 => pick(&[Strip::Syn, Strip::SynAck]).prop_map(Element::StripMptcp),
        1 => any::<[bool; 4]>().prop_map(|[mss, window_scale, sack, timestamps]| Element::StripSyn {
            mss,
            window_scale,
            sack,
            timestamps
        }),
        1 => pick(&[500_u64, 100, 1000]).prop_map(|bytes| Element::Split { bytes }),
        3 => drops(),
    ]
}

fn drops() -> impl Strategy<Value = Element> {
    let kinds = [
        Segments::Syn,
        Segments::Fin,
        Segments::Rst,
        Segments::Data,
        Segments::Ack,
        Segments::DataFin,
        Segments::AddAddr,
        Segments::Fastclose,
    ];
    let after = prop_oneof![2 => Just(0_u64), 1 => 1..100_u64];
    (pick(&kinds), after, 1..4_u64).prop_map(|(what, after, count)| Element::Drop { what, after, count })
}

/// Any element.
fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        6 => sound_element(),
        1 => (0..20_000_u64).prop_map(|from_ms| Element::Dead { from_ms }),
        1 => pick(&[0.1, 1.0, 10.0]).prop_map(|percent| Element::Corrupt { percent }),
        1 => prop_oneof![Just(Strip::All), (1..200_u64).prop_map(Strip::After)].prop_map(Element::StripMptcp),
        1 => (pick(&[9000_u64, 3000, 65_535]), 1..20_u64).prop_map(|(bytes, hold_ms)| Element::Merge { bytes, hold_ms }),
        1 => (pick(&[1000_u64, 1, 1 << 31, 1 << 40]), 0..50_u64).prop_map(|(octets, after)| Element::ShiftDsn {
            octets,
            after
        }),
    ]
}
