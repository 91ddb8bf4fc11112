//! A connection for which relays are selected ends, and the destination goes on.

use cooperation::agent::destination::DestinationEvent;
use units::{Duration, Instant, Rate};

use super::world::{Wish, World};

fn events(world: &mut World) -> Vec<DestinationEvent> {
    let mut events = Vec::new();
    world.with_destination(|agent, _, _| events.extend(core::iter::from_fn(|| agent.poll_event())));
    events
}

/// No relay is lost because there is nothing to carry any more.
#[test]
fn nothing_is_selected_any_more() {
    for splices in [false, true] {
        let target = Some(Rate::from_mbps(3));
        let mut world = World::new(Wish { splices, target, bytes: 2_000_000, ..Wish::default() });
        let end = world.finish(Instant::from_secs(60));
        let first = events(&mut world);
        assert!(first.iter().any(|event| matches!(event, DestinationEvent::Selection(_))), "splices: {splices}");
        world.run_until(end + Duration::from_secs(1));
        events(&mut world);
        world.run_until(end + Duration::from_secs(31));
        let later = events(&mut world);
        assert_eq!(later, [], "splices: {splices}");
    }
}
