//! With any settings and any order of packets, departures, returns and handovers, every loss is counted, no packet
//! overtakes another, and the cell always comes to rest.

use std::num::NonZeroU32;

use network::Queue;
use network::cell::{
    Cell, CellConfig, EarlyDrop, Fading, HandoverConfig, HarqConfig, PathLoss, Place, Profile, RESOURCE_SCHEDULERS,
    RadioConfig, RlcConfig, Shadowing, SiteConfig, StrongestSite, Track, UeConfig, UeId,
};
use units::{ByteCount, Duration, Instant, Prng, Probability, Rate};

use super::rig::Rig;

const RUNS: u64 = 200;

/// Picks one of several choices.
fn any<T: Clone>(prng: &mut Prng, choices: &[T]) -> T {
    choices[prng.below(choices.len() as u64) as usize].clone()
}

fn ue(prng: &mut Prng, sites: usize) -> UeConfig {
    let place = |prng: &mut Prng| Place::flat(prng.below(9000) as f64, prng.below(9000) as f64);
    let mut ue = UeConfig::at(place(prng));
    if prng.chance(0.3) {
        let points = (0..3).map(|point| (Instant::from_millis(500 * point), place(prng))).collect();
        ue.track = Track::through(points).unwrap();
    }
    if prng.chance(0.3) {
        ue.max_bit_rate = Some(Rate::from_bps(100_000 + prng.below(5_000_000)));
    }
    let handover = |prng: &mut Prng| (Instant::from_millis(prng.below(2000)), prng.below(sites as u64) as usize);
    ue.handovers = (0..prng.below(3)).map(|_| handover(prng)).collect();
    ue
}

fn radio(prng: &mut Prng) -> RadioConfig {
    let fading = |profile, speed_kmh| Some(Fading { profile, speed_kmh });
    let fadings = [None, fading(Profile::ExtendedPedestrianA, 3.0), fading(Profile::ExtendedTypicalUrban, 120.0)];
    let resource_blocks = any(prng, &[6, 15, 25, 50, 75, 100]);
    RadioConfig {
        resource_blocks,
        usable_resource_blocks: any(prng, &[None, Some(resource_blocks), Some(resource_blocks / 2 + 1)]),
        path_loss: any(prng, &[PathLoss::Friis, PathLoss::Macro]),
        shadowing: any(prng, &[None, Some(Shadowing { deviation_db: 8.0, decorrelation_m: 50.0 })]),
        fading: any(prng, &fadings),
        interference: prng.chance(0.3),
        ..RadioConfig::default()
    }
}

fn config(prng: &mut Prng) -> CellConfig {
    let sites: Vec<SiteConfig> =
        (0..=prng.below(3)).map(|site| SiteConfig { place: Place::flat(3000.0 * site as f64, 0.0) }).collect();
    let probability = |value| Probability::new(value).unwrap();
    let early = EarlyDrop {
        min: ByteCount(5_000),
        max: ByteCount(20_000),
        probability_max: probability(0.3),
        averaging: NonZeroU32::new(8).unwrap(),
        ecn: prng.chance(0.5),
    };
    let strongest = StrongestSite { hysteresis_db: 2.0, period: Duration::from_millis(40) };
    CellConfig {
        ues: (0..=prng.below(6)).map(|_| ue(prng, sites.len())).collect(),
        sites,
        radio: radio(prng),
        scheduler: any(prng, RESOURCE_SCHEDULERS).name.into(),
        rlc: RlcConfig {
            queue: any(prng, &[Queue::bytes(125_000), Queue::packets(10), Queue::unlimited()]),
            early: any(prng, &[None, Some(early)]),
            ..RlcConfig::default()
        },
        harq: HarqConfig {
            block_error_rate: probability(any(prng, &[0.0, 0.1, 0.6])),
            retransmissions_max: any(prng, &[0, 3]),
            ..HarqConfig::default()
        },
        downlink_delay: Duration::from_millis(prng.below(6)),
        handover: HandoverConfig {
            interruption: Duration::from_millis(prng.below(100)),
            strongest: any(prng, &[None, Some(strongest)]),
        },
        ..CellConfig::default()
    }
}

/// For each UE, the octets of each packet sent to it.
type Sent = Vec<Vec<u64>>;

fn act(rig: &mut Rig, prng: &mut Prng, sent: &mut Sent, now: Instant) {
    let ue = prng.below(sent.len() as u64) as usize;
    let id = UeId(ue as u16);
    let sites = rig.cell().config().sites.len() as u64;
    match prng.below(100) {
        0..=1 => rig.with_cell(now, |cell| cell.leave(id)),
        2..=4 => rig.with_cell(now, |cell| cell.join(id)),
        5..=6 => {
            let site = prng.below(sites) as usize;
            rig.with_cell(now, |cell: &mut Cell| cell.hand_over(id, site)).unwrap();
        }
        7 => {
            let rate = any(prng, &[None, Some(Rate::from_mbps(1))]);
            rig.with_cell(now, |cell| cell.set_max_bit_rate(id, rate));
        }
        8..=20 => rig.send_up(ue, prng.below(1400) as u16, now),
        _ => {
            for _ in 0..prng.below(8) {
                // The length identifies the packet.
                let payload_len = 100 + sent[ue].len() as u16;
                sent[ue].push(u64::from(payload_len) + 28);
                rig.send(ue, payload_len, now);
            }
        }
    }
}

fn run(seed: u64) {
    let mut prng = Prng::fork(seed, "any order");
    let mut rig = Rig::new(config(&mut prng));
    let mut sent: Sent = vec![Vec::new(); rig.cell().config().ues.len()];
    for step in 0..400 {
        let now = Instant::from_micros(step * 5000 + prng.below(5000));
        rig.run(now, false);
        act(&mut rig, &mut prng, &mut sent, now);
        rig.collect_now(now);
        assert!(rig.network.next_wakeup().is_none_or(|at| at > now), "seed {seed}: time stands still at {now:?}");
        rig.assert_balanced();
    }
    let last = Instant::from_secs(60);
    rig.run(last, false);
    for (ue, sent) in sent.iter().enumerate() {
        let id = UeId(ue as u16);
        let state = rig.cell().ue(id);
        let waiting = state.queue + state.in_air;
        assert!(waiting.packets == 0 || state.cqi < 5, "seed {seed}: {state:?}");
        // UEs that stay out of range leave.
        rig.with_cell(last, |cell| cell.leave(id));
        let mut rest = sent.iter();
        let mut arrived = rig.arrived.iter().filter(|(_, at, _)| *at == Some(ue));
        assert!(arrived.all(|(.., bytes)| rest.any(|other| other == bytes)), "seed {seed}: packets overtake");
    }
    rig.run(Instant::from_secs(61), false);
    rig.assert_balanced();
    assert_eq!(rig.network.next_wakeup(), None, "seed {seed}");
}

#[test]
fn the_cell_balances_and_rests() {
    (0..RUNS).for_each(run);
}
