//! A server behind the uplink, on an engine of its own; tests decide what it sends.

use transport::{ListenerId, Received};
use wire::Payload;

use super::*;

const SERVER: &str = "192.0.2.1:80";
/// A request to that server.
pub const REQUEST: &[u8] = b"GET http://192.0.2.1/ HTTP/1.1\r\n\r\n";

/// The server's side.
pub struct Server {
    pub endpoint: Endpoint,
    listener: ListenerId,
    pub connection: Option<ConnectionId>,
}

impl Server {
    pub fn new(config: ConnectionConfig) -> Self {
        Self::at(SERVER, config)
    }

    /// Creates a server with this address and port.
    pub fn at(address: &str, config: ConnectionConfig) -> Self {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 2);
        let listener = endpoint.listen(address.parse().unwrap(), config).unwrap();
        Self { endpoint, listener, connection: None }
    }

    /// Takes the next connection, if there is one.
    pub fn accept(&mut self) {
        self.connection = self.endpoint.accept(self.listener).or(self.connection);
    }

    pub fn say(&mut self, octets: &'static [u8], now: Instant) {
        self.endpoint.send(self.connection.unwrap(), Payload::Bytes(octets.into()), now).unwrap();
    }

    /// Sends as many of `octets` as the engine takes. Returns their number.
    pub fn say_much(&mut self, octets: Vec<u8>, now: Instant) -> usize {
        self.endpoint.send(self.connection.unwrap(), Payload::Bytes(octets.into()), now).unwrap()
    }

    /// Ends the server's stream.
    pub fn shutdown(&mut self, now: Instant) {
        self.endpoint.shutdown(self.connection.unwrap(), now).unwrap();
    }

    /// Aborts the connection.
    pub fn abort(&mut self, now: Instant) {
        self.endpoint.abort(self.connection.unwrap(), now).unwrap();
    }

    pub fn read(&mut self, max: usize, now: Instant) -> usize {
        match self.endpoint.recv(self.connection.unwrap(), max, now) {
            Ok(Received::Data(data)) => data.len(),
            _ => 0,
        }
    }

    /// Whether the proxy has aborted the connection.
    pub fn is_left(&mut self, now: Instant) -> bool {
        self.endpoint.send(self.connection.unwrap(), Payload::Bytes(b"x"[..].into()), now).is_err()
    }
}

impl World {
    /// Carries what the server has sent to the proxy's engine; the proxy does not know of it yet.
    pub fn deliver(&mut self, server: &mut Server) {
        let now = self.now();
        while let Some(segment) = server.endpoint.poll_transmit(now) {
            self.endpoint.handle_segment(segment, now);
        }
    }

    /// Passes octets to the client until no more come. Returns them, and whether its stream has ended.
    pub fn drain(&mut self, client: &mut TcpStream, server: &mut Server) -> (Vec<u8>, bool) {
        let (mut all, mut piece, mut idle) = (Vec::new(), [0; 1 << 16], 0);
        while idle < 5 {
            self.carry(server);
            match client.read(&mut piece) {
                Ok(0) => return (all, true),
                Ok(len) => {
                    all.extend_from_slice(&piece[..len]);
                    idle = 0;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    idle += 1;
                }
            }
        }
        (all, false)
    }

    /// Passes octets to the client until it has `enough`, or its stream has ended. Returns them, and whether it has.
    pub fn drain_until(
        &mut self,
        enough: impl Fn(&[u8]) -> bool,
        client: &mut TcpStream,
        server: &mut Server,
    ) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        for turn in 0..1000 {
            let (piece, ended) = self.drain(client, server);
            all.extend_from_slice(&piece);
            if ended || enough(&all) {
                return (all, ended);
            }
            pause_after(turn);
        }
        (all, false)
    }

    /// Returns the only client.
    pub fn session(&self) -> &Session {
        self.proxy.sessions.iter().next().unwrap().1
    }

    /// Carries segments between the proxy's engine and the server's until both are silent.
    pub fn carry(&mut self, server: &mut Server) {
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

    /// Lets time pass, in steps short enough for the engines' timers.
    pub fn pass(&mut self, span: Duration, server: &mut Server) {
        let until = self.now() + span;
        while self.now() < until {
            self.ahead += Duration::from_secs(1).min(until.saturating_since(self.now()));
            self.carry(server);
        }
    }

    pub fn clients(&self) -> usize {
        self.proxy.sessions.len()
    }
}

/// A client that has sent `opening` and is connected.
pub fn connected(opening: &[u8], config: ConnectionConfig) -> (World, Server, TcpStream) {
    connected_in(World::with_uplink(), opening, config)
}

/// As [`connected`], in the given world.
pub fn connected_in(mut world: World, opening: &[u8], config: ConnectionConfig) -> (World, Server, TcpStream) {
    let mut server = Server::new(config);
    let mut client = world.client();
    client.write_all(opening).unwrap();
    for turn in 0..5000 {
        world.carry(&mut server);
        if server.connection.is_some() && world.clients() == 1 {
            return (world, server, client);
        }
        pause_after(turn);
    }
    panic!("no connection");
}

pub fn tunnel(config: ConnectionConfig) -> (World, Server, TcpStream) {
    connected(&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80], config)
}

/// Returns all that a client can read now.
pub fn heard(client: &mut TcpStream) -> Vec<u8> {
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
fn totals_include_clients_that_are_still_there() {
    let (mut world, mut server, mut client) = tunnel(ConnectionConfig::default());
    let now = world.now();
    server.say(b"hello", now);
    let (octets, _) = world.drain_until(|octets| octets.ends_with(b"hello"), &mut client, &mut server);
    assert!(octets.ends_with(b"hello") && world.clients() == 1);
    let totals = world.proxy.status(&world.endpoint, now).totals;
    assert!(totals.down_bytes >= 5 && totals.down_bytes == world.session().down_bytes, "{totals:?}");
}
