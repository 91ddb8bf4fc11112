//! An uplink that is removed and comes back with the same address.

use super::*;

/// Returns the connections that the uplink counts, and the clients that take themselves for counted.
fn counts(world: &World) -> (u32, u32) {
    let busy = world.proxy.choice.view(world.now()).iter().map(|view| view.busy).sum();
    let clients = world.proxy.sessions.iter().filter(|(_, session)| session.counted.is_some()).count();
    (busy, clients as u32)
}

#[test]
fn a_connection_counts_for_the_uplink_that_it_began_on_and_not_for_the_next() {
    let mut world = World::with_uplink();
    let mut client = world.client();
    client.write_all(b"CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\n").unwrap();
    world.until(|world| (counts(world) == (1, 1)).then_some(()));
    let key = world.proxy.sessions.iter().next().unwrap().0;
    let now = world.now();
    world.proxy.remove_uplink(UPLINK, &mut world.endpoint, now);
    assert_eq!(counts(&world), (0, 0));
    // The client is still there, and does not count for an uplink that is gone.
    world.proxy.note_busy(key, now);
    assert_eq!(counts(&world), (0, 0));
    let mut world = world.and_uplink();
    assert_eq!(counts(&world), (0, 0));
    world.proxy.note_busy(key, now);
    assert_eq!(counts(&world), (1, 1));
    world.proxy.count(key, None);
    assert_eq!(counts(&world), (0, 0));
}
