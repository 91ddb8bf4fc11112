//! Links, and the radio media that replace them.

use lab::scenario::{
    Burst, Cell, Drawn, Handover, Link, Loss, Merge, Middlebox, OptionKind, Outage, Queue, RateModel, Reorder, Split,
    Strip, StripFrom, TextOr, Uniform, Uplink, Wlan,
};
use network::cell::RESOURCE_SCHEDULERS;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use units::text::Text;
use units::{ByteCount, Duration, Probability, Rate};

use super::words::word;
use super::{kbps, pick, rarely, share, text_ms};

/// Media that all relays share.
#[derive(Clone, Debug)]
pub struct World {
    /// A cell instead of cellular links.
    pub cell: Option<Cell>,
    /// A channel instead of Wi-Fi links.
    pub wlan: Option<Wlan>,
    /// Pairs of relays that do not hear each other on the channel, modulo the number of relays.
    pub hidden: Vec<(usize, usize)>,
    /// A link that all packets cross.
    pub bottleneck: Option<Link>,
}

/// Draws separate links more often than not; if `calm`, media that serve all relays well.
pub fn world(calm: bool) -> BoxedStrategy<World> {
    let hidden = prop_oneof![if calm { 20 } else { 2 } => Just(Vec::new()), 1 => proptest::collection::vec((0..5_usize, 1..5_usize), 1..4)];
    (weighted(0.35, cell(calm)), weighted(0.3, wlan(calm)), hidden, weighted(0.12, link(true)))
        .prop_map(|(cell, wlan, hidden, bottleneck)| World { cell, wlan, hidden, bottleneck })
        .boxed()
}

/// Draws a link; if `sound`, one over which a connection must succeed.
pub fn link(sound: bool) -> BoxedStrategy<Link> {
    let rate =
        || if sound { pick(&[3000_u64, 1000, 10_000, 20_000, 500]) } else { pick(&[3000_u64, 1000, 20_000, 128, 20]) };
    let fixed = rate().prop_map(|rate| TextOr::Text(kbps(rate)));
    let rates = (prop_oneof![5 => fixed, 1 => varying(sound).prop_map(TextOr::Table)], rate());
    let queues = (queue(sound), queue(sound));
    (rates, delay(), queues, (loss(sound), uplink_loss(sound)), elements(sound).boxed())
        .prop_map(|((rate, uplink), delay, (queue, uplink_queue), (loss, uplink_loss), elements)| Link {
            rate,
            delay,
            queue,
            loss,
            uplink: Uplink {
                rate: TextOr::Text(kbps(uplink)),
                queue: uplink_queue,
                loss: uplink_loss,
                ..Uplink::default()
            },
            // Narrow links have tests of their own; which packets fit depends on all flows of a scenario.
            mtu: None,
            reorder: elements.reorder,
            duplicate: elements.duplicate,
            corrupt: elements.corrupt,
            outages: elements.outages,
            middleboxes: elements.middleboxes,
        })
        .boxed()
}

/// Other properties of a link.
#[derive(Clone, Debug, Default)]
struct Elements {
    reorder: Option<Reorder>,
    duplicate: Option<Text<Probability>>,
    corrupt: Option<Text<Probability>>,
    outages: Vec<Outage>,
    middleboxes: Vec<Middlebox>,
}

/// Nothing for a sound link, and little for most others.
fn elements(sound: bool) -> BoxedStrategy<Elements> {
    let reorder = (pick(&[1.0, 10.0]), pick(&[5_u64, 50, 200]))
        .prop_map(|(percent, ms)| Reorder { probability: share(percent), delay: Duration::from_millis(ms) });
    let outage = (0..10_000_u64, 1..3000_u64).prop_map(|(from, lasts)| Outage {
        from: Duration::from_millis(from),
        until: Duration::from_millis(from + lasts),
    });
    let outages = proptest::collection::vec(outage, 0..3);
    let few = prop_oneof![4 => Just(Vec::new()), 1 => outages];
    let (duplicate, corrupt) = (rarely(0.1, &[1.0, 10.0]), rarely(0.1, &[0.1, 2.0]));
    (weighted(0.1, reorder), duplicate, corrupt, few, weighted(0.15, middlebox()))
        .prop_map(move |(reorder, duplicate, corrupt, outages, middlebox)| {
            let drawn = Elements {
                reorder,
                duplicate: duplicate.map(|percent| Text(share(percent))),
                corrupt: corrupt.map(|percent| Text(share(percent))),
                outages,
                middleboxes: middlebox.into_iter().collect(),
            };
            if sound { Elements::default() } else { drawn }
        })
        .boxed()
}

fn middlebox() -> impl Strategy<Value = Middlebox> {
    let payload = || pick(&[100_u64, 536, 1400]).prop_map(ByteCount);
    let strip = |on, after| Strip { options: vec![OptionKind::Mptcp], on, after };
    prop_oneof![
        payload().prop_map(|payload| Middlebox { split: Some(Split { payload }), ..Middlebox::default() }),
        (payload(), 1..20_u64).prop_map(|(payload, ms)| {
            let hold = Duration::from_millis(ms);
            Middlebox { merge: Some(Merge { payload, hold }), ..Middlebox::default() }
        }),
        pick(&[StripFrom::Syn, StripFrom::SynAck, StripFrom::All])
            .prop_map(move |on| Middlebox { strip: Some(strip(on, 0)), ..Middlebox::default() }),
    ]
}

fn delay() -> impl Strategy<Value = Drawn<Duration>> {
    let ms = prop_oneof![4 => 1..60_u64, 1 => 60..300_u64, 1 => Just(0)];
    let fixed = |ms| TextOr::Text(Duration::from_millis(ms));
    prop_oneof![
        4 => ms.prop_map(fixed),
        1 => (0..50_u64, 0..50_u64).prop_map(|(low, more)| TextOr::Table(uniform_ms(low, low + more))),
    ]
}

fn uniform_ms(low: u64, high: u64) -> Uniform<Duration> {
    Uniform { uniform: [Text(Duration::from_millis(low)), Text(Duration::from_millis(high))] }
}

/// A rate that varies by the seed.
fn varying(sound: bool) -> impl Strategy<Value = RateModel> {
    let mean = pick(&[3000_u64, 1000, 10_000]);
    let changes =
        (rarely(0.5, if sound { &[10.0, 50.0] } else { &[10.0, 50.0, 100.0] }), rarely(0.5, &[100_u64, 1000, 10_000]));
    let outages = (rarely(if sound { 0.01 } else { 0.5 }, &[20_000_u64, 5000, 1000]), rarely(0.4, &[100_u64, 1000]));
    (mean, changes, outages, rarely(0.3, &[1000_u64, 10_000])).prop_map(
        |(mean, (variation, correlation), (interval, duration), period)| RateModel {
            trace: None,
            offset: None,
            mean: Some(Text(kbps(mean))),
            variation: variation.map(|percent| Text(share(percent))),
            correlation: text_ms(correlation),
            outage_interval: text_ms(interval),
            outage_duration: text_ms(duration),
            period: text_ms(period),
        },
    )
}

fn queue(sound: bool) -> impl Strategy<Value = Queue> {
    let packets = if sound { pick(&[100_u32, 1000, 30, 10]) } else { pick(&[100_u32, 10, 2, 1]) };
    let bytes = if sound { pick(&[100_000_u64, 64_000]) } else { pick(&[100_000_u64, 3000]) };
    prop_oneof![4 => packets.prop_map(Queue::Packets), 1 => bytes.prop_map(|bytes| Queue::Bytes(ByteCount(bytes)))]
}

fn loss(sound: bool) -> BoxedStrategy<Loss> {
    let percent = || if sound { pick(&[0.1, 1.0, 2.0]) } else { pick(&[1.0, 5.0, 30.0]) };
    let drawn = prop_oneof![
        percent().prop_map(|percent| TextOr::Text(share(percent))),
        percent()
            .prop_map(|percent| TextOr::Table(Uniform { uniform: [Text(Probability::ZERO), Text(share(percent))] })),
    ];
    let table = (drawn, rarely(if sound { 0.05 } else { 0.6 }, &[2.0, 5.0]))
        .prop_map(|(mean, burst_packets)| TextOr::Table(Burst { mean, burst_packets }));
    prop_oneof![
        4 => Just(TextOr::Text(Probability::ZERO)),
        2 => percent().prop_map(|percent| TextOr::Text(share(percent))),
        1 => table,
    ]
    .boxed()
}

fn uplink_loss(sound: bool) -> impl Strategy<Value = Probability> {
    let percent = if sound { pick(&[1.0, 0.1]) } else { pick(&[1.0, 30.0]) };
    prop_oneof![5 => Just(Probability::ZERO), 1 => percent.prop_map(share)]
}

fn cell(calm: bool) -> BoxedStrategy<Cell> {
    let schedulers: Vec<_> = RESOURCE_SCHEDULERS.iter().map(|known| known.name).collect();
    // In a calm cell only the first few values of each list are used.
    let of = |calm_count: usize, all: &[f64]| pick(if calm { &all[..calm_count] } else { all });
    let blocks = pick(if calm { &[50_u32, 25, 15, 100] } else { &[50, 25, 6, 15, 100] });
    let air = (blocks, of(2, &[30.0, 46.0, 10.0]), word(), of(1, &[0.0, 4.0, 8.0]));
    let motion = (word(), of(3, &[3.0, 50.0, 300.0, 0.3]));
    let queue = prop_oneof![3 => Just(100_000_u64), 1 => pick(if calm { &[30_000_u64, 1_000_000] } else { &[30_000_u64, 10_000, 1_000_000] })];
    let core = (pick(&[20_u64, 1, 100]), pick(&[1000_u64, 10]), pick(&[5000_u64, 1000]), pick(&[10_u64, 1, 50]));
    let sites = (prop_oneof![2 => Just(1_usize), 1 => 2..4_usize], weighted(0.7, handover()));
    (select(schedulers), air, motion, queue, core, sites, rarely(if calm { 0.03 } else { 0.3 }, &[50_000_u64, 10_000]))
        .prop_map(|(scheduler, air, (fading, speed_kmh), queue, core, (sites, handover), early)| Cell {
            scheduler: scheduler.into(),
            resource_blocks: air.0,
            transmit_power_dbm: air.1,
            path_loss: air.2,
            shadowing_db: air.3,
            fading,
            speed_kmh,
            queue: Queue::Bytes(ByteCount(queue)),
            core_delay: Duration::from_millis(core.0),
            core_rate: Rate::from_mbps(core.1),
            uplink_rate: kbps(core.2),
            uplink_delay: Duration::from_millis(core.3),
            sites_m: (0..sites).map(|site| [1000.0 * site as f64, 0.0]).collect(),
            handover: handover.filter(|_| sites > 1),
            early_drop_above: early.map(|bytes| Text(ByteCount(bytes))),
            ..Cell::default()
        })
        .boxed()
}

fn handover() -> impl Strategy<Value = Handover> {
    (pick(&[3.0, 0.0, 10.0]), pick(&[100_u64, 1, 1000]), pick(&[50_u64, 0, 2000])).prop_map(
        |(hysteresis_db, period, interruption)| Handover {
            hysteresis_db,
            period: Duration::from_millis(period),
            interruption: Duration::from_millis(interruption),
        },
    )
}

fn wlan(calm: bool) -> BoxedStrategy<Wlan> {
    // The rates of IEEE 802.11a.
    let rate = pick(&[54_u64, 6, 9, 12, 18, 24, 36, 48]);
    let queue = prop_oneof![3 => Just(400_u32), 1 => pick(if calm { &[100_u32, 1000] } else { &[100, 10, 2] })];
    let free_control = pick(&[false, false, false, true]);
    (rate, queue, pick(&[2200_u64, 0, 500]), pick(&[0.0, 1.0, 10.0]), free_control)
        .prop_map(|(rate, queue, rts_threshold, frame_loss, free_control)| Wlan {
            rate: Rate::from_mbps(rate),
            queue: Queue::Packets(queue),
            rts_threshold: ByteCount(rts_threshold),
            frame_loss: share(frame_loss),
            hidden: Vec::new(),
            free_control,
        })
        .boxed()
}
