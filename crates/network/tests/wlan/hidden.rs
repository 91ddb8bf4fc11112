//! Stations that do not hear each other.

use network::wlan::{DataRate, StationId, WlanConfig};
use units::{Duration, Instant, Rate};

use super::rig::{Rig, config, us};

/// Stations 1 and 2, which do not hear each other, and their root.
fn hidden_pair(stations: u16) -> WlanConfig {
    WlanConfig { hidden: vec![(StationId(1), StationId(2))], ..config(stations) }
}

/// Sends one packet per 100 ms from either station, that of station 2 later by `10 us * n`, with one attempt each.
/// Returns how many of each station's 1000 packets are lost.
fn lost_of_1000(config: WlanConfig) -> [u64; 2] {
    let mut rig = Rig::new(WlanConfig { short_retry_limit: 1, ..config }, 1);
    for number in 0..1000 {
        let begin = us(100_000 * number);
        rig.send(1, 0, begin);
        rig.run(begin + Duration::from_micros(10 * number), |_, _, _| {});
        rig.send(2, 0, begin + Duration::from_micros(10 * number));
        rig.run(us(100_000 * (number + 1) - 1), |_, _, _| {});
    }
    [1, 2].map(|station| rig.wlan().counters(StationId(station)).given_up)
}

#[test]
fn hidden_stations_collide_as_long_as_a_frame_lasts() {
    // A frame lasts 240 us: frames that begin at 0, 10 ... 230 us destroy it and themselves. At 240 and 250 us the root
    // is about to acknowledge, and hears nothing while it does; from 260 us on station 2 hears the acknowledgement, and
    // waits.
    assert_eq!(lost_of_1000(hidden_pair(3)), [24, 26]);
    // Stations that hear each other wait.
    assert_eq!(lost_of_1000(config(3)), [0, 0]);
}

#[test]
fn a_collision_at_the_root_takes_both_to_a_second_attempt() {
    let mut rig = Rig::new(hidden_pair(3), 1);
    rig.send(1, 0, us(0));
    rig.run(us(100), |_, _, _| {});
    rig.send(2, 0, us(100));
    rig.run(us(339), |_, _, _| {});
    let counters = |rig: &Rig, station| rig.wlan().counters(StationId(station));
    assert_eq!([1, 2].map(|station| counters(&rig, station).collisions), [1, 0]);
    rig.run(us(100_000), |_, _, _| {});
    assert!(counters(&rig, 2).collisions >= 1);
    assert_eq!([1, 2].map(|station| counters(&rig, station).delivered.packets), [1, 1]);
    assert_eq!(rig.network.next_wakeup(), None);
}

/// Packets per second that arrive at the root from stations 1 and 2, which always have data.
fn pair_per_s(config: WlanConfig) -> f64 {
    let mut rig = Rig::new(config, 7);
    // A frame lasts longer than a millisecond: no queue runs dry, whether or not packets arrive.
    for now in (0..20_000).map(Instant::from_millis) {
        for station in 1..3 {
            while rig.wlan().queued(StationId(station)).packets < 3 {
                rig.send(station, 0, now);
            }
        }
        rig.run(now + Duration::from_micros(999), |_, _, _| {});
    }
    rig.arrived.len() as f64 / 20.0
}

#[test]
fn hidden_stations_cost_throughput_and_requests_to_send_save_much_of_it() {
    let data_rate = DataRate::new(Rate::from_mbps(6)).unwrap();
    let without = pair_per_s(WlanConfig { data_rate, ..config(3) });
    let with = pair_per_s(WlanConfig { data_rate, ..hidden_pair(3) });
    let reserved = pair_per_s(WlanConfig { data_rate, rts_threshold_bytes: 0, ..hidden_pair(3) });
    println!("all hear {without}, hidden {with}, hidden with RTS {reserved}");
    // A frame lasts 220 slots, a request 6: a frame is longer than most backoffs, a request shorter.
    assert!(with < 0.7 * without && reserved > 3.0 * with, "{without} {with} {reserved}");
}

/// Two stations that never send do not hear each other. All others do, so both models of the channel must agree.
#[test]
fn both_ways_of_counting_agree() {
    for stations in [1, 2, 5, 10] {
        let hidden = vec![(StationId(stations + 1), StationId(stations + 2))];
        let spectators = WlanConfig { stations: stations + 3, hidden, ..config(0) };
        let saturated = |config: WlanConfig| {
            let mut rig = Rig::new(config, 7);
            (1..=stations).for_each(|station| rig.send(station, 0, Instant::ZERO));
            rig.run(Instant::from_secs(20), |rig, _, now| {
                for station in 1..=stations {
                    while rig.wlan().queued(StationId(station)).packets < 2 {
                        rig.send(station, 0, now);
                    }
                }
            });
            (rig.arrived.len() as f64, rig.wlan().busy().as_secs_f64())
        };
        let (one, other) = (saturated(spectators), saturated(config(stations + 1)));
        println!("{stations}: {one:?} {other:?}");
        assert!((one.0 / other.0 - 1.0).abs() < 0.01 && (one.1 / other.1 - 1.0).abs() < 0.01, "{one:?} {other:?}");
    }
}

#[test]
fn data_whose_acknowledgement_is_lost_arrive_once() {
    // When stations 1 and 3 begin in the same slot, the root, which does not hear 3, understands 1; but 3 still sends
    // when the acknowledgement comes, so 1 does not hear it.
    let hidden = vec![(StationId(0), StationId(3))];
    let mut rig = Rig::new(WlanConfig { hidden, ..config(5) }, 1);
    let mut sent = 0;
    let mut refill = |rig: &mut Rig, now| {
        while sent < 1000 && rig.wlan().queued(StationId(1)).packets < 2 {
            rig.send_payload(1, 0, 100, now);
            rig.send(3, 4, now);
            sent += 1;
        }
    };
    refill(&mut rig, us(0));
    rig.run(Instant::from_secs(2), |rig, _, now| refill(rig, now));
    let counters = rig.wlan().counters(StationId(1));
    let at_root = rig.arrived.iter().filter(|(_, port, _)| *port == rig.ports[0]).count();
    assert_eq!((at_root, counters.delivered.packets, counters.given_up), (1000, 1000, 0));
    assert!(counters.collisions > 20 && counters.attempts == 1000 + counters.collisions, "{counters:?}");
}
