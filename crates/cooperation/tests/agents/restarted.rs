//! The destination restarts, and calls before its relays notice that its former channels are dead.

use units::{Duration, Instant};

use super::world::{Wish, World};

/// Just after an offer, which a relay would have sent on a dead channel.
const RESTART: Instant = Instant::from_millis(8_100);

/// Ranges are numbered from 1 again, and the new connection has other data sequence numbers. A relay that goes by what
/// the former life said holds everything for as long as it may, or nothing.
#[test]
fn relays_go_by_the_ranges_of_its_present_life() {
    for splices in [false, true] {
        let mut world = World::new(Wish { splices, ..Wish::default() });
        world.run_until(RESTART);
        assert!(world.report().received_bytes > 2_000_000, "many ranges have passed");
        world.restart_destination(11);
        let mut held = [0; 3];
        while world.simulation.now() < RESTART + Duration::from_secs(8) {
            world.run_until(world.simulation.now() + Duration::from_millis(50));
            (0..3).for_each(|relay| held[relay] = held[relay].max(world.held_bytes(relay)));
        }
        (0..3).for_each(|relay| assert_eq!(world.opened_and_refused(relay), [(3, 0), (2, 0)]));
        let received_bytes = world.report().received_bytes;
        assert!(received_bytes > 3_000_000, "splices: {splices}: {received_bytes} octets in eight seconds");
        // The relay whose data are wanted next holds none.
        assert!(held.iter().filter(|bytes| **bytes > 0).count() >= 2, "splices: {splices}: {held:?} octets held");
    }
}
