//! Traffic of the relays' owners.

use lab::scenario::{Change, Drawn, LocalKind, LocalTraffic, OnOff, TextOr, Uniform};
use proptest::prelude::*;
use units::text::Text;
use units::{ByteCount, Duration, Rate};

use super::connection::controller;
use super::words::word;
use super::workload::{varied_bytes, varied_ms, video};
use super::{kbps, pick, rarely, text_ms};

/// Draws the flows of one section; if `modest`, they leave room for others.
pub fn local(modest: bool) -> BoxedStrategy<LocalTraffic> {
    let times = (rarely(0.3, &[500_u64, 2000]), rarely(0.3, &[3000_u64, 6000]));
    let process = (
        proptest::collection::vec(change(modest), 0..3),
        proptest::option::weighted(0.2, on_off()),
        rarely(0.2, &[1000_u64, 100]),
    );
    let flows =
        (varied_bytes(), proptest::option::weighted(0.5, varied_ms()), proptest::option::weighted(0.5, video()));
    let rest = (proptest::option::weighted(0.3, controller()), pick(&[500_u64, 100, 1]), times);
    (word(), pick(&[1_u32, 2, 4]), rate(modest), process, flows, rest)
        .prop_map(
            |(
                kind,
                count,
                rate,
                (changes, on_off, redrawn),
                (sizes, pauses, video),
                (congestion, datagram, (start, stop)),
            )| {
                fitted(LocalTraffic {
                    kind,
                    count,
                    rate: Some(rate),
                    changes,
                    on_off,
                    redrawn: text_ms(redrawn),
                    sizes: Some(sizes),
                    pauses,
                    video,
                    congestion: congestion.map(Text),
                    datagram: ByteCount(datagram),
                    start: text_ms(start),
                    stop: text_ms(stop),
                })
            },
        )
        .boxed()
}

/// Removes fields that the kind does not have.
fn fitted(mut local: LocalTraffic) -> LocalTraffic {
    let (short, video) = (local.kind == LocalKind::ShortFlows, local.kind == LocalKind::Video);
    local.rate = local.rate.filter(|_| !short);
    local.sizes = local.sizes.filter(|_| short);
    local.pauses = local.pauses.filter(|_| short);
    local.video = local.video.filter(|_| video);
    local.congestion = local.congestion.filter(|_| !local.kind.is_datagrams());
    if local.kind == LocalKind::Tcp && local.count == 4 {
        // A TCP flow may take all the capacity it can get.
        local.rate = None;
    }
    if video && local.rate.as_ref().is_some_and(|rate| most(rate) == Rate::ZERO) {
        // Without a rate there is no picture: the loader refuses that.
        local.rate = Some(TextOr::Text(kbps(10)));
    }
    if short || video || local.rate.is_none() {
        (local.changes, local.on_off, local.redrawn) = (Vec::new(), None, None);
    }
    local.redrawn = local.redrawn.filter(|_| local.on_off.is_none());
    let mut over = local.start.map_or(Duration::ZERO, |Text(start)| start);
    for change in &mut local.changes {
        change.at += over;
        over = change.at + change.lasts();
    }
    // Datagrams of one octet each would be too many.
    if local.datagram.0 < 100 {
        local.rate = local.rate.map(|_| TextOr::Text(kbps(10)));
        local.changes.clear();
    }
    local
}

fn most(rate: &Drawn<Rate>) -> Rate {
    match rate {
        TextOr::Text(rate) => *rate,
        TextOr::Table(bounds) => bounds.uniform[1].0,
    }
}

fn rate(modest: bool) -> impl Strategy<Value = Drawn<Rate>> {
    let usual = if modest { pick(&[20_u64, 5]) } else { pick(&[100_u64, 400, 1000]) };
    let fixed = prop_oneof![if modest { 30 } else { 3 } => usual, 1 => pick(&[5000_u64, 0])];
    prop_oneof![
        4 => fixed.prop_map(|rate| TextOr::Text(kbps(rate))),
        1 => (0..500_u64, 0..500_u64)
            .prop_map(|(low, more)| TextOr::Table(Uniform { uniform: [Text(kbps(low)), Text(kbps(low + more))] })),
    ]
}

/// Draws a time relative to the end of the previous flow instead of an absolute one.
fn change(modest: bool) -> impl Strategy<Value = Change> {
    let rate = (0..3_u8, pick(if modest { &[10_u64, 5] } else { &[200, 50, 1000] }));
    (pick(&[500_u64, 0, 2000]), rate, rarely(0.3, &[500_u64, 2000])).prop_map(|(at, (which, rate), over)| {
        let of = |number| (which == number).then_some(Text(kbps(rate)));
        Change { at: Duration::from_millis(at), to: of(0), raise: of(1), lower: of(2), over: text_ms(over) }
    })
}

fn on_off() -> impl Strategy<Value = OnOff> {
    (pick(&[500_u64, 100, 10]), pick(&[500_u64, 100, 10, 0]))
        .prop_map(|(on, off)| OnOff { on: Duration::from_millis(on), off: Duration::from_millis(off) })
}
