//! The Wi-Fi channel, compared with a single exchange computed by hand and Bianchi's saturation throughput, and its
//! invariants.

use network::wlan::{DataRate, StationId, Wlan, WlanConfig};
use network::{DropCause, Gate};
use units::{Duration, Instant, Probability, Rate};

use super::rig::{Rig, config, us};

#[test]
fn a_lone_packet_takes_its_frame_s_time() {
    for (mbps, data_us) in [(54, 240), (6, 1976)] {
        let data_rate = DataRate::new(Rate::from_mbps(mbps)).unwrap();
        let mut rig = Rig::new(WlanConfig { data_rate, ..config(2) }, 1);
        rig.send(1, 0, us(1000));
        rig.run(us(10_000), |_, _, _| {});
        let arrived: Vec<_> =
            rig.arrived.iter().map(|(at, port, amount)| (at.as_micros(), *port, amount.bytes)).collect();
        assert_eq!(arrived, [(1000 + data_us, rig.ports[0], 1428)]);
        assert_eq!(rig.network.next_wakeup(), None, "an idle channel asks for nothing");
    }
}

/// The free port is the means by which experiments measure the cost of some packets.
#[test]
fn segments_of_a_free_port_cross_at_once_and_take_no_airtime() {
    for (free_port, is_free) in [(None, false), (Some(7), true), (Some(8), true), (Some(9), false)] {
        let mut rig = Rig::new(WlanConfig { free_port, ..config(2) }, 1);
        rig.send_segment(1, 0, [7, 8], us(1000));
        assert_eq!(rig.network.poll_delivery().is_some(), is_free, "{free_port:?}");
        rig.run(us(10_000), |_, _, _| {});
        assert_eq!((rig.arrived.len(), rig.wlan().busy().is_zero()), (usize::from(!is_free), is_free), "{free_port:?}");
    }
}

#[test]
fn a_second_packet_waits_for_the_answer_difs_and_a_backoff() {
    let mut rig = Rig::new(config(2), 1);
    rig.send(1, 0, us(0));
    rig.send(1, 0, us(0));
    rig.run(us(10_000), |_, _, _| {});
    let [first, second] = [0, 1].map(|index| rig.arrived[index].0.as_micros());
    // DIFS is over at 0: the channel was idle before.
    assert_eq!(first, 240);
    // SIFS 16, ACK 28, DIFS 34, a number of slots of 9, and the frame.
    let slots = (second - first - 16 - 28 - 34 - 240) as f64 / 9.0;
    assert!(slots.fract() == 0.0 && (0.0..=15.0).contains(&slots), "{slots}");
}

/// Payload bit/s of `stations` that always have data for the root.
fn saturation_bps(stations: u16, data_rate: DataRate, seconds: u64) -> f64 {
    let mut rig = Rig::new(WlanConfig { data_rate, ..config(stations + 1) }, 7);
    for station in 1..=stations {
        rig.send(station, 0, Instant::ZERO);
        rig.send(station, 0, Instant::ZERO);
    }
    let mut refill = |rig: &mut Rig, _: u16, now: Instant| {
        for station in 1..=stations {
            while rig.wlan().queued(StationId(station)).packets < 2 {
                rig.send(station, 0, now);
            }
        }
    };
    rig.run(Instant::from_secs(seconds), &mut refill);
    rig.arrived.len() as f64 * 1400.0 * 8.0 / seconds as f64
}

/// Bianchi's saturation throughput (IEEE JSAC 18(3), 2000, equations 9 and 13) with a backoff chain that ends after
/// seven attempts: payload bit/s, for frames of `data_us` and acknowledgements of `ack_us`.
fn bianchi_bps(stations: u16, data_us: f64, ack_us: f64) -> f64 {
    let windows = [15.0, 31.0, 63.0, 127.0, 255.0, 511.0, 1023.0];
    let others = f64::from(stations) - 1.0;
    let mut tau = 0.1;
    for _ in 0..2000 {
        let p = 1.0 - libm::pow(1.0 - tau, others);
        let (mut attempts, mut slots, mut weight) = (0.0, 0.0, 1.0);
        for window in windows {
            attempts += weight;
            slots += weight * (window / 2.0 + 1.0);
            weight *= p;
        }
        tau = 0.9 * tau + 0.1 * attempts / slots;
    }
    let n = f64::from(stations);
    let some = 1.0 - libm::pow(1.0 - tau, n);
    let one = n * tau * libm::pow(1.0 - tau, n - 1.0);
    let success_us = data_us + 16.0 + ack_us + 34.0;
    // The other stations wait for EIFS, the colliding ones for the time-out of the answer.
    let collision_us = data_us + 94.0;
    let slot_us = (1.0 - some) * 9.0 + one * success_us + (some - one) * collision_us;
    one * 1400.0 * 8.0 / slot_us * 1e6
}

/// Our throughput over Bianchi's for each number of stations.
fn ratios(counts: &[u16]) -> Vec<f64> {
    let slowest = DataRate::new(Rate::from_mbps(6)).unwrap();
    let set_ups = [(DataRate::FASTEST, 240.0, 28.0), (slowest, 1976.0, 44.0)];
    let ratio = |(rate, data_us, ack_us), stations| {
        let (ours, theory) = (saturation_bps(stations, rate, 20), bianchi_bps(stations, data_us, ack_us));
        println!("{stations} stations: {ours:.0} bit/s, Bianchi {theory:.0}, ratio {:.4}", ours / theory);
        ours / theory
    };
    set_ups.into_iter().flat_map(|set_up| counts.iter().map(move |count| ratio(set_up, *count))).collect()
}

#[test]
fn saturation_throughput_is_bianchi_s() {
    assert!(ratios(&[1, 2, 3, 5, 10]).iter().all(|ratio| (ratio - 1.0).abs() < 0.02));
}

/// Bianchi counts every busy period as a slot for all stations, after which any of them may send in the first slot; in
/// the standard only the last sender can (Tinnirello, Bianchi, Xiao, IEEE TVT 59(3), 2010). With many stations there
/// are therefore fewer collisions than in his model.
#[test]
fn many_stations_do_a_little_better_than_bianchi_s() {
    assert!(ratios(&[20, 50]).iter().all(|ratio| (1.01..1.1).contains(ratio)));
}

#[test]
fn stations_share_the_channel_evenly() {
    let mut rig = Rig::new(config(6), 3);
    let mut counts = [0_u64; 6];
    (1..6).for_each(|station| rig.send(station, 0, Instant::ZERO));
    rig.run(Instant::from_secs(20), |rig, from, now| {
        counts[usize::from(from)] += 1;
        for station in 1..6 {
            if rig.wlan().queued(StationId(station)).packets < 2 {
                rig.send(station, 0, now);
            }
        }
    });
    let (least, most) = (counts[1..].iter().min().unwrap(), counts[1..].iter().max().unwrap());
    assert!(*most as f64 / *least as f64 <= 1.05, "{counts:?}");
    let collisions: u64 = (1..6).map(|station| rig.wlan().counters(StationId(station)).collisions).sum();
    assert!(collisions > 1000, "{collisions}");
    assert!(rig.wlan().busy() < Duration::from_secs(20));
}

#[test]
fn noise_costs_attempts_and_in_the_end_the_packet() {
    let frame_error = Probability::new(0.5).unwrap();
    let mut rig = Rig::new(WlanConfig { frame_error, ..config(2) }, 5);
    let mut sent = 0;
    while sent < 20_000 {
        let now = us(100_000 * sent);
        rig.send(1, 0, now);
        sent += 1;
        rig.run(us(100_000 * sent - 1), |_, _, _| {});
    }
    let counters = rig.wlan().counters(StationId(1));
    // One packet in 2^7 fails seven times: 156 of 20,000, with a standard deviation of 12.
    assert!(counters.given_up > 110 && counters.given_up < 205, "{counters:?}");
    assert_eq!(counters.delivered.packets + counters.given_up, 20_000);
    // 1 + 1/2 + ... + 1/64 attempts per packet.
    let attempts = counters.attempts as f64 / 20_000.0;
    assert!((attempts - 1.984).abs() < 0.03, "{attempts}");
    let gate = rig.network.gate(rig.wlan, Gate(1));
    assert_eq!(rig.network.counters(gate).dropped(DropCause::Loss).packets, counters.given_up);
}

#[test]
fn a_station_that_leaves_takes_its_queue_along() {
    let mut rig = Rig::new(config(3), 1);
    (0..4).for_each(|_| rig.send(1, 0, us(0)));
    rig.network.with_medium(rig.wlan, us(100), |wlan: &mut Wlan| wlan.leave(StationId(1)));
    rig.send(2, 1, us(100));
    rig.run(us(1_000_000), |_, _, _| {});
    // The frame on the air arrives, three are lost; the frame to the absent station is dropped after seven attempts.
    assert_eq!(rig.arrived.len(), 1);
    let dropped = |rig: &Rig, station: u16, cause| {
        let gate = rig.network.gate(rig.wlan, Gate(station));
        rig.network.counters(gate).dropped(cause).packets
    };
    assert_eq!((dropped(&rig, 1, DropCause::Outage), dropped(&rig, 2, DropCause::Loss)), (3, 1));
    rig.send(1, 0, us(1_000_000));
    assert_eq!(dropped(&rig, 1, DropCause::Outage), 4);
    rig.network.with_medium(rig.wlan, us(1_000_000), |wlan: &mut Wlan| wlan.join(StationId(1)));
    rig.send(1, 0, us(1_000_000));
    rig.run(us(2_000_000), |_, _, _| {});
    assert_eq!(rig.arrived.len(), 2);
}

/// Failed attempts from before a departure do not count against frames after the return.
#[test]
fn a_station_that_comes_back_begins_anew() {
    let mut rig = Rig::new(config(3), 1);
    rig.network.with_medium(rig.wlan, us(0), |wlan: &mut Wlan| wlan.leave(StationId(0)));
    rig.send(1, 0, us(0));
    let mut now = 0;
    // In the backoff after the fifth attempt.
    while rig.wlan().counters(StationId(1)).attempts < 5 {
        now += 10;
        rig.run(us(now), |_, _, _| {});
    }
    now += 500;
    rig.run(us(now), |_, _, _| {});
    assert_eq!(rig.wlan().counters(StationId(1)).attempts, 5);
    rig.network.with_medium(rig.wlan, us(now), |wlan: &mut Wlan| wlan.leave(StationId(1)));
    rig.network.with_medium(rig.wlan, us(now), |wlan: &mut Wlan| wlan.join(StationId(1)));
    rig.send(1, 0, us(now));
    rig.run(us(1_000_000), |_, _, _| {});
    let counters = rig.wlan().counters(StationId(1));
    assert_eq!((counters.attempts, counters.given_up), (5 + 7, 1));
}

/// IEEE 802.11-2016 section 10.3.3: attempts without a CTS count against the short limit, attempts that fail after one
/// against the long limit.
#[test]
fn requests_have_seven_attempts_and_frames_after_an_answer_four() {
    for hidden in [vec![], vec![(StationId(1), StationId(2))]] {
        let outcome = |is_present: bool, frame_error: f64| {
            let frame_error = Probability::new(frame_error).unwrap();
            let config = WlanConfig { rts_threshold_bytes: 1000, frame_error, hidden: hidden.clone(), ..config(3) };
            let mut rig = Rig::new(config, 1);
            if !is_present {
                rig.network.with_medium(rig.wlan, us(0), |wlan: &mut Wlan| wlan.leave(StationId(0)));
            }
            rig.send(1, 0, us(1000));
            rig.run(us(1_000_000), |_, _, _| {});
            let counters = rig.wlan().counters(StationId(1));
            (counters.attempts, counters.given_up, counters.airtime.as_micros() / counters.attempts)
        };
        // A request takes 28 us; a whole exchange without the acknowledgement takes 28 + 16 + 28 + 16 + 240.
        assert_eq!(outcome(false, 0.0), (7, 1, 28), "{hidden:?}");
        assert_eq!(outcome(true, 0.999_999), (4, 1, 328), "{hidden:?}");
    }
}

/// At 6 Mbit/s, the frames take 208 us and 1976 us; the space and the answer take 60 us.
#[test]
fn a_frame_that_collides_is_on_the_air_for_its_own_time() {
    let data_rate = DataRate::new(Rate::from_mbps(6)).unwrap();
    let counters = |seed| {
        let mut rig = Rig::new(WlanConfig { data_rate, ..config(3) }, seed);
        rig.send(0, 1, us(1000));
        // Both draw a backoff, as the channel is busy. One pair of draws in 16 is equal.
        rig.send_payload(1, 0, 72, us(1100));
        rig.send(2, 0, us(1100));
        rig.run(Instant::from_secs(1), |_, _, _| {});
        [1, 2].map(|station| rig.wlan().counters(StationId(station)))
    };
    let collided = (0..200).map(counters).find(|both| both.iter().all(|one| (one.collisions, one.attempts) == (1, 2)));
    assert_eq!(collided.unwrap().map(|one| one.airtime.as_micros()), [208 + 268, 1976 + 2036]);
}

#[test]
fn long_frames_collide_with_their_request_only() {
    let run = |rts_threshold_bytes| {
        let mut rig = Rig::new(WlanConfig { rts_threshold_bytes, ..config(31) }, 9);
        (1..31).for_each(|station| rig.send(station, 0, Instant::ZERO));
        rig.run(Instant::from_secs(5), |rig, from, now| rig.send(from, 0, now));
        rig.arrived.len()
    };
    // With overheads as at 6 Mbit/s, RTS pays only with many stations: 30 stations waste a third of the channel in
    // collisions.
    let (with, without) = (run(1000), run(2200));
    assert!(with != without && with > 5000, "{with} {without}");
}

/// IEEE 802.11-2016 section 10.3.4.3: a station that gets a frame while the channel is busy cannot use a backoff that
/// is over.
#[test]
fn frames_that_arrive_during_another_s_exchange_draw_anew() {
    let collide = |seed: &u64| {
        let mut rig = Rig::new(config(4), *seed);
        let send = |rig: &mut Rig, at_us: u64, from: &[u16]| {
            rig.run(Instant::from_micros(at_us), |_, _, _| ());
            from.iter().for_each(|from| rig.send(*from, 3, Instant::from_micros(at_us)));
        };
        send(&mut rig, 1_000, &[1, 2]);
        // The backoffs after those frames have ended when station 0 sends.
        send(&mut rig, 50_000, &[0]);
        let before = rig.wlan().counters(StationId(1)).collisions;
        send(&mut rig, 50_100, &[1, 2]);
        rig.run(Instant::from_millis(100), |_, _, _| ());
        assert_eq!(rig.arrived.len(), 5);
        rig.wlan().counters(StationId(1)).collisions > before
    };
    // One draw in 16 is equal.
    let collided = (0..100).filter(collide).count();
    assert!((1..=15).contains(&collided), "{collided} of 100");
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let run = |seed| {
        let mut rig = Rig::new(config(4), seed);
        (1..4).for_each(|station| rig.send(station, 0, Instant::ZERO));
        rig.run(Instant::from_millis(200), |rig, from, now| rig.send(from, 0, now));
        rig.arrived.iter().map(|(at, ..)| at.as_nanos()).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn absurd_settings_are_named() {
    let field = |config: WlanConfig| Wlan::new(config).err().unwrap().field;
    assert_eq!(field(WlanConfig { stations: 1, ..WlanConfig::default() }), "stations");
    assert_eq!(field(WlanConfig { contention_window_min: 2000, ..WlanConfig::default() }), "contention_window_min");
    assert_eq!(field(WlanConfig { short_retry_limit: 0, ..WlanConfig::default() }), "short_retry_limit");
    let frame_error = Probability::new(1.0).unwrap();
    assert_eq!(field(WlanConfig { frame_error, ..WlanConfig::default() }), "frame_error");
    assert_eq!(field(WlanConfig { propagation: Duration::from_millis(1), ..WlanConfig::default() }), "propagation");
    for hidden in [(1, 1), (1, 11)].map(|(one, other)| vec![(StationId(one), StationId(other))]) {
        assert_eq!(field(WlanConfig { hidden, ..WlanConfig::default() }), "hidden");
    }
}
