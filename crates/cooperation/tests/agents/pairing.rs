//! Which ends pair, how long it takes, and what happens when one vanishes.

use units::{Duration, Instant};

use super::stage::{DESTINATION_KEY, F, WAY, identity, stage};

#[test]
fn the_application_starts_when_every_relay_has_offered_something() {
    let mut stage = stage(5, DESTINATION_KEY);
    stage.run_until(Instant::from_secs(2));
    let started_at = stage.started_at.get().unwrap();
    // SYN, SYN-ACK, both first messages, the second, the confirmation, the offer: six ways.
    let ways = Instant::ZERO + WAY.saturating_mul(6);
    assert!((ways..ways + Duration::from_millis(5)).contains(&started_at), "{started_at:?}");
    assert_eq!(stage.opened_and_refused(3), [(5, 0), (1, 0)]);
    assert_eq!(stage.simulation.faults(), [""; 0]);
}

#[test]
fn it_waits_a_second_for_relays_that_are_not_there() {
    let mut stage = stage(3, DESTINATION_KEY);
    let (_, host) = stage.relays[1];
    stage.simulation.with_host(host, |host, _| host.switch_off());
    stage.run_until(Instant::from_secs(2));
    assert_eq!(stage.started_at.get(), Some(Instant::from_secs(1)));
}

#[test]
fn who_is_not_served_hears_nothing_and_asks_less_and_less_often() {
    let mut stage = stage(2, 66);
    stage.run_until(Instant::from_secs(60));
    let [(opened, _), (served, refused)] = stage.opened_and_refused(0);
    assert_eq!((opened, served), (2 + refused - 1, refused), "the relay proves itself before it knows who asks");
    // Calls after 0.5, 1 and 2 s, then every 4 s.
    assert!((15..=20).contains(&refused), "{refused}");
    assert_eq!(stage.started_at.get(), Some(Instant::from_secs(1)));
}

#[test]
fn a_relay_that_crashed_is_called_again() {
    let mut stage = stage(2, DESTINATION_KEY);
    stage.run_until(Instant::from_secs(5));
    stage.restart(1, None, 2);
    // The next message or keep-alive of the destination meets a host that does not know the connection.
    stage.run_until(Instant::from_secs(20));
    assert_eq!(stage.opened_and_refused(1), [(3, 0), (1, 0)]);
    assert_eq!(stage.simulation.faults(), [""; 0]);
}

#[test]
fn somebody_with_another_key_in_its_place_is_not_believed() {
    let mut stage = stage(2, DESTINATION_KEY);
    stage.run_until(Instant::from_secs(5));
    stage.restart(1, Some(identity(99)), 2);
    stage.run_until(Instant::from_secs(60));
    let [(opened, _), (served, refused)] = stage.opened_and_refused(1);
    assert_eq!((opened, served), (2, 0));
    assert!(refused > 5, "{refused} tries");
}

#[test]
fn a_hundred_relays_pair_at_once_and_again_after_all_of_them_crashed() {
    let mut stage = stage(100, DESTINATION_KEY);
    stage.run_until(Instant::from_secs(4));
    assert_eq!(stage.opened_and_refused(0)[0], (100, 0));
    (0..100).for_each(|relay| stage.restart(relay, None, 2));
    stage.run_until(Instant::from_secs(30));
    assert_eq!(stage.opened_and_refused(0)[0], (200, 0));
    let connections = stage.simulation.host(stage.destination).endpoint.footprint().connections;
    assert!(connections <= 100, "{connections}");
    assert!(stage.started_at.get().unwrap() < Instant::ZERO + F);
}
