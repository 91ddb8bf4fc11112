//! Uplinks whose tier changes, or is set.

use wire::Flags;

use super::*;

const AT: Instant = Instant::from_secs(100);

fn uplink(tier: Tier) -> Uplink {
    Uplink { ip: UPLINK, tier, link: 0, near: None }
}

#[test]
fn an_uplink_stays_held_back_whatever_it_is_between() {
    let World { mut proxy, mut endpoint, .. } = World::with_uplink();
    let is_held = |proxy: &Proxy, secs| proxy.held_back.is_held(UPLINK, AT + Duration::from_secs(secs));
    proxy.held_back.note(UPLINK, AT);
    for tier in [Tier::Backup, Tier::Primary] {
        proxy.set_tier(uplink(tier), &mut endpoint, AT);
        assert!(is_held(&proxy, 14), "{tier:?}");
    }
    assert_eq!(proxy.held_back.due(AT + Duration::from_secs(15)), [UPLINK]);
    proxy.set_tier(uplink(Tier::Backup), &mut endpoint, AT);
    proxy.set_tier(uplink(Tier::Primary), &mut endpoint, AT);
    proxy.held_back.note(UPLINK, AT + Duration::from_secs(20));
    assert!(is_held(&proxy, 49) && !is_held(&proxy, 50), "the second time takes 30 s");
    proxy.forgive(UPLINK);
    assert!(!is_held(&proxy, 49), "the user has set its tier");
}

#[test]
fn whoever_sets_the_tier_of_an_uplink_ends_what_holds_it_back_for_one_download_too() {
    let (mut world, _server, _client) = super::served::tunnel(ConnectionConfig::default());
    let server = world.proxy.sessions.iter_mut().find_map(|(_, session)| session.server.as_mut());
    server.unwrap().held_back.note(UPLINK, AT);
    world.proxy.forgive(UPLINK);
    assert!(!world.session().server.as_ref().unwrap().held_back.holds(UPLINK));
}

#[test]
fn no_attempt_begins_over_an_uplink_that_is_not_to_be_used_any_more() {
    let addresses = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap()).to_vec();
    let mut world = World::new(move |config| config.lookup = Arc::new(move |_| Ok(addresses.clone()))).and_uplink();
    let now = world.now();
    let other = Uplink { ip: [10, 98, 0, 2].into(), tier: Tier::Primary, link: 1, near: None };
    world.proxy.add_uplink(other, &mut world.endpoint, now);
    let mut client = world.client();
    client.write_all(b"CONNECT a.test:80 HTTP/1.1\r\n\r\n").unwrap();
    // Returns the number of SYNs since the last call, over this uplink and the other one.
    let begun = |world: &mut World| {
        let mut syns = [0, 0];
        while let Some(segment) = world.endpoint.poll_transmit(world.now()) {
            if segment.flags.contains(Flags::SYN) {
                syns[usize::from(segment.src.ip() != UPLINK)] += 1;
            }
        }
        syns
    };
    world.until(|world| (begun(world) == [1, 1]).then_some(()));
    let now = world.now();
    world.proxy.set_tier(uplink(Tier::Never), &mut world.endpoint, now);
    let mut all = [0, 0];
    for _ in 0..50 {
        while let Some(event) = world.endpoint.poll_event() {
            let now = world.now();
            world.proxy.handle_event(&event, &mut world.endpoint, now);
        }
        world.turn();
        all.iter_mut().zip(begun(&mut world)).for_each(|(all, more)| *all += more);
        world.ahead += Duration::from_millis(100);
    }
    assert!(all[0] == 0 && all[1] > 0, "{all:?}");
}
