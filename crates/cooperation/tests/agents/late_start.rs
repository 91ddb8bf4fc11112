//! The first SYNs of a connection are lost: relay selection has to wait for the connection.

use cooperation::agent::destination::DestinationEvent;
use cooperation::relay_selection::manager::Report;
use units::{Instant, Rate};

use super::stall::{Stall, What};
use super::world::{Wish, World, path};

/// After the second SYN, and before the third, which is sent when an attempt would have taken too long.
const TO: Instant = Instant::from_millis(2500);
const LIMIT: Instant = Instant::from_secs(60);

fn first_data_of_one(relay: usize) -> Option<Box<dyn network::Node>> {
    (relay == 0).then(|| Box::new(Stall { what: What::Data, span: Instant::ZERO..TO }) as _)
}

/// Returns the relays that selection has asked for, one set for each migration.
fn wanted(world: &mut World) -> Vec<Vec<u16>> {
    let mut wanted = Vec::new();
    world.with_destination(|agent, _, _| {
        while let Some(event) = agent.poll_event() {
            if let DestinationEvent::Selection(Report::Migration { to, .. }) = event {
                wanted.push(to.relays.iter().map(|relay| relay.0).collect());
            }
        }
    });
    wanted
}

#[test]
fn relays_that_were_never_tried_have_not_failed_and_the_first_subflow_is_known() {
    let target = Some(Rate::from_mbps(4));
    let mut world = World::new(Wish { bytes: 3_000_000, target, wifi: first_data_of_one, ..Wish::default() });
    world.run_until(Instant::from_millis(3800));
    assert_eq!(wanted(&mut world), [[0, 1]]);
    assert_eq!(world.carrying(), [path(0, 1), path(1, 1)]);
    world.finish(LIMIT);
}
