//! A destination with two connections over the same relays.

use core::net::SocketAddr;

use transport::SubflowStats;
use units::{Duration, Instant, Rate};

use super::world::{SOURCE, Wish, World};

/// Runs until both files have arrived, or the time is over; returns how many have.
fn completed(world: &mut World, limit: Instant) -> usize {
    let arrived = |world: &World| world.reports().iter().map(|report| report.completed).sum::<usize>();
    while arrived(world) < 2 && world.simulation.now() < limit {
        world.run_until(world.simulation.now() + Duration::from_millis(500));
    }
    assert_eq!(world.simulation.faults(), [""; 0]);
    arrived(world)
}

/// The numbers of either connection may be the larger ones: this depends on the seed. A relay that took what the
/// destination has of one connection for what it has of the other would swallow data.
#[test]
fn what_relays_hear_of_one_connection_says_nothing_of_the_other() {
    for splices in [true, false] {
        for seed in 1..5 {
            let again_at = Some(Instant::from_secs(3));
            let mut world = World::seeded(Wish { splices, bytes: 4_000_000, again_at, ..Wish::default() }, seed);
            // 8 MB over three links of 2 Mbit/s take 11 s.
            assert_eq!(completed(&mut world, Instant::from_secs(25)), 2, "splices: {splices}, seed {seed}");
        }
    }
}

/// The ranges of the second connection are numbered from 1 again.
#[test]
fn relays_hold_data_of_the_second_connection_after_the_first_has_ended() {
    for splices in [false, true] {
        let again_at = Some(Instant::from_secs(20));
        let mut world = World::new(Wish { splices, bytes: 6_000_000, again_at, ..Wish::default() });
        world.run_until(Instant::from_secs(19));
        assert_eq!(world.reports()[0].completed, 1, "splices: {splices}");
        let mut held = [0; 3];
        while world.simulation.now() < Instant::from_secs(25) {
            world.run_until(world.simulation.now() + Duration::from_millis(50));
            (0..3).for_each(|relay| held[relay] = held[relay].max(world.held_bytes(relay)));
        }
        // The relay whose data are wanted next holds none.
        assert!(held.iter().filter(|bytes| **bytes > 0).count() >= 2, "splices: {splices}: {held:?} octets held");
        assert_eq!(completed(&mut world, Instant::from_secs(40)), 2, "splices: {splices}");
    }
}

/// Another server: the port tells it from the source.
const OTHER: SocketAddr = SocketAddr::new(SOURCE.ip(), 81);

/// Returns where the subflows of the connection of application `app` go.
fn peers(world: &World, app: usize) -> Vec<SocketAddr> {
    let is_up = |subflow: &&SubflowStats| subflow.established_at.is_some() && subflow.closed_at.is_none();
    world.stats_of(app).subflows.iter().filter(is_up).map(|subflow| subflow.remote).collect()
}

#[test]
fn relays_are_selected_for_the_connection_to_the_source() {
    let (target, again_at) = (Some(Rate::from_mbps(4)), Some(Instant::from_secs(3)));
    let mut world = World::new(Wish { target, first_from: OTHER, again_at, bytes: 20_000_000, ..Wish::default() });
    world.run_until(Instant::from_secs(9));
    assert_eq!((peers(&world, 0), peers(&world, 1)), (vec![OTHER], vec![SOURCE; 2]));
    assert_eq!(world.simulation.faults(), [""; 0]);
}

/// The agent joins through the relay of the first subflow.
#[test]
fn relays_splice_subflows_to_the_server_of_each_connection() {
    let again_at = Some(Instant::from_secs(3));
    let wish = Wish { splices: true, first_from: OTHER, again_at, bytes: 20_000_000, ..Wish::default() };
    let mut world = World::new(wish);
    world.run_until(Instant::from_secs(6));
    assert_eq!((peers(&world, 0), peers(&world, 1)), (vec![OTHER; 4], vec![SOURCE; 4]));
    assert_eq!(world.simulation.faults(), [""; 0]);
}
