//! More large transfers than are examined in one round.

use host::uplinks::HEAVY_BYTES;

use super::served::Server;
use super::*;

const CLIENTS: usize = 20;

#[test]
fn large_transfers_take_turns_in_being_examined() {
    let (mut world, mut server) = (World::with_uplink(), Server::new(ConnectionConfig::default()));
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| world.client()).collect();
    clients.iter_mut().for_each(|client| client.write_all(&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80]).unwrap());
    world.until(|world| {
        world.carry(&mut server);
        (world.proxy.totals.connected == CLIENTS as u64).then_some(())
    });
    let now = world.now();
    let keys: Vec<usize> = world.proxy.sessions.iter().map(|(key, _)| key).collect();
    for key in keys {
        world.proxy.note_moved(key, now);
        let session = &mut world.proxy.sessions[key];
        session.down_bytes = HEAVY_BYTES;
        session.server.as_mut().unwrap().held_back.note(UPLINK, now);
    }
    let held = |world: &World| {
        let holds = |session: &Session| session.server.as_ref().is_some_and(|server| server.held_back.holds(UPLINK));
        world.proxy.sessions.iter().filter(|(_, session)| holds(session)).count()
    };
    assert_eq!(held(&world), CLIENTS);
    // An examination releases the uplinks whose time is over.
    for left in [CLIENTS - 16, 0] {
        world.proxy.examine_watched(&mut world.endpoint, now + Duration::from_secs(16));
        assert_eq!(held(&world), left);
    }
}
