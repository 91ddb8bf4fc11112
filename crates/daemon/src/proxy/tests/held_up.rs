//! A stream that waits for a hole: nothing moves between client and server, but the proxy still looks at it.

use super::served::{Server, connected_in};
use super::*;

const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 3));
const OPENING: &[u8] = &[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80];

/// A client whose connection has two subflows, both of which carry data.
fn over_two() -> (World, Server, TcpStream, ConnectionId) {
    let mut world = World::with_uplink();
    let now = world.now();
    world.proxy.add_uplink(Uplink { ip: OTHER, tier: Tier::Primary, link: 1, near: None }, &mut world.endpoint, now);
    let (mut world, mut server, client) = connected_in(world, OPENING, ConnectionConfig::default());
    world.pass(Duration::from_secs(1), &mut server);
    let connection = world.session().server.as_ref().unwrap().connection;
    for subflow in world.endpoint.stats(connection).unwrap().subflows {
        world.endpoint.set_priority(connection, subflow.id, false, world.clock.now() + world.ahead).unwrap();
    }
    world.carry(&mut server);
    (world, server, client, connection)
}

impl World {
    /// Loses what the server sends on the subflow with the first data. Returns how many octets then wait for the lost
    /// ones.
    fn lose(&mut self, connection: ConnectionId, server: &mut Server) -> u64 {
        let now = self.now();
        let mut lost = None;
        while let Some(segment) = server.endpoint.poll_transmit(now) {
            lost = lost.or(Some(segment.dst).filter(|_| !segment.payload.is_empty()));
            if lost != Some(segment.dst) {
                self.endpoint.handle_segment(segment, now);
            }
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.proxy.handle_event(&event, &mut self.endpoint, now);
        }
        self.turn();
        self.endpoint.stats(connection).unwrap().out_of_order_bytes
    }
}

#[test]
fn a_stream_that_waits_for_a_hole_goes_on_being_looked_at() {
    let (mut world, mut server, mut client, connection) = over_two();
    server.say(b"hello", world.now());
    assert_eq!(world.drain(&mut client, &mut server).0.len(), 2 + 10 + 5, "the answers of SOCKS5, and that");
    server.say_much(vec![7; 100_000], world.now());
    assert!(world.lose(connection, &mut server) > 0);
    for quarter in 1..40 {
        world.ahead += Duration::from_millis(250);
        world.turn();
        assert!(!world.proxy.watched.is_empty(), "{quarter}");
        assert!(quarter < 4 || world.session().is_busy(world.now()), "{quarter}: seen by the second look");
    }
}

#[test]
fn a_stream_that_only_stands_still_is_not() {
    let (mut world, mut server, mut client, _) = over_two();
    server.say(b"hello", world.now());
    world.drain(&mut client, &mut server);
    for _ in 0..40 {
        world.ahead += Duration::from_millis(250);
        world.turn();
    }
    assert!(!world.session().is_busy(world.now()) && world.proxy.watched.is_empty());
}
