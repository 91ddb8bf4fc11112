//! A relay's clock runs 10 % fast, or slow.

use cooperation::agent::destination::DestinationEvent;
use units::{Instant, Rate};

use super::clocked::Clock;
use super::world::{Birth, F, Wish, World, path};

/// Two relays with true clocks, and one whose clock runs at `percent` of the true speed from the start.
fn world(percent: u64, wish: Wish) -> World {
    let mut world = World::new(wish);
    world.revive(2, Birth { clock: Clock { zero: Instant::ZERO, percent }, ..Birth::first(2) });
    world
}

#[test]
fn its_offers_count_as_those_of_others_and_it_carries_its_part() {
    const FILE_BYTES: u64 = 20_000_000;
    for (splices, percent) in [(false, 100), (false, 110), (false, 90), (true, 100), (true, 110), (true, 90)] {
        let target = Some(Rate::from_bps(5_500_000));
        let mut world = world(percent, Wish { splices, target, bytes: FILE_BYTES, ..Wish::default() });
        world.finish(Instant::from_secs(90));
        assert_eq!(world.opened_and_refused(2), [(3, 0), (1, 0)]);
        // Close to a third of the file, or more while another relay is left out.
        let carried = world.arrived_at(path(2, 1));
        assert!(carried * 3 * 10 > FILE_BYTES * 8, "splices: {splices}, clock at {percent} %: {carried} octets");
    }
}

/// Returns how many relays should carry data, as last reported to observers.
fn carrying(world: &mut World) -> Option<u64> {
    let mut latest = None;
    world.with_destination(|agent, _, _| {
        while let Some(event) = agent.poll_event() {
            if let DestinationEvent::ActiveSet { count, .. } = event {
                latest = Some(count);
            }
        }
    });
    latest
}

/// Its offers expire by the destination's clock, although their times lie in the future.
#[test]
fn one_that_goes_fast_is_missed_in_time_when_it_crashes() {
    let target = Some(Rate::from_bps(5_500_000));
    let mut world = world(110, Wish { splices: true, target, bytes: 36_000_000, ..Wish::default() });
    world.run_until(Instant::from_secs(40));
    assert_eq!(carrying(&mut world), Some(3));
    world.crash(2);
    // An offer expires after 3 s; the end of a period of 2 s notices that.
    world.run_until(Instant::from_millis(45_500));
    assert_eq!(carrying(&mut world), Some(2), "relay selection goes on without it");
    world.finish(Instant::from_secs(120));
}

/// Shows that the clock under test does run fast.
#[test]
fn its_offers_come_sooner_than_those_of_others() {
    let mut world = world(110, Wish::default());
    world.run_until(Instant::ZERO + F * 22);
    let [fast, others] = [2, 1].map(|relay| world.sent_control_bytes(relay));
    // 25 offers instead of 23, each a record of 52 octets.
    assert_eq!(fast - others, 2 * 52);
}
