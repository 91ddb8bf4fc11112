//! What the destination tells relays, and what it does not.

use units::{Instant, Rate};

use super::world::{F, RANGE_BYTES, Wish, World, path};

/// Maximum octets of a record with a range or an acknowledgement.
const RECORD_BYTES_MAX: u64 = 70;
/// Octets of prefix, first message and confirmation.
const GREETING_BYTES: u64 = 6 + 96 + 18;

/// Relays that splice see DATA_ACKs pass: between ranges, the destination tells them hardly anything.
#[test]
fn relays_that_carry_data_are_told_of_ranges_and_little_else() {
    let mut world = World::new(Wish { splices: true, ..Wish::default() });
    world.run_until(Instant::from_secs(10));
    let ranges = world.stats().received_bytes / RANGE_BYTES;
    let most = GREETING_BYTES + (ranges + 10) * RECORD_BYTES_MAX;
    for relay in 0..3 {
        let heard = world.heard_control_bytes(relay);
        assert!(heard <= most, "relay {relay} heard {heard} octets, {ranges} ranges");
    }
}

/// A relay that is not chosen hears nothing until it is.
#[test]
fn relays_that_carry_nothing_are_told_nothing() {
    let mut world = World::new(Wish { relays: 6, target: Some(Rate::from_mbps(3)), ..Wish::default() });
    world.run_until(Instant::ZERO + F.saturating_mul(5));
    let is_idle = |world: &World, relay: usize| world.arrived_at(path(relay, 1)) == 0;
    let idle: Vec<usize> = (0..6).filter(|relay| is_idle(&world, *relay)).collect();
    assert!(!idle.is_empty() && idle.len() < 6, "{idle:?}");
    for relay in 0..6 {
        let heard = world.heard_control_bytes(relay);
        assert_eq!(heard <= GREETING_BYTES, idle.contains(&relay), "relay {relay} heard {heard} octets");
    }
}
