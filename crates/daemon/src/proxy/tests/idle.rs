//! Uplinks over which connections have idle subflows.

use super::served::{Server, connected_in};
use super::*;

const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 3));
const OPENING: &[u8] = &[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80];

/// A client whose connection has a subflow over each of two uplinks. Returns the uplink that carries data, and the one
/// that is idle.
fn over_two() -> (World, Server, TcpStream, [IpAddr; 2]) {
    let mut world = World::with_uplink();
    let now = world.now();
    world.proxy.add_uplink(Uplink { ip: OTHER, tier: Tier::Primary, link: 1, near: None }, &mut world.endpoint, now);
    let (mut world, mut server, client) = connected_in(world, OPENING, ConnectionConfig::default());
    world.pass(Duration::from_secs(1), &mut server);
    let Session { server: Some(own), .. } = world.session() else { panic!("no connection") };
    let (connection, home) = (own.connection, own.home);
    let subflows = world.endpoint.stats(connection).unwrap().subflows;
    assert!(subflows.len() == 2 && subflows.iter().all(|it| it.min_rtt.is_some() && it.closed_at.is_none()));
    (world, server, client, [home, if home == OTHER { UPLINK } else { OTHER }])
}

/// A connection has begun over another uplink, since `ip` did not answer in time. Returns the failures of `ip`.
fn failures_after_a_loss(world: &mut World, ip: IpAddr, now: Instant) -> u32 {
    world.proxy.choice.outpaced(ip, Duration::from_secs(1), now);
    world.proxy.choice.view(now).into_iter().find(|view| view.uplink.ip == ip).unwrap().failures
}

#[test]
fn an_idle_subflow_does_not_vouch_for_its_uplink() {
    let (mut world, mut server, _client, [_, idle]) = over_two();
    for times in 1..=2 {
        // A new connection tries this uplink first, and hears nothing.
        let now = world.now();
        assert_eq!(failures_after_a_loss(&mut world, idle, now), u32::from(times == 2), "{times}");
        server.say(b"hello", now);
        world.pass(Duration::from_secs(2), &mut server);
    }
}

#[test]
fn an_uplink_that_only_receives_is_not_silent() {
    let (mut world, mut server, _client, [busy, _]) = over_two();
    for _ in 0..4 {
        // A new connection finds its queue long, and another uplink is faster.
        let now = world.now();
        assert_eq!(failures_after_a_loss(&mut world, busy, now), 0);
        server.say(b"hello", now);
        world.pass(Duration::from_secs(2), &mut server);
    }
}

#[test]
fn a_measurement_grows_old_though_its_subflow_lives() {
    let (mut world, mut server, _client, [busy, idle]) = over_two();
    for _ in 0..301 {
        server.say(b"x", world.now());
        world.pass(Duration::from_secs(1), &mut server);
    }
    assert_eq!(world.proxy.choice.base(idle, world.now()), None);
    assert!(world.proxy.choice.base(busy, world.now()).is_some(), "it carries octets");
}
