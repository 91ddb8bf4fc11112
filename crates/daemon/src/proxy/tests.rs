//! The proxy with real clients, on an engine that no driver drives: nothing reaches a network.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use linux::clock::Clock;
use proptest::prelude::*;
use transport::EndpointConfig;

use super::*;

const UPLINK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 2));

mod behind;
mod crowded;
mod dead_server;
mod held_up;
mod idle;
mod keeping;
mod losers;
mod many;
mod no_offer;
mod old;
mod parting;
mod portal;
mod refused;
mod replugged;
mod retiered;
mod served;
mod silence;

/// Lets other threads and the kernel work after an idle turn, the first ones for a moment only. On a busy machine what
/// must come takes longer than many idle turns.
#[expect(clippy::disallowed_methods, reason = "other threads work in real time")]
fn pause_after(turn: u32) {
    if turn < 100 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

struct World {
    proxy: Proxy,
    endpoint: Endpoint,
    clock: Clock,
    /// How far the time is ahead of the clock.
    ahead: Duration,
    said: Receiver<String>,
}

impl World {
    fn new(change: impl FnOnce(&mut ProxyConfig)) -> Self {
        let mut config = ProxyConfig::new("127.0.0.1:0".parse().unwrap());
        config.lookup = Arc::new(|_| Err(io::Error::other("there are no names here")));
        change(&mut config);
        let (say, said) = channel();
        let say = Mutex::new(say);
        let say = move |line: &str| say.lock().unwrap().send(line.to_owned()).unwrap_or_default();
        let proxy = Proxy::new(config, &[], || {}, say).unwrap();
        Self {
            proxy,
            endpoint: Endpoint::with_seed(EndpointConfig::default(), 1),
            clock: Clock::start(),
            ahead: Duration::ZERO,
            said,
        }
    }

    /// Adds an uplink behind which no server answers.
    fn with_uplink() -> Self {
        Self::new(|_| {}).and_uplink()
    }

    fn and_uplink(self) -> Self {
        let mut world = self;
        let now = world.clock.now();
        world.proxy.add_uplink(
            Uplink { ip: UPLINK, tier: Tier::Primary, link: 0, near: None },
            &mut world.endpoint,
            now,
        );
        world
    }

    fn now(&self) -> Instant {
        self.clock.now() + self.ahead
    }

    fn client(&self) -> TcpStream {
        let client = TcpStream::connect(self.proxy.local_addr()).unwrap();
        client.set_read_timeout(Some(std::time::Duration::from_millis(2))).unwrap();
        client
    }

    /// Does what the driver does when it is time, or something can be read.
    fn turn(&mut self) {
        let now = self.now();
        self.proxy.handle_wake(&mut self.endpoint, now);
        if self.proxy.poll_timeout().is_some_and(|at| at <= now) {
            self.proxy.handle_timeout(&mut self.endpoint, now);
        }
    }

    /// Repeats turns until `found` returns something.
    fn until<T>(&mut self, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        for turn in 0..5000 {
            self.turn();
            if let Some(result) = found(self) {
                return result;
            }
            pause_after(turn);
        }
        panic!("it did not come: {:?}", self.proxy.status(&self.endpoint, self.clock.now()));
    }

    /// Returns what a client gets until the proxy ends its stream.
    fn answer(&mut self, client: &mut TcpStream) -> Vec<u8> {
        let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
        self.until(|_| match client.read(&mut piece) {
            Ok(0) => Some(core::mem::take(&mut answer)),
            Ok(len) => {
                answer.extend_from_slice(&piece[..len]);
                None
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        })
    }
}

#[test]
fn only_the_loopback_is_open_without_a_word() {
    let config = |open| ProxyConfig { open, ..ProxyConfig::new("0.0.0.0:0".parse().unwrap()) };
    let error = Proxy::new(config(false), &[], || {}, |_| {}).err().unwrap().to_string();
    assert!(error.contains("not a loopback address") && error.contains("127.0.0.1"), "{error}");
    assert!(Proxy::new(config(true), &[], || {}, |_| {}).is_ok());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = ProxyConfig::new(taken.local_addr().unwrap());
    let error = Proxy::new(config, &[], || {}, |_| {}).err().unwrap().to_string();
    assert!(error.contains("choose another address with --listen"), "{error}");
}

#[test]
fn without_an_uplink_everybody_hears_so_at_once() {
    let mut world = World::new(|_| {});
    let socks = [&[5, 1, 0, 5, 1, 0, 3, 6][..], b"a.test", &[0, 80]].concat();
    let requests = [
        (socks, &[5, 0, 5, 3][..]),
        (b"CONNECT a.test:80 HTTP/1.1\r\n\r\n".to_vec(), b"HTTP/1.1 503 "),
        (b"GET http://192.0.2.1/ HTTP/1.1\r\n\r\n".to_vec(), b"HTTP/1.1 503 "),
    ];
    for (request, expected) in requests {
        let mut client = world.client();
        client.write_all(&request).unwrap();
        let answer = world.answer(&mut client);
        assert!(answer.starts_with(expected), "{:?}", String::from_utf8_lossy(&answer));
    }
    assert_eq!((world.proxy.totals.unreached, world.proxy.totals.unresolved), (3, 0));
}

#[test]
fn name_servers_that_are_silent_are_told_of_once() {
    let mut world = World::with_uplink();
    // Worded like the system's resolver. Each name is another one, since answers are cached.
    world.proxy.resolver = Resolver::new(
        Arc::new(|name| match name {
            "known.test" => Ok(vec!["127.0.0.1".parse().unwrap()]),
            _ => Err(io::Error::other("failed to lookup address information: Temporary failure in name resolution")),
        }),
        || {},
    );
    let mut ask = |name: &str| {
        let mut client = world.client();
        client.write_all(format!("CONNECT {name}:80 HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        String::from_utf8_lossy(&world.answer(&mut client)).into_owned()
    };
    for name in ["a.test", "b.test"] {
        let answer = ask(name);
        assert!(answer.starts_with("HTTP/1.1 504 ") && answer.contains("resolv.conf"), "{answer}");
    }
    assert!(ask("known.test").starts_with("HTTP/1.1 403 "));
    assert!(ask("c.test").starts_with("HTTP/1.1 504 "));
    assert_eq!(
        world
            .said
            .try_iter()
            .map(|line| line.contains("no name server answers for a.test, or none") || line.contains("c.test"))
            .collect::<Vec<_>>(),
        [true, true]
    );
}

#[test]
fn a_name_that_is_absolute_is_looked_up_as_such() {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let lookup = move |name: &str| {
        tell.lock().unwrap().send(name.to_owned()).unwrap_or_default();
        Err(io::Error::other("there are no names here"))
    };
    let mut world = World::new(|config| config.lookup = Arc::new(lookup)).and_uplink();
    for name in ["example.org.", "example.org"] {
        let mut client = world.client();
        client.write_all(format!("CONNECT {name}:443 HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        assert!(world.answer(&mut client).starts_with(b"HTTP/1.1 502 "));
        // Without the dot it may be another name, in a search domain: one answer does not serve both.
        assert_eq!(told.try_recv().as_deref(), Ok(name));
    }
}

#[test]
fn nobody_is_taken_to_all_hosts_of_a_network() {
    let mut world = World::new(|config| config.broadcasts = vec!["192.168.41.255".parse().unwrap()]).and_uplink();
    let mut client = world.client();
    client.write_all(b"CONNECT 192.168.41.255:80 HTTP/1.1\r\n\r\n").unwrap();
    let answer = String::from_utf8_lossy(&world.answer(&mut client)).into_owned();
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("broadcast address of a network"), "{answer}");
}

#[test]
fn what_this_device_is_called_changes() {
    let own = |address: &str| [Network { address: address.parse().unwrap(), prefix_len: 24 }];
    let mut world = World::new(|config| config.set_networks(&own("192.0.2.7"))).and_uplink();
    let refuses = |world: &mut World, target: &str| {
        let mut client = world.client();
        client.write_all(format!("CONNECT {target}:80 HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        let is_dialing = |session: &Session| matches!(session.stage, Stage::Dialing(..));
        let mut answer = [0; 12];
        world.until(|world| match client.read(&mut answer) {
            Ok(_) => Some(answer == *b"HTTP/1.1 403"),
            Err(_) => world.proxy.sessions.iter().any(|(_, session)| is_dialing(session)).then_some(false),
        })
    };
    assert!(refuses(&mut world, "192.0.2.7") && refuses(&mut world, "192.0.2.255"));
    world.proxy.set_networks(&own("198.51.100.7"));
    assert!(refuses(&mut world, "198.51.100.7") && refuses(&mut world, "198.51.100.255"));
    assert!(!refuses(&mut world, "192.0.2.7"), "another device may have it now");
}

#[test]
fn what_others_reach_is_open_on_purpose_only() {
    let check = |listen: &str, open: bool| {
        let config = ProxyConfig { open, ..ProxyConfig::new(listen.parse().unwrap()) };
        config.check().map_err(|error| error.to_string())
    };
    assert!(check("0.0.0.0:1080", false).unwrap_err().contains("allow it with --open"));
    assert!(check("127.0.0.1:1080", true).unwrap_err().contains("leave out --open"));
    assert!(check("0.0.0.0:1080", true).is_ok() && check("[::1]:1080", false).is_ok());
}

#[test]
fn whoever_connects_when_the_last_uplink_goes_does_not_wait() {
    let mut world = World::with_uplink();
    let mut client = world.client();
    client.write_all(b"CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\n").unwrap();
    let is_dialing = |session: &Session| matches!(session.stage, Stage::Dialing(..));
    world.until(|world| world.proxy.sessions.iter().any(|(_, session)| is_dialing(session)).then_some(()));
    let now = world.clock.now();
    // The uplink merely gets another address.
    world.proxy.remove_uplink(UPLINK, &mut world.endpoint, now);
    world.proxy.add_uplink(Uplink { ip: UPLINK, tier: Tier::Primary, link: 0, near: None }, &mut world.endpoint, now);
    world.proxy.strand_all(&mut world.endpoint, now);
    assert_eq!(world.proxy.totals.unreached, 0);
    world.proxy.remove_uplink(UPLINK, &mut world.endpoint, now);
    world.proxy.strand_all(&mut world.endpoint, now);
    let answer = String::from_utf8_lossy(&world.answer(&mut client)).into_owned();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("no uplink is available"), "{answer}");
    assert!(world.proxy.by_connection.is_empty());
}

#[test]
fn answers_are_the_same_however_requests_are_cut() {
    let mut world = World::with_uplink();
    let socks = [&[5, 1, 0, 5, 1, 0, 3, 6][..], b"a.test", &[0, 80]].concat();
    let connect = b"CONNECT a.test:80 HTTP/1.1\r\n\r\n".to_vec();
    let get = b"GET http://a.test/ HTTP/1.1\r\n\r\n".to_vec();
    for (request, expected) in [(socks, &[5, 0, 5, 4][..]), (connect, b"HTTP/1.1 502 "), (get, b"HTTP/1.1 502 ")] {
        for cut in 0..request.len() {
            let mut client = world.client();
            client.write_all(&request[..cut]).unwrap();
            world.turn();
            world.turn();
            client.write_all(&request[cut..]).unwrap();
            let answer = world.answer(&mut client);
            assert!(answer.starts_with(expected), "{cut}: {:?}", String::from_utf8_lossy(&answer));
        }
    }
    world.until(|world| world.proxy.sessions.is_empty().then_some(()));
    assert!(world.proxy.by_connection.is_empty() && world.endpoint.footprint().connections == 0);
}

#[test]
fn who_comes_when_it_is_full_waits_for_a_place() {
    let mut world = World::new(|config| config.clients_max = 2);
    let clients: Vec<_> = (0..3).map(|_| world.client()).collect();
    world.until(|world| (world.proxy.sessions.len() == 2).then_some(()));
    world.turn();
    let said = world.said.try_recv().unwrap();
    assert!(said.contains("2 clients"), "{said}");
    // The proxy does not retry constantly.
    assert!(world.proxy.poll_timeout().unwrap() > world.clock.now() + Duration::from_millis(500));
    let mut clients = clients.into_iter();
    drop(clients.next());
    world.until(|world| (world.proxy.totals.accepted == 3).then_some(()));
    assert!(world.said.try_recv().is_err(), "once is enough");
}

#[test]
fn who_says_nothing_and_who_leaves_costs_no_turns() {
    let mut world = World::new(|_| {});
    let silent = world.client();
    let mut half = world.client();
    half.write_all(&[5, 1]).unwrap();
    world.until(|world| (world.proxy.sessions.len() == 2).then_some(()));
    world.turn();
    let deadline = world.proxy.poll_timeout().unwrap();
    assert!(deadline > world.clock.now() + Duration::from_secs(50));
    // Their time runs out.
    world.proxy.handle_timeout(&mut world.endpoint, deadline + Duration::from_secs(1));
    assert!(world.proxy.sessions.is_empty());
    drop((silent, half));
}

#[test]
fn the_end_ends() {
    let mut world = World::new(|_| {});
    let (stop, mut stopper) = std::os::unix::net::UnixStream::pair().unwrap();
    world.proxy.end_at(stop.as_fd()).unwrap();
    let _client = world.client();
    world.until(|world| (world.proxy.sessions.len() == 1).then_some(()));
    assert!(!world.proxy.is_finished());
    stopper.write_all(&[0]).unwrap();
    world.until(|world| world.proxy.is_finished().then_some(()));
    assert!(TcpStream::connect(world.proxy.local_addr()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever a client says, it gets an answer or more time, and is forgotten once it has left.
    #[test]
    fn hostile_octets(first in prop_oneof![Just(5u8), Just(4), Just(b'G'), Just(b'C'), any::<u8>()],
                      octets in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
        let mut world = World::new(|_| {});
        let octets = [&[first][..], &octets].concat();
        let mut client = world.client();
        let (now, later) = octets.split_at(cut.min(octets.len()));
        client.write_all(now).unwrap();
        world.turn();
        // The proxy may have refused it already.
        let _ = client.write_all(later);
        world.turn();
        drop(client);
        world.until(|world| (world.proxy.totals.accepted == 1 && world.proxy.sessions.is_empty()).then_some(()));
    }
}
