//! The destination's address on the Wi-Fi changes while data arrive.

use core::net::IpAddr;

use units::{Instant, Rate};

use super::world::{Wish, World, path};

const CHANGE: Instant = Instant::from_secs(4);

/// Loads a file; the addresses of `moved` relays' paths change during the download.
fn moved(wish: Wish, moved: usize) -> World {
    let relays = wish.relays;
    let mut world = World::new(wish);
    world.run_until(CHANGE);
    assert!(world.report().received_bytes > 200_000, "data come");
    for relay in 0..moved {
        world.with_destination(|agent, endpoint, now| {
            agent.change_address(path(relay, 1), path(relay, 2), endpoint, now);
        });
    }
    assert_nothing_begins_at(&world, (0..moved).map(|relay| path(relay, 1)).collect());
    let before: Vec<u64> = (0..moved).map(|relay| world.arrived_at(path(relay, 1))).collect();
    world.finish(Instant::from_secs(90));
    for (relay, before) in before.into_iter().enumerate() {
        assert_eq!(world.arrived_at(path(relay, 1)), before, "nothing comes to an address that is gone");
        assert!(world.arrived_at(path(relay, 2)) > 200_000, "path {relay} goes on from the new address");
        assert_nothing_begins_at(&world, vec![path(relay, 1)]);
        let [(opened, _), (served, _)] = world.opened_and_refused(relay);
        assert_eq!((opened, served), ((relays + moved) as u64, 2), "its channel, too");
    }
    world
}

/// Asserts that no open connection or later call begins at an address that is gone. Nothing else would notice, because
/// this network still knows the route to it.
fn assert_nothing_begins_at(world: &World, gone: Vec<IpAddr>) {
    let endpoint = &world.simulation.host(world.destination).host.endpoint;
    let stats = endpoint.connections().filter_map(|connection| endpoint.stats(connection));
    let open = stats.flat_map(|stats| stats.subflows).filter(|subflow| subflow.closed_at.is_none());
    let left: Vec<_> = open.map(|subflow| subflow.local).filter(|local| gone.contains(&local.ip())).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn channels_and_subflows_begin_anew_and_no_octet_is_lost() {
    for splices in [false, true] {
        moved(Wish { splices, ..Wish::default() }, 1);
    }
}

/// A relay that routes and holds recognises the destination's packets by the address from which the destination calls.
#[test]
fn relays_that_route_hold_for_the_new_address_as_well() {
    let mut world = World::new(Wish::default());
    world.run_until(CHANGE);
    for relay in 0..3 {
        world.with_destination(|agent, endpoint, now| {
            agent.change_address(path(relay, 1), path(relay, 2), endpoint, now);
        });
    }
    let mut peak = [0; 3];
    for at_ms in (6000..10_000).step_by(50) {
        world.run_until(Instant::from_millis(at_ms));
        (0..3).for_each(|relay| peak[relay] = peak[relay].max(world.held_bytes(relay)));
    }
    // The relay whose data are wanted next holds none.
    assert!(peak.iter().filter(|bytes| **bytes > 0).count() >= 2, "{peak:?} octets held");
    world.finish(Instant::from_secs(90));
}

#[test]
fn all_addresses_may_change_at_once() {
    for splices in [false, true] {
        moved(Wish { splices, ..Wish::default() }, 3);
    }
}

#[test]
fn a_connection_with_one_path_survives() {
    moved(Wish { relays: 1, bytes: 3_000_000, ..Wish::default() }, 1);
}

#[test]
fn relay_selection_goes_on_with_the_relays_it_has() {
    for splices in [false, true] {
        let target = Some(Rate::from_bps(5_500_000));
        moved(Wish { splices, target, ..Wish::default() }, 3);
    }
}
