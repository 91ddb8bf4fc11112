//! Channels stall while data flow, and vice versa.

use units::Instant;

use super::stall::{Stall, What};
use super::world::{HOLD_BYTES, Wish, World, path};

const FROM: Instant = Instant::from_secs(5);
/// Longer than the user time-out of control connections.
const TO: Instant = Instant::from_secs(35);
const LIMIT: Instant = Instant::from_secs(120);
/// More than relays that route, and relays that splice, carry by a little later.
const BYTES: [u64; 2] = [30_000_000, 40_000_000];

fn octets_in(world: &mut World, from_s: u64, to_s: u64, relay: usize) -> u64 {
    world.run_until(Instant::from_secs(from_s));
    let before = world.arrived_at(path(relay, 1));
    world.run_until(Instant::from_secs(to_s));
    world.arrived_at(path(relay, 1)) - before
}

fn channels_of_one(relay: usize) -> Option<Box<dyn network::Node>> {
    (relay == 0).then(|| Box::new(Stall { what: What::Channels, span: FROM..TO }) as _)
}

fn data_of_one(relay: usize) -> Option<Box<dyn network::Node>> {
    (relay == 0).then(|| Box::new(Stall { what: What::Data, span: FROM..TO }) as _)
}

/// A relay that hears nothing holds data beyond its range for at most two seconds, until it knows that its channel is
/// dead: after the user time-out of its connection, 20 s from its first unacknowledged message. After that, it holds
/// nothing.
#[test]
fn data_flow_while_a_channel_stalls_and_the_channel_opens_again() {
    for splices in [false, true] {
        let mut world =
            World::new(Wish { splices, bytes: BYTES[usize::from(splices)], wifi: channels_of_one, ..Wish::default() });
        let hearing_late = octets_in(&mut world, 16, 20, 0);
        assert!(hearing_late > 20_000, "splices: {splices}: data flow: {hearing_late} octets");
        let deaf = octets_in(&mut world, 30, 34, 0);
        let least = if splices { hearing_late } else { 4 * hearing_late };
        assert!(deaf >= least, "splices: {splices}: {deaf} octets, {hearing_late} before");
        assert_eq!(world.held_bytes(0), 0, "who is deaf holds nothing");
        world.run_until(Instant::from_secs(41));
        let [(opened, refused), _] = world.opened_and_refused(0);
        assert_eq!((opened, refused), (4, 0), "after four seconds at most it is called again");
        world.finish(LIMIT);
    }
}

#[test]
fn a_channel_stays_open_while_data_stall_and_the_others_carry_them() {
    for splices in [false, true] {
        let mut world =
            World::new(Wish { splices, bytes: BYTES[usize::from(splices)], wifi: data_of_one, ..Wish::default() });
        world.run_until(Instant::from_secs(20));
        let carried = |world: &World| world.arrived_at(path(1, 1)) + world.arrived_at(path(2, 1));
        let before = carried(&world);
        world.run_until(Instant::from_secs(30));
        let others = carried(&world) - before;
        assert!(others > 3_000_000, "splices: {splices}: {others} octets in ten seconds");
        assert_eq!(octets_in(&mut world, 30, 34, 0), 0, "data stall");
        let before = world.arrived_at(path(0, 1));
        assert!(world.held_bytes(0) <= HOLD_BYTES);
        world.finish(LIMIT);
        assert_eq!(world.opened_and_refused(0)[0], (3, 0), "no channel broke");
        let after = world.arrived_at(path(0, 1)) - before;
        assert!(after > 100_000, "splices: {splices}: the relay carries data again: {after} octets");
    }
}
