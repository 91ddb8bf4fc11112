//! Two uplinks: behind the first, a portal answers in place of every server; behind the second is the server.

use super::served::{Server, heard};
use super::*;

const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 3));
const LOGIN: &[u8] = b"HTTP/1.1 302 Found\r\nLocation: http://login.test/\r\nContent-Length: 0\r\n\r\n";
const TRUE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue";
const TUNNEL: &[u8] = &[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80];

/// The servers behind each uplink, and what each answers to any request.
struct Ends {
    servers: [Server; 2],
    answers: [&'static [u8]; 2],
    asked: [usize; 2],
}

fn ends(answers: [&'static [u8]; 2], second_speaks_mptcp: bool) -> Ends {
    let server = |mptcp| Server::new(ConnectionConfig { mptcp, ..ConnectionConfig::default() });
    Ends { servers: [server(false), server(second_speaks_mptcp)], answers, asked: [0, 0] }
}

fn world() -> World {
    let mut world = World::with_uplink();
    let now = world.clock.now();
    world.proxy.add_uplink(Uplink { ip: OTHER, tier: Tier::Primary, link: 1, near: None }, &mut world.endpoint, now);
    world
}

impl World {
    /// Carries segments. If the first end is a portal, it answers before all others.
    fn carry_all(&mut self, ends: &mut Ends) {
        for _ in 0..200 {
            self.turn();
            let now = self.now();
            while let Some(segment) = self.endpoint.poll_transmit(now) {
                let end = usize::from(segment.src.ip() == OTHER);
                ends.servers[end].endpoint.handle_segment(segment, now);
            }
            for (end, server) in ends.servers.iter_mut().enumerate() {
                server.accept();
                if server.connection.is_some() && server.read(4096, now) > 0 {
                    ends.asked[end] += 1;
                    server.say(ends.answers[end], now);
                }
                while let Some(segment) = server.endpoint.poll_transmit(now) {
                    self.endpoint.handle_segment(segment, now);
                }
            }
            while let Some(event) = self.endpoint.poll_event() {
                self.proxy.handle_event(&event, &mut self.endpoint, now);
            }
        }
    }

    /// Returns what a client gets that sends `opening`, and then `question`.
    fn ask(&mut self, ends: &mut Ends, opening: &[u8], question: &[u8]) -> String {
        ends.asked = [0, 0];
        let mut client = self.client();
        client.write_all(opening).unwrap();
        self.carry_all(ends);
        client.write_all(question).unwrap();
        self.carry_all(ends);
        String::from_utf8_lossy(&heard(&mut client)).into_owned()
    }

    /// Lets time pass; the portal is still the nearest.
    fn wait(&mut self, span: Duration) {
        self.ahead += span;
        let now = self.now();
        self.proxy.choice.measured(UPLINK, Duration::from_micros(1), now);
    }

    fn portals(&self) -> Vec<bool> {
        let status = self.proxy.status(&self.endpoint, self.now());
        status.addresses.iter().map(|address| address.view.portal).collect()
    }
}

const FORWARD: &[u8] = b"GET http://192.0.2.1/ HTTP/1.1\r\n\r\n";
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n";

#[test]
fn a_portal_does_not_answer_for_servers() {
    for speaks_mptcp in [false, true] {
        for (opening, question) in [(&b""[..], FORWARD), (TUNNEL, GET)] {
            let (mut world, mut ends) = (world(), ends([LOGIN, TRUE], speaks_mptcp));
            let answer = world.ask(&mut ends, opening, question);
            assert!(answer.ends_with("true") && !answer.contains("login"), "{answer}");
            assert_eq!(ends.asked, [1, 1], "the portal first");
            assert_eq!(world.portals(), [true, false]);
            let said = world.said.try_recv().unwrap();
            assert!(said.contains("10.99.0.2 wants a login") && said.contains("login.test"), "{said}");
            let answer = world.ask(&mut ends, opening, question);
            assert!(answer.ends_with("true"), "{answer}");
            assert_eq!(ends.asked, [0, 1], "the portal is not asked again");
            assert!(world.said.try_recv().is_err(), "people were told");
        }
    }
}

#[test]
fn who_has_logged_in_gets_the_uplink_back() {
    let (mut world, mut ends) = (world(), ends([LOGIN, TRUE], false));
    world.ask(&mut ends, b"", FORWARD);
    assert_eq!(world.portals(), [true, false]);
    world.wait(Duration::from_secs(61));
    assert_eq!(world.portals(), [false, false]);
    // Nothing has changed: the client notices nothing, and the portal is not reported again.
    let answer = world.ask(&mut ends, b"", FORWARD);
    assert!(answer.ends_with("true") && world.portals() == [true, false], "{answer}");
    assert_eq!(world.said.try_iter().count(), 1);
    world.wait(Duration::from_secs(400));
    ends.answers[0] = TRUE;
    world.ask(&mut ends, b"", FORWARD);
    assert_eq!((ends.asked, world.portals()), ([1, 0], vec![false, false]));
}

#[test]
fn a_server_that_sends_elsewhere_is_asked_twice_once() {
    let (mut world, mut ends) = (world(), ends([LOGIN, LOGIN], false));
    let answer = world.ask(&mut ends, TUNNEL, GET);
    assert!(answer.contains("login.test"), "{answer}");
    assert_eq!((ends.asked, world.portals()), ([1, 1], vec![false, false]));
    let answer = world.ask(&mut ends, b"", FORWARD);
    assert!(answer.contains("login.test"), "{answer}");
    assert_eq!(ends.asked[0] + ends.asked[1], 1, "both uplinks lead to the server");
    assert!(world.said.try_recv().is_err());
}

#[test]
fn what_must_not_be_sent_twice_is_not() {
    let (mut world, mut ends) = (world(), ends([LOGIN, TRUE], false));
    let post = b"POST http://192.0.2.1/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
    let answer = world.ask(&mut ends, b"", post);
    assert!(answer.contains("login.test"), "{answer}");
    let answer = world.ask(&mut ends, TUNNEL, b"GET /?token=1 HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n");
    assert!(answer.contains("login.test"), "{answer}");
    assert_eq!(ends.asked, [1, 0]);
}

#[test]
fn a_router_that_sends_to_its_login_is_asked_once_and_over_its_own_uplink() {
    let near = Some(Network { address: "192.168.1.5".parse().unwrap(), prefix_len: 24 });
    for router in [0, 1] {
        let (mut world, mut ends) = (world(), ends([LOGIN, LOGIN], false));
        let plain = || ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
        ends.servers = [0, 1].map(|_| Server::at("192.168.1.1:80", plain()));
        let (ip, now) = ([UPLINK, OTHER][router], world.now());
        world.proxy.add_uplink(Uplink { ip, tier: Tier::Primary, link: router, near }, &mut world.endpoint, now);
        let answer = world.ask(&mut ends, b"", b"GET http://192.168.1.1/ HTTP/1.1\r\n\r\n");
        assert!(answer.contains("login.test"), "{answer}");
        let mut asked = [0, 0];
        asked[router] = 1;
        assert_eq!((ends.asked, world.portals()), (asked, vec![false, false]));
        assert!(!world.proxy.choice.is_trusted(ip, world.now()), "the router is not the Internet");
    }
}

#[test]
fn the_login_itself_does_not_show_that_the_uplink_leads_to_the_internet() {
    let (mut world, mut ends) = (world(), ends([LOGIN, TRUE], false));
    world.ask(&mut ends, b"", FORWARD);
    assert_eq!(world.portals(), [true, false]);
    let now = world.now();
    world.proxy.remove_uplink(OTHER, &mut world.endpoint, now);
    ends.answers[0] = TRUE;
    let login = b"GET / HTTP/1.1\r\nHost: login.test\r\n\r\n";
    for (question, seconds, is_trusted) in [(&login[..], 0, false), (GET, 0, false), (login, 61, false), (GET, 0, true)]
    {
        world.wait(Duration::from_secs(seconds));
        let answer = world.ask(&mut ends, TUNNEL, question);
        assert!(answer.ends_with("true"), "{answer}");
        assert_eq!(ends.asked, [1, 0]);
        let is_now = world.proxy.choice.is_trusted(UPLINK, world.now());
        assert_eq!(is_now, is_trusted, "{} after {seconds} s", String::from_utf8_lossy(question));
    }
}
