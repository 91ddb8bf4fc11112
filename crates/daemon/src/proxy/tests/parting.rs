//! Clients that end their streams, and a server that says what it is told to say.

use std::net::Shutdown;

use transport::{ListenerId, Received};
use wire::Payload;

use super::*;

const SERVER: &str = "192.0.2.1:80";
const REQUEST: &[u8] = b"GET http://192.0.2.1/ HTTP/1.1\r\n\r\n";

/// The server's side.
struct Server {
    endpoint: Endpoint,
    listener: ListenerId,
    connection: Option<ConnectionId>,
}

impl Server {
    fn new(config: ConnectionConfig) -> Self {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 2);
        let listener = endpoint.listen(SERVER.parse().unwrap(), config).unwrap();
        Self { endpoint, listener, connection: None }
    }

    fn say(&mut self, octets: &'static [u8], now: Instant) {
        self.endpoint.send(self.connection.unwrap(), Payload::Bytes(octets.into()), now).unwrap();
    }

    fn read(&mut self, max: usize, now: Instant) -> usize {
        match self.endpoint.recv(self.connection.unwrap(), max, now) {
            Ok(Received::Data(data)) => data.len(),
            _ => 0,
        }
    }

    /// Whether the proxy has broken the connection off.
    fn is_left(&mut self, now: Instant) -> bool {
        self.endpoint.send(self.connection.unwrap(), Payload::Bytes(b"x"[..].into()), now).is_err()
    }
}

impl World {
    /// Carries segments between the proxy's engine and the server's until both are silent.
    fn carry(&mut self, server: &mut Server) {
        loop {
            self.turn();
            let now = self.now();
            let mut moved = false;
            if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
                self.endpoint.handle_timeout(now);
            }
            if server.endpoint.poll_timeout().is_some_and(|at| at <= now) {
                server.endpoint.handle_timeout(now);
            }
            while let Some(segment) = self.endpoint.poll_transmit(now) {
                server.endpoint.handle_segment(segment, now);
                moved = true;
            }
            while let Some(segment) = server.endpoint.poll_transmit(now) {
                self.endpoint.handle_segment(segment, now);
                moved = true;
            }
            while let Some(event) = self.endpoint.poll_event() {
                self.proxy.handle_event(&event, &mut self.endpoint, now);
                moved = true;
            }
            while server.endpoint.poll_event().is_some() {}
            server.connection = server.connection.or_else(|| server.endpoint.accept(server.listener));
            if !moved {
                return;
            }
        }
    }

    /// Lets time pass, in steps that no timer of an engine is surprised by.
    fn pass(&mut self, span: Duration, server: &mut Server) {
        let until = self.now() + span;
        while self.now() < until {
            self.ahead += Duration::from_secs(1).min(until.saturating_since(self.now()));
            self.carry(server);
        }
    }

    fn clients(&self) -> usize {
        self.proxy.sessions.len()
    }
}

/// A client that has said `opening` and is connected.
fn connected(opening: &[u8], config: ConnectionConfig) -> (World, Server, TcpStream) {
    let (mut world, mut server) = (World::with_uplink(), Server::new(config));
    let mut client = world.client();
    client.write_all(opening).unwrap();
    for _ in 0..5000 {
        world.carry(&mut server);
        if server.connection.is_some() && world.clients() == 1 {
            return (world, server, client);
        }
        std::thread::yield_now();
    }
    panic!("no connection");
}

fn tunnel(config: ConnectionConfig) -> (World, Server, TcpStream) {
    connected(&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80], config)
}

/// All that a client is given now.
fn heard(client: &mut TcpStream) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(len) = client.read(&mut piece) {
        all.extend_from_slice(&piece[..len]);
        if len == 0 {
            break;
        }
    }
    all
}

#[test]
fn who_has_left_is_forgotten_though_the_server_is_silent() {
    let tunnels: [&[u8]; 2] =
        [&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80], b"CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\nhello"];
    let of = |opening: &'static [u8], seconds| (opening, Duration::from_secs(seconds));
    for (opening, span) in [of(REQUEST, 10), of(tunnels[0], 120), of(tunnels[1], 120)] {
        let (mut world, mut server, mut client) = connected(opening, ConnectionConfig::default());
        // What is unread would make a reset of it.
        heard(&mut client);
        drop(client);
        world.pass(span - Duration::from_secs(2), &mut server);
        assert_eq!(world.clients(), 1, "it may only have said all that it has to say");
        world.pass(Duration::from_secs(4), &mut server);
        assert_eq!(world.clients(), 0);
        assert!(server.is_left(world.now()));
    }
}

#[test]
fn who_stays_is_waited_for() {
    for opening in [REQUEST, b"CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\n"] {
        let (mut world, mut server, _client) = connected(opening, ConnectionConfig::default());
        world.pass(Duration::from_secs(1000), &mut server);
        assert_eq!(world.clients(), 1);
    }
}

#[test]
fn who_has_only_said_all_lives_on_while_octets_come() {
    let (mut world, mut server, mut client) = tunnel(ConnectionConfig::default());
    client.shutdown(Shutdown::Write).unwrap();
    world.carry(&mut server);
    heard(&mut client);
    for _ in 0..5 {
        world.pass(Duration::from_secs(100), &mut server);
        server.say(b"tick", world.now());
        world.pass(Duration::from_secs(1), &mut server);
        assert_eq!(heard(&mut client), b"tick");
    }
    world.pass(Duration::from_secs(121), &mut server);
    assert_eq!(world.clients(), 0);
}

#[test]
fn a_request_whose_client_sends_no_more_is_answered() {
    let (mut world, mut server, mut client) = connected(REQUEST, ConnectionConfig::default());
    // Another request waits behind it, on the same connection.
    client.write_all(REQUEST).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    for _ in 0..2 {
        world.pass(Duration::from_secs(8), &mut server);
        server.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", world.now());
        world.pass(Duration::from_secs(1), &mut server);
        assert!(heard(&mut client).ends_with(b"ok"));
    }
    world.pass(Duration::from_secs(1), &mut server);
    assert_eq!(world.clients(), 0);
}

#[test]
fn what_a_slow_server_takes_is_delivered_though_its_client_has_left() {
    let config = ConnectionConfig { receive_buffer_bytes: 16 << 10, ..ConnectionConfig::default() };
    let (mut world, mut server, mut client) = tunnel(config);
    heard(&mut client);
    client.write_all(&[7; 60_000]).unwrap();
    drop(client);
    let mut taken = 0;
    for _ in 0..5 {
        world.pass(Duration::from_secs(50), &mut server);
        taken += server.read(9_000, world.now());
        world.carry(&mut server);
    }
    assert_eq!((world.clients(), taken > 15_000), (1, true), "{taken}");
    world.pass(Duration::from_secs(400), &mut server);
    assert_eq!(world.clients(), 0, "it takes no more");
}
