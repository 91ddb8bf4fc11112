//! Agreement with ns-3 3.37 (LTE module, PiroEW2010, RLC AM, Table 3.1 of the thesis), whose results are constants
//! here.
//!
//! One eNB sends UDP at a constant rate to every UE, in packets of 1400 octets, with queues of 125000 octets and one
//! second to settle. Throughput counts octets from the IP header on; delay is from server to UE without the wires. With
//! fading, ns-3 ran six times, each on a trace that `Fading::write_fad` wrote.

use network::Datagram;
use network::cell::{CellConfig, Fading, Profile, RadioConfig, UeId};
use units::{Duration, Instant};

use super::rig::{PAYLOAD, Rig, SERVER, WIRE_LEN, address, at_m};

const SETTLED: Instant = Instant::from_secs(1);
const END: Instant = Instant::from_secs(11);

struct Setup {
    scheduler: &'static str,
    fading: Option<Fading>,
    distances_m: &'static [f64],
    /// Rate sent to each UE, Mbit/s.
    rates_mbps: &'static [f64],
}

/// Throughput in Mbit/s and mean delay in ms of each UE.
fn run(setup: &Setup, seed: u64) -> Vec<(f64, f64)> {
    let radio = RadioConfig { fading: setup.fading, ..RadioConfig::default() };
    let ues = at_m(setup.distances_m);
    let config = CellConfig { ues, radio, scheduler: setup.scheduler.into(), ..CellConfig::default() };
    let mut rig = Rig::with_seed(config, seed);
    let interval = |mbps: f64| Duration::from_secs_f64(WIRE_LEN as f64 * 8e-6 / mbps);
    // When each UE's next packet leaves, and when the packets on the way left, identified by the number in their source
    // port.
    let mut next: Vec<Instant> = (0..setup.rates_mbps.len()).map(|ue| Instant::from_micros(130 * ue as u64)).collect();
    let mut sent: Vec<Vec<Instant>> = vec![Vec::new(); next.len()];
    let mut delays_ms: Vec<Vec<f64>> = vec![Vec::new(); next.len()];
    loop {
        let (ue, now) = next.iter().copied().enumerate().min_by_key(|(_, at)| *at).unwrap();
        rig.run_with(now.min(END), |at, packet| {
            let datagram = packet.datagram().unwrap();
            let ue = (0..sent.len()).find(|ue| address(*ue) == datagram.dst).unwrap();
            let left = sent[ue][usize::from(datagram.src.port())];
            if at >= SETTLED {
                delays_ms[ue].push((at - left).as_secs_f64() * 1e3);
            }
        });
        if now >= END {
            break;
        }
        let mut src = SERVER;
        src.set_port(sent[ue].len() as u16);
        sent[ue].push(now);
        next[ue] += interval(setup.rates_mbps[ue]);
        let packet = rig.network.datagram(Datagram { src, dst: address(ue), payload_len: PAYLOAD, number: 0 });
        rig.network.send(rig.core, packet, now);
    }
    let seconds = (END - SETTLED).as_secs_f64();
    let result = |delays: &Vec<f64>| {
        let mbps = delays.len() as f64 * WIRE_LEN as f64 * 8e-6 / seconds;
        (mbps, delays.iter().sum::<f64>() / delays.len().max(1) as f64)
    };
    delays_ms.iter().map(result).collect()
}

/// Compares every UE's throughput and delay with ns-3's, within the relative tolerances `throughput` and `delay`.
fn compare(setup: &Setup, ns3: &[(f64, f64)], throughput: f64, delay: f64) {
    let draws: u64 = if setup.fading.is_some() { 6 } else { 1 };
    let results: Vec<_> = (1..=draws).map(|seed| run(setup, seed)).collect();
    for (ue, (ns3_mbps, ns3_ms)) in ns3.iter().enumerate() {
        let mbps = results.iter().map(|result| result[ue].0).sum::<f64>() / draws as f64;
        let delay_ms = results.iter().map(|result| result[ue].1).sum::<f64>() / draws as f64;
        let off = (mbps / ns3_mbps - 1.0, delay_ms / ns3_ms - 1.0);
        let close = off.0.abs() <= throughput && off.1.abs() <= delay;
        assert!(close, "UE {ue}: {mbps:.3} Mbit/s and {delay_ms:.2} ms, ns-3 {ns3_mbps} and {ns3_ms}");
    }
}

const BET: Setup =
    Setup { scheduler: "blind-equal-throughput", fading: None, distances_m: &[900.0], rates_mbps: &[50.0] };
const WALK: Option<Fading> = Some(Fading { profile: Profile::ExtendedPedestrianA, speed_kmh: 3.0 });
const TEN_M: &[f64] = &[810.0, 830.0, 850.0, 870.0, 890.0, 910.0, 930.0, 950.0, 970.0, 990.0];

/// Without fading nothing is random, and the two agree to within a percent or two.
const EXACT: (f64, f64) = (0.01, 0.02);
/// With fading, means of six draws.
const FADING: (f64, f64) = (0.05, 0.05);

#[test]
fn one_saturated_ue() {
    compare(&BET, &[(35.038, 31.15)], EXACT.0, EXACT.1);
    let light = Setup { rates_mbps: &[20.0], ..BET };
    compare(&light, &[(20.0, 3.52)], EXACT.0, EXACT.1);
}

#[test]
fn saturated_ues_at_four_distances() {
    let setup = Setup { distances_m: &[500.0, 900.0, 2000.0, 4000.0], rates_mbps: &[20.0; 4], ..BET };
    let ns3 = [(7.267, 139.58), (7.260, 139.57), (7.267, 139.56), (7.181, 141.55)];
    compare(&setup, &ns3, EXACT.0, EXACT.1);
}

#[test]
fn ten_ues() {
    let saturated = Setup { distances_m: TEN_M, rates_mbps: &[5.0; 10], ..BET };
    compare(&saturated, &[(3.503, 284.5); 10], EXACT.0, EXACT.1);
    let fading = Setup { fading: WALK, ..saturated };
    compare(&fading, &[(2.976, 335.5); 10], FADING.0, FADING.1);
    let light = Setup { rates_mbps: &[2.0; 10], ..fading };
    compare(&light, &[(2.0, 8.40); 10], FADING.0, FADING.1);
    let nearly_full = Setup { rates_mbps: &[2.6; 10], ..fading };
    compare(&nearly_full, &[(2.6, 9.45); 10], FADING.0, FADING.1);
}

#[test]
fn far_ues_on_a_walk() {
    let near = Setup { fading: WALK, distances_m: &[900.0; 3], rates_mbps: &[20.0; 3], ..BET };
    compare(&near, &[(9.983, 102.3); 3], FADING.0, FADING.1);
    let far = Setup { distances_m: &[4000.0; 3], rates_mbps: &[10.0; 3], ..near };
    compare(&far, &[(4.677, 215.7); 3], FADING.0, FADING.1);
    let farther = Setup { distances_m: &[6000.0; 6], rates_mbps: &[3.0; 6], ..near };
    compare(&farther, &[(1.565, 636.2); 6], FADING.0, FADING.1);
}

#[test]
fn far_ues_in_cars() {
    let fading = Some(Fading { profile: Profile::ExtendedVehicularA, speed_kmh: 60.0 });
    let setup = Setup { fading, distances_m: &[3000.0; 2], rates_mbps: &[15.0; 2], ..BET };
    compare(&setup, &[(8.957, 114.3); 2], FADING.0, FADING.1);
}

#[test]
fn other_schedulers() {
    let setup = |scheduler| Setup { scheduler, distances_m: &[900.0, 900.0, 6000.0], rates_mbps: &[20.0; 3], ..BET };
    let fd_bet = [(7.978, 127.7), (7.982, 127.7), (7.967, 128.0)];
    compare(&setup("blind-equal-throughput-fd"), &fd_bet, EXACT.0, EXACT.1);
    let fair = [(11.775, 87.02), (11.764, 87.01), (4.797, 210.6)];
    compare(&setup("proportional-fair"), &fair, EXACT.0, EXACT.1);
    // ns-3 leaves the group unused that three UEs cannot share evenly: one sixteenth.
    let turns = [(10.998 * 16.0 / 15.0, 93.51 * 15.0 / 16.0); 2];
    compare(&setup("round-robin"), &turns, 0.02, 0.02);
}

#[test]
fn idle_ues_take_their_turns_if_they_are_reserved() {
    let scheduler = "blind-equal-throughput-reserved";
    let rates_mbps = &[20.0, 1.0, 1.0, 1.0];
    let setup = Setup { scheduler, distances_m: &[900.0; 4], rates_mbps, ..BET };
    compare(&setup, &[(8.762, 116.1)], EXACT.0, EXACT.1);
    let mut rig = Rig::new(CellConfig { scheduler: scheduler.into(), ..CellConfig::default() });
    // The use of the other UEs is not known yet, and does not matter.
    rig.saturate_some(1, 60, Instant::from_millis(500));
    let state = rig.cell().ue(UeId(3));
    assert_eq!(state.capacity_estimate, state.share_estimate);
}
