//! Uplinks over which no offers of MPTCP are made for a time.

use super::served::Server;
use super::*;

fn site(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 80))
}

impl World {
    /// Connects a client to a site without MPTCP.
    fn visit(&mut self, last: u8) {
        let mut server = Server::new(ConnectionConfig::default());
        server.endpoint.listen(site(last), ConnectionConfig { mptcp: false, ..ConnectionConfig::default() }).unwrap();
        let before = self.proxy.totals.connected;
        let mut client = self.client();
        client.write_all(&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, last, 0, 80]).unwrap();
        self.until(|world| {
            world.carry(&mut server);
            (world.proxy.totals.connected > before).then_some(())
        });
    }
}

#[test]
fn offers_are_made_again_after_ten_minutes_whoever_was_visited_meanwhile() {
    let mut world = World::with_uplink();
    let begun = world.now();
    for (last, name) in [(100, "a.test"), (101, "b.test")] {
        world.proxy.choice.wanted_no_offer(UPLINK, site(last), &target::Host::Name(name.into()), begun);
    }
    for (last, seconds) in [(3, 500), (4, 550)] {
        world.ahead = Duration::from_secs(seconds);
        world.visit(last);
        let choice = &world.proxy.choice;
        assert!(choice.is_without_offer(UPLINK, site(last), world.now()));
        assert!(choice.is_plain(site(last), world.now()), "as long as nothing is offered");
    }
    let now = begun + Duration::from_secs(601);
    assert!(!world.proxy.choice.is_without_offer(UPLINK, site(5), now));
    for last in [3, 4] {
        assert!(!world.proxy.choice.is_without_offer(UPLINK, site(last), now));
        assert!(!world.proxy.choice.is_plain(site(last), now), "nothing was offered to it");
        assert!(world.proxy.choice.is_known(site(last), now), "it has answered");
    }
}

#[test]
fn an_offer_without_an_answer_is_remembered() {
    let mut world = World::with_uplink();
    let mut client = world.client();
    client.write_all(&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 3, 0, 80]).unwrap();
    world.until(|world| (!world.proxy.sessions.is_empty()).then_some(()));
    for _ in 0..20 {
        world.turn();
    }
    // What was offered is lost.
    let now = world.now();
    while world.endpoint.poll_transmit(now).is_some() {}
    world.ahead = Duration::from_millis(2_100);
    let mut server = Server::new(ConnectionConfig::default());
    server.endpoint.listen(site(3), ConnectionConfig { mptcp: false, ..ConnectionConfig::default() }).unwrap();
    world.until(|world| {
        world.turn();
        let now = world.now();
        while let Some(segment) = world.endpoint.poll_transmit(now) {
            if !format!("{segment:?}").contains("MpCapable") {
                server.endpoint.handle_segment(segment, now);
            }
        }
        while let Some(segment) = server.endpoint.poll_transmit(now) {
            world.endpoint.handle_segment(segment, now);
        }
        while let Some(event) = world.endpoint.poll_event() {
            world.proxy.handle_event(&event, &mut world.endpoint, now);
        }
        (world.proxy.totals.connected == 1).then_some(())
    });
    assert!(world.proxy.choice.is_without_offer(UPLINK, site(3), world.now()));
}
