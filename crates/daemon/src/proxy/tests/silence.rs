//! Uplinks that count as silent, or do not, depending on what happens to the connections that use them.

use transport::error::CloseReason;
use wire::Segment;

use super::served::{REQUEST, Server, connected_in, heard};
use super::*;

const UPLOAD: &[u8] = b"POST http://192.0.2.1/ HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A client whose upload to a server without MPTCP is under way. The server has not received the returned segments.
fn upload(world: World) -> (World, Server, TcpStream, Vec<Segment>) {
    let config = ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
    let (mut world, server, mut client) = connected_in(world, UPLOAD, config);
    client.write_all(&[7; 100_000]).unwrap();
    let sent = world.until(|world| {
        let now = world.now();
        let sent: Vec<Segment> = core::iter::from_fn(|| world.endpoint.poll_transmit(now)).collect();
        (!sent.is_empty()).then_some(sent)
    });
    (world, server, client, sent)
}

impl World {
    fn silence(&mut self) -> Option<Duration> {
        let now = self.now();
        self.proxy.silences(&[vec![UPLINK]], &mut self.endpoint, now)[0].uplink
    }

    /// Lets seconds pass, with a look after each. Returns the result of the last look.
    fn listen(&mut self, seconds: u64) -> Option<Duration> {
        let mut silence = None;
        for _ in 0..seconds {
            self.ahead += Duration::from_secs(1);
            silence = self.silence();
        }
        silence
    }
}

#[test]
fn what_was_heard_last_on_a_connection_is_not_forgotten_with_it() {
    let mut world = World::with_uplink();
    for _ in 0..8 {
        let (uploading, mut server, mut client, sent) = upload(world);
        world = uploading;
        let now = world.now();
        sent.into_iter().for_each(|segment| server.endpoint.handle_segment(segment, now));
        world.carry(&mut server);
        while server.read(1 << 16, world.now()) > 0 {
            world.carry(&mut server);
        }
        server.say(OK, world.now());
        world.carry(&mut server);
        assert!(heard(&mut client).ends_with(b"ok"));
        drop(client);
        world.carry(&mut server);
        assert_eq!(world.clients(), 0);
        // Another connection waits there all the time, for whatever reason.
        world.ahead += Duration::from_secs(1);
        let now = world.now();
        world.proxy.silences.asked(UPLINK, now);
        assert_eq!(world.proxy.silences.of(&[UPLINK], now).uplink, None, "others were answered");
    }
}

#[test]
fn a_client_that_leaves_before_the_answer_makes_no_uplink_silent() {
    let (mut world, _server, client, _) = upload(World::with_uplink());
    assert_eq!(world.silence(), None);
    drop(client);
    let now = world.now();
    world.proxy.finish(0, session::End::ClientGone, &mut world.endpoint, now);
    assert_eq!(world.clients(), 0);
    assert_eq!(world.listen(20), None, "nobody waits");
}

#[test]
fn an_uplink_is_silent_for_a_moment_after_the_last_client_has_left() {
    let (mut world, _server, _client, _) = upload(World::with_uplink());
    assert_eq!(world.silence(), None);
    assert_eq!(world.listen(4), None);
    assert!(world.listen(3).is_some_and(|span| span >= Duration::from_secs(6)));
    let now = world.now();
    world.proxy.finish(0, session::End::ClientGone, &mut world.endpoint, now);
    assert!(world.listen(5).is_some_and(|span| span >= Duration::from_secs(11)), "another client may come");
    assert_eq!(world.listen(6), None, "nothing is due, and nothing can be probed");
    assert!(world.proxy.silences.of(&[UPLINK], world.now()).unsettled.uplink);
}

/// Clients that connect to these servers, and wait.
fn dialing(world: &mut World, servers: &[&str]) -> Vec<TcpStream> {
    let clients = servers.iter().map(|server| {
        let mut client = world.client();
        client.write_all(format!("CONNECT {server} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        client
    });
    let clients: Vec<TcpStream> = clients.collect();
    let dialing = |world: &World| {
        let stages = world.proxy.sessions.iter().map(|(_, session)| &session.stage);
        stages.filter(|stage| matches!(stage, Stage::Dialing(..))).count()
    };
    world.until(|world| (dialing(world) == servers.len()).then_some(()));
    clients
}

#[test]
fn first_attempts_tell_that_the_only_uplink_is_silent() {
    // One server that was never heard may be at fault itself; two are not both at fault.
    for (servers, is_silent) in [
        (&["198.51.100.1:80"][..], false),
        (&["198.51.100.1:80", "198.51.100.1:81"], false),
        (&["198.51.100.1:80", "198.51.100.2:80"], true),
    ] {
        let mut world = World::with_uplink();
        let _clients = dialing(&mut world, servers);
        assert_eq!(world.silence(), None);
        assert_eq!(world.listen(4), None);
        assert_eq!(world.listen(3).is_some(), is_silent, "{servers:?}");
    }
}

#[test]
fn a_server_that_has_answered_before_tells_so_alone_unless_it_refuses() {
    let config = ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
    let (mut world, _server, client) = connected_in(World::with_uplink(), UPLOAD, config);
    drop(client);
    let now = world.now();
    world.proxy.finish(0, session::End::ClientGone, &mut world.endpoint, now);
    let _clients = dialing(&mut world, &["192.0.2.1:80"]);
    assert_eq!(world.silence(), None);
    assert!(world.listen(7).is_some_and(|span| span >= Duration::from_secs(6)));
    let connection = *world.proxy.by_connection.keys().next().unwrap();
    let now = world.now();
    world.proxy.closed(connection, CloseReason::Refused, &mut world.endpoint, now);
    assert_eq!(world.silence(), None, "somebody has refused");
}

/// A download over two uplinks that stalls after some octets.
fn standing_still() -> (World, Server, TcpStream) {
    let mut world = World::with_uplink();
    let now = world.now();
    let other = Uplink { ip: "10.99.0.3".parse().unwrap(), tier: Tier::Primary, link: 1, near: None };
    world.proxy.add_uplink(other, &mut world.endpoint, now);
    let (mut world, mut server, mut client) = connected_in(world, REQUEST, ConnectionConfig::default());
    server.say(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n", world.now());
    let mut got = 0;
    for _ in 0..40 {
        server.say_much(vec![7; 10_000], world.now());
        got += world.drain(&mut client, &mut server).0.len();
        world.ahead += Duration::from_millis(4);
    }
    assert!(got > 400_000, "{got}");
    (world, server, client)
}

impl World {
    /// Loses everything for this long. Returns the number of segments with octets that were sent.
    fn lose_for(&mut self, span: Duration) -> usize {
        let (until, mut sent) = (self.now() + span, 0);
        while self.now() < until {
            // A look that comes late judges no uplink.
            self.ahead += Duration::from_millis(4);
            self.turn();
            let now = self.now();
            if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
                self.endpoint.handle_timeout(now);
            }
            let lost = core::iter::from_fn(|| self.endpoint.poll_transmit(now));
            sent += lost.filter(|segment| segment.payload.sequence_len() > 0).count();
        }
        sent
    }

    /// As [`Self::listen`], while everything passes, or nothing does. Returns whether silence was found each second.
    fn listen_while(&mut self, seconds: u64, mut server: Option<&mut Server>) -> Vec<bool> {
        let mut told = Vec::new();
        for _ in 0..seconds {
            told.push(self.listen(1).is_some());
            match &mut server {
                Some(server) => self.carry(server),
                None => drop(self.lose_for(Duration::from_millis(1))),
            }
        }
        told
    }
}

/// A download requests nothing by itself. While it is watched, subflows on which nothing comes are probed, if there are
/// several.
#[test]
fn a_download_that_stands_still_tells_that_its_uplink_is_silent() {
    for is_cut in [false, true] {
        let (mut world, mut server, _client) = standing_still();
        // A look that comes late judges no uplink.
        for _ in 0..400 {
            world.ahead += Duration::from_millis(4);
            world.turn();
            if !is_cut {
                world.carry(&mut server);
            }
        }
        let told = world.listen(8);
        assert_eq!(told.is_some(), is_cut, "{told:?}");
    }
}

/// The answers to the last probes of a download's subflows are lost, and nothing else is sent: another program may have
/// filled a queue.
#[test]
fn answers_that_were_lost_are_asked_for_again_before_an_uplink_is_silent() {
    let (mut world, mut server, _client) = standing_still();
    assert!(world.lose_for(Duration::from_millis(1600)) > 0, "it was asked");
    assert_eq!(world.listen_while(20, Some(&mut server)), [false; 20]);
}

#[test]
fn an_uplink_that_was_silent_is_heard_soon_after_it_lives() {
    let (mut world, mut server, _client) = standing_still();
    world.lose_for(Duration::from_millis(1600));
    let told = world.listen_while(12, None);
    assert!(!told[3] && told[11], "{told:?}");
    let told = world.listen_while(10, Some(&mut server));
    assert_eq!(told.iter().rposition(|is_silent| *is_silent).unwrap_or(0), 0, "{told:?}");
    // Nothing is unanswered any more, and no probes are sent.
    assert_eq!(world.lose_for(Duration::from_secs(20)), 0);
}
