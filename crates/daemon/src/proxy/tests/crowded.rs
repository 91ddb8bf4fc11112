//! Uplinks that are late because several clients download at once.

use host::uplinks::HEAVY_BYTES;

use super::served::Server;
use super::*;

const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 98, 0, 2));
const AT: Instant = Instant::from_secs(100);

/// Two uplinks: the second one has base RTT `base`, and has delivered `brought_bytes` of 1,000,000 octets. Returns
/// whether it counts as crowded `after` several downloads.
fn is_crowded(base: Duration, brought_bytes: u64, after: Duration) -> bool {
    let mut world = World::with_uplink();
    let World { proxy, endpoint, .. } = &mut world;
    proxy.add_uplink(Uplink { ip: OTHER, tier: Tier::Primary, link: 1, near: None }, endpoint, AT);
    proxy.choice.measured(UPLINK, Duration::from_millis(30), AT);
    proxy.choice.measured(OTHER, base, AT);
    proxy.shares.note(&[(UPLINK, 1_000_000 - brought_bytes), (OTHER, brought_bytes)].into());
    assert!(!proxy.is_crowded(OTHER, AT), "nobody downloads");
    proxy.note_downloads(1, AT);
    assert!(!proxy.is_crowded(OTHER, AT), "one alone is not crowded");
    proxy.note_downloads(2, AT);
    proxy.is_crowded(OTHER, AT + after)
}

#[test]
fn only_a_near_uplink_that_brings_its_part_is_excused_by_others() {
    let [near, far] = [60, 140].map(Duration::from_millis);
    let soon = Duration::from_secs(1);
    assert!(is_crowded(near, 300_000, soon));
    assert!(!is_crowded(far, 300_000, soon));
    assert!(!is_crowded(near, 100_000, soon));
    assert!(!is_crowded(near, 300_000, Duration::from_secs(2)));
}

#[test]
fn an_uplink_whose_time_is_over_is_not_called_held_back() {
    let World { mut proxy, endpoint, .. } = World::with_uplink();
    proxy.held_back.note(UPLINK, AT);
    // Nothing moves, so nobody asks what is due.
    let is_told = |secs| proxy.status(&endpoint, AT + Duration::from_secs(secs)).addresses[0].held_back;
    assert!(is_told(14) && !is_told(15));
}

/// A world with `count` downloads from one server over the uplink, their clients, and the time.
fn downloads(count: u64) -> (World, Vec<TcpStream>, Instant) {
    let (mut world, mut server) = (World::with_uplink(), Server::new(ConnectionConfig::default()));
    let mut clients: Vec<TcpStream> = (0..count).map(|_| world.client()).collect();
    clients.iter_mut().for_each(|client| client.write_all(&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80]).unwrap());
    world.until(|world| {
        world.carry(&mut server);
        (world.proxy.totals.connected == count).then_some(())
    });
    let now = world.now();
    for (_, session) in &mut world.proxy.sessions {
        session.moved_at = now;
        session.server.as_mut().unwrap().bulk.moved(0, HEAVY_BYTES, now);
    }
    (world, clients, now)
}

#[test]
fn an_uplink_that_every_download_holds_back_carries_nothing_for_a_target() {
    let (mut world, _clients, now) = downloads(2);
    let is_held = |world: &World| world.proxy.is_held_back_for_all(&[UPLINK], &world.endpoint, now);
    let keys: Vec<usize> = world.proxy.sessions.iter().map(|(key, _)| key).collect();
    let held = keys.into_iter().map(|key| {
        world.proxy.sessions[key].server.as_mut().unwrap().held_back.note(UPLINK, now);
        is_held(&world)
    });
    assert_eq!(held.collect::<Vec<_>>(), [false, true]);
    assert!(!world.proxy.is_held_back(UPLINK, now), "a third one would use it");
}

#[test]
fn an_uplink_carries_for_a_target_while_only_one_of_its_families_is_held_back() {
    const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 2));
    let (mut world, _clients, now) = downloads(1);
    let is_held = |world: &World| world.proxy.is_held_back_for_all(&[UPLINK, V6], &world.endpoint, now);
    world.proxy.held_back.note(V6, now);
    assert!(!is_held(&world), "the download uses IPv4");
    world.proxy.held_back.note(UPLINK, now);
    assert!(is_held(&world));
    let (mut world, _clients, _) = downloads(0);
    assert!(!is_held(&world));
    world.proxy.held_back.note(V6, now);
    assert!(is_held(&world), "nothing else is under way");
}
