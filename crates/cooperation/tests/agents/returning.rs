//! A relay crashes while it carries data, and returns: as it was, at another address, or as another device.

use units::Instant;

use super::clocked::Clock;
use super::world::{Birth, Wish, World, control, identity, path};

const CRASH: Instant = Instant::from_secs(3);
const RETURN: Instant = Instant::from_secs(5);
const LIMIT: Instant = Instant::from_secs(60);

/// Three relays carry a file; the last one crashes, and returns as `birth` says.
fn crashed_and_back(splices: bool, birth: Birth) -> World {
    let mut world = World::new(Wish { splices, ..Wish::default() });
    world.run_until(CRASH);
    assert!(world.arrived_at(path(2, 1)) > 100_000, "it carries data when it crashes");
    world.crash(2);
    world.run_until(RETURN);
    world.revive(2, birth);
    world
}

#[test]
fn one_that_comes_back_as_it_was_is_called_again_and_nothing_is_lost() {
    for splices in [false, true] {
        let mut world = crashed_and_back(splices, Birth { seed: 77, ..Birth::first(2) });
        world.finish(LIMIT);
        assert_eq!(world.opened_and_refused(2), [(4, 0), (1, 0)], "splices: {splices}");
    }
}

#[test]
fn one_with_another_key_is_refused_until_the_destination_is_told() {
    for splices in [false, true] {
        let mut world = crashed_and_back(splices, Birth { identity: identity(99), seed: 77, ..Birth::first(2) });
        world.run_until(Instant::from_secs(12));
        let [opened, (served, refused)] = world.opened_and_refused(2);
        assert_eq!((opened, served), ((3, 0), 0));
        assert!(refused >= 2, "{refused} tries");
        let before = world.report().received_bytes;
        world.run_until(Instant::from_secs(13));
        assert!(world.report().received_bytes > before + 300_000, "the others go on");
        world.with_destination(|agent, endpoint, now| {
            let relay = cooperation::relay_selection::RelayId(2);
            agent.change_relay(relay, control(2, 1), identity(99).public(), endpoint, now);
        });
        world.run_until(Instant::from_millis(13_500));
        let [opened, (served, _)] = world.opened_and_refused(2);
        assert_eq!((opened, served), ((4, 0), 1));
        world.finish(LIMIT);
    }
}

#[test]
fn one_at_another_address_is_found_once_the_destination_is_told() {
    let mut world = crashed_and_back(false, Birth { address: control(2, 2), seed: 77, ..Birth::first(2) });
    world.run_until(Instant::from_secs(12));
    assert_eq!(world.opened_and_refused(2), [(3, 0), (0, 0)]);
    world.with_destination(|agent, endpoint, now| {
        let relay = cooperation::relay_selection::RelayId(2);
        agent.change_relay(relay, control(2, 2), super::world::relay_identity(2).public(), endpoint, now);
    });
    world.run_until(Instant::from_millis(12_500));
    assert_eq!(world.opened_and_refused(2), [(4, 0), (1, 0)]);
    world.finish(LIMIT);
}

/// A host's clock starts with the host: messages of a relay after a crash must not count as older than those before it.
#[test]
fn offers_of_one_whose_clock_begins_anew_count() {
    let target = Some(units::Rate::from_bps(5_500_000));
    let mut world = World::new(Wish { bytes: 25_000_000, target, ..Wish::default() });
    world.run_until(Instant::from_secs(12));
    world.crash(2);
    world.run_until(Instant::from_secs(20));
    let before = world.arrived_at(path(2, 1));
    world.revive(2, Birth { clock: Clock { zero: Instant::from_secs(20), percent: 100 }, seed: 77, ..Birth::first(2) });
    world.run_until(Instant::from_secs(32));
    assert!(world.arrived_at(path(2, 1)) > before + 100_000, "the relay is chosen again");
    world.finish(Instant::from_secs(120));
}
