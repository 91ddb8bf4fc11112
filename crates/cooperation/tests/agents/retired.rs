//! An agent retires while its host goes on: what runs stays as it is, and nothing more is begun.

use host::Agent as _;
use simulator::HostId;
use units::{Duration, Instant, Rate};

use super::world::{F, Wish, World};

/// Half a period after the latest change of relays.
const RETIREMENT: Instant = Instant::from_secs(9);
/// Long after all adverts have expired.
const END: Instant = Instant::from_secs(30);

fn retire(world: &mut World, host: HostId) {
    world.simulation.with_host(host, |host, now| host.host.with_agent_mut(|role, endpoint| role.retire(endpoint, now)));
}

/// Relays fall silent for a destination that has retired, but their links work.
#[test]
fn the_relays_of_a_destination_that_retires_carry_on() {
    let mut world = World::new(Wish { bytes: 60_000_000, target: Some(Rate::from_mbps(4)), ..Wish::default() });
    world.run_until(RETIREMENT);
    let chosen = world.carrying();
    assert_eq!(chosen.len(), 2, "{chosen:?}");
    let destination = world.destination;
    retire(&mut world, destination);
    world.with_destination(|agent, _, _| while agent.poll_event().is_some() {});
    let arrived = |world: &World| chosen.iter().map(|path| world.arrived_at(*path)).collect::<Vec<_>>();
    let before = arrived(&world);
    world.run_until(END);
    assert_eq!(world.carrying(), chosen);
    // 21 s at 2 Mbit/s, less headers.
    let after = arrived(&world);
    assert!(before.iter().zip(&after).all(|(before, after)| after - before > 4_800_000), "{before:?}, {after:?}");
    world.with_destination(|agent, _, _| {
        assert!(!agent.has_events());
        assert_eq!(agent.poll_timeout(), None);
    });
    assert_eq!(world.simulation.faults(), [""; 0]);
}

/// Nobody tells a relay that has retired which data are wanted next.
#[test]
fn a_relay_that_retires_holds_nothing_back_and_measures_no_more() {
    for splices in [false, true] {
        let mut world = World::new(Wish { splices, ..Wish::default() });
        world.run_until(RETIREMENT);
        let relays: Vec<HostId> = world.relays.iter().map(|(_, host)| *host).collect();
        relays.into_iter().for_each(|relay| retire(&mut world, relay));
        let mut held = 0;
        while world.simulation.now() < RETIREMENT + F.saturating_mul(3) {
            world.run_until(world.simulation.now() + Duration::from_millis(50));
            held = (0..3).map(|relay| world.held_bytes(relay)).max().unwrap_or(0).max(held);
        }
        assert_eq!(held, 0, "splices: {splices}");
        let measures = |(_, host): &(_, HostId)| {
            let agent = world.simulation.host(*host).host.agent().relay().expect("it is a relay");
            agent.next_measurement() < Instant::FAR_FUTURE
        };
        assert!(!world.relays.iter().any(measures));
        assert_eq!(world.simulation.faults(), [""; 0]);
    }
}
