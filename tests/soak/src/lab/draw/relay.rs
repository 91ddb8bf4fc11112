//! Relays, with all parts that any scenario could use.

use lab::scenario::{Distance, EnergyPrice, Lends, Link, LocalTraffic, Placement, Swallows, Walk};
use proptest::option::weighted;
use proptest::prelude::*;
use units::text::Text;
use units::{ByteCount, Duration};

use super::link::link;
use super::local::local;
use super::{kbps, pick, rarely};

/// The parts of a relay, before it is known which of them the scenario uses.
#[derive(Clone, Debug)]
pub struct RelayParts {
    /// Its links, if it has links of its own.
    pub links: [Link; 2],
    /// Whether it has settings for its Wi-Fi.
    pub own_wifi: bool,
    /// Its distance from a channel, ms.
    pub wlan_delay_ms: Option<u64>,
    /// Its place in a cell, if specified.
    pub place: Option<Placement>,
    /// Rate ceiling in a cell, kbit/s.
    pub kbps_max: Option<u64>,
    /// Its lending limits.
    pub lends: Option<Lends>,
    /// When it leaves, ms.
    pub leaves_ms: Option<u64>,
    /// When and how it begins to swallow.
    pub swallows: Option<Swallows>,
    /// Its energy price.
    pub energy: Option<EnergyPrice>,
    /// Factor by which it exaggerates.
    pub exaggerates: Option<f64>,
    /// Its owner's traffic.
    pub local: Vec<LocalTraffic>,
}

/// Draws relays; if `calm`, mostly sound ones.
pub fn relay(calm: bool) -> BoxedStrategy<RelayParts> {
    let (sound, others) = if calm { (30, 1) } else { (2, 3) };
    prop_oneof![sound => relay_of(true), others => relay_of(false)].boxed()
}

fn relay_of(sound: bool) -> BoxedStrategy<RelayParts> {
    let links = (link(sound), link(sound), proptest::bool::weighted(0.5), rarely(0.3, &[1_u64, 30, 300]));
    let leaves = if sound { Just(None).boxed() } else { weighted(0.4, 0..8000_u64).boxed() };
    let swallows = if sound { Just(None).boxed() } else { weighted(0.25, swallows()).boxed() };
    let lends = if sound { Just(None).boxed() } else { weighted(0.25, lends()).boxed() };
    let ends = (leaves, swallows, lends);
    let energy = weighted(0.4, energy());
    let local = prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(local(sound), 1..3)];
    let offers = (
        rarely(0.3, if sound { &[3000_u64, 1000, 500] } else { &[3000_u64, 500, 100] }),
        energy,
        rarely(0.15, &[10.0, 0.1, 0.0]),
    );
    (links, weighted(if sound { 0.98 } else { 0.7 }, place(sound)), ends, offers, local)
        .prop_map(
            |(
                (cellular, wifi, own_wifi, wlan_delay_ms),
                place,
                (leaves_ms, swallows, lends),
                (kbps_max, energy, exaggerates),
                local,
            )| {
                RelayParts {
                    links: [cellular, wifi],
                    own_wifi,
                    wlan_delay_ms,
                    place,
                    kbps_max,
                    lends,
                    leaves_ms,
                    swallows,
                    energy,
                    exaggerates,
                    local,
                }
            },
        )
        .boxed()
}

fn lends() -> impl Strategy<Value = Lends> {
    let rate = weighted(0.7, pick(&[2000_u64, 300, 20]));
    let volume = weighted(0.5, pick(&[1_000_000_u64, 50_000, 1]));
    (rate, volume).prop_map(|(rate_kbps, volume)| Lends {
        rate: rate_kbps.map(|rate| Text(kbps(rate))),
        volume: volume.map(|bytes| Text(ByteCount(bytes))),
    })
}

fn swallows() -> impl Strategy<Value = Swallows> {
    (0..4000_u64, proptest::bool::weighted(0.3))
        .prop_map(|(from, forges_data_acks)| Swallows { from: Duration::from_millis(from), forges_data_acks })
}

fn energy() -> impl Strategy<Value = EnergyPrice> {
    let price = || pick(&[100.0, 0.0, 1000.0]);
    prop_oneof![
        price().prop_map(EnergyPrice::Fixed),
        (price(), price()).prop_map(|(low, more)| EnergyPrice::Uniform([low, low + more])),
    ]
}

fn place(sound: bool) -> impl Strategy<Value = Placement> {
    let metres = || if sound { pick(&[200.0, 50.0, 1.0]) } else { pick(&[900.0, 2000.0, 20_000.0]) };
    let distance_m = prop_oneof![
        3 => metres().prop_map(Distance::Fixed),
        1 => (metres(), pick(&[0.0, 100.0])).prop_map(|(low, more)| Distance::Uniform([low, low + more])),
    ];
    (distance_m, weighted(if sound { 0.05 } else { 0.4 }, walk()))
        .prop_map(|(distance_m, walk)| Placement { distance_m, walk })
}

fn walk() -> impl Strategy<Value = Walk> {
    let to_m = pick(&[[500.0, 0.0], [2000.0, 0.0], [0.0, 300.0], [-5000.0, 5000.0]]);
    (to_m, pick(&[3.0, 50.0, 500.0]), rarely(0.3, &[1000_u64])).prop_map(|(to_m, speed_kmh, start)| Walk {
        to_m,
        speed_kmh,
        start: super::text_ms(start),
    })
}
