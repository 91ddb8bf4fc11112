//! A source that forbids further subflows to its address (RFC 8684 section 3.1, flag C), as behind a load balancer.

use cooperation::agent::destination::DestinationEvent;
use network::{Node, Output, Packet};
use units::{Instant, Rate};
use wire::mptcp::{CapableFlags, MptcpOption};

use super::world::{Wish, World};

/// Sets flag C in every MP_CAPABLE.
struct Forbidding;

impl Node for Forbidding {
    fn process(&mut self, packet: Option<Packet>, _: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        packet.edit(|segment| {
            for option in &mut segment.options.mptcp {
                if let MptcpOption::Capable(capable) = option {
                    capable.flags = capable.flags.union(CapableFlags::NO_JOIN_TO_THIS_ADDRESS);
                }
            }
        });
        out.forward(packet);
    }

    fn conserves(&self) -> bool {
        false
    }
}

/// Returns how often the destination reported that joins are forbidden, and how often relay selection reported anything
/// after that.
fn reported(world: &mut World) -> (usize, usize) {
    let mut events = Vec::new();
    world.with_destination(|agent, _, _| events.extend(core::iter::from_fn(|| agent.poll_event())));
    let first = events.iter().position(|event| *event == DestinationEvent::JoinsForbidden);
    let forbidden = events.iter().filter(|event| **event == DestinationEvent::JoinsForbidden).count();
    let later = events.iter().skip(first.unwrap_or(events.len()));
    (forbidden, later.filter(|event| matches!(event, DestinationEvent::Selection(_))).count())
}

/// No relay can carry a subflow: the connection stays on its first one, and the destination says so once.
#[test]
fn the_connection_stays_on_its_first_subflow_and_nothing_is_selected() {
    let target = Some(Rate::from_bps(5_500_000));
    for (splices, target) in [(false, target), (true, target), (true, None)] {
        let wifi: fn(usize) -> Option<Box<dyn Node>> = |_| Some(Box::new(Forbidding));
        let mut world = World::new(Wish { splices, target, bytes: 4_000_000, wifi, ..Wish::default() });
        world.finish(Instant::from_secs(60));
        assert_eq!(world.stats().subflows.len(), 1, "splices: {splices}, {target:?}");
        assert_eq!(reported(&mut world), (1, 0), "splices: {splices}, {target:?}");
    }
}
