//! Ten thousand connections in one endpoint all work. The benches measure their cost.

use std::net::SocketAddr;

use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Footprint, ListenerId, Received};
use units::{Duration, Instant};
use wire::{Pattern, Payload};

const MANY: usize = 10_000;

struct World {
    client: Endpoint,
    server: Endpoint,
    listener: ListenerId,
    now: Instant,
}

fn config() -> ConnectionConfig {
    ConnectionConfig {
        path_manager: "manual".into(),
        send_buffer_bytes: 1 << 16,
        receive_buffer_bytes: 1 << 16,
        keep_alive: Some(Duration::from_secs(7200)),
        ..ConnectionConfig::default()
    }
}

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], port))
}

fn pattern(len: u32) -> Payload {
    Payload::Pattern(Pattern { stream: 1, offset: 0, len })
}

impl World {
    fn new() -> Self {
        let settings = EndpointConfig { backlog: MANY, ..EndpointConfig::default() };
        let mut server = Endpoint::with_seed(settings.clone(), 1);
        let listener = server.listen(address(2, 80), config()).unwrap();
        Self { client: Endpoint::with_seed(settings, 2), server, listener, now: Instant::ZERO }
    }

    fn open(&mut self, count: usize) -> Vec<(ConnectionId, ConnectionId)> {
        let mut pairs = Vec::new();
        while pairs.len() < count {
            let client = self.client.connect(address(1, 0), address(2, 80), config(), self.now).unwrap();
            self.settle();
            pairs.push((client, self.server.accept(self.listener).expect("accepted")));
        }
        pairs
    }

    /// Exchanges segments, each with a delay of a millisecond, until there are none left.
    fn settle(&mut self) {
        loop {
            let up: Vec<_> = std::iter::from_fn(|| self.client.poll_transmit(self.now)).collect();
            let down: Vec<_> = std::iter::from_fn(|| self.server.poll_transmit(self.now)).collect();
            while self.client.poll_event().or_else(|| self.server.poll_event()).is_some() {}
            if up.is_empty() && down.is_empty() {
                return;
            }
            self.now += Duration::from_millis(1);
            up.into_iter().for_each(|segment| self.server.handle_segment(segment, self.now));
            down.into_iter().for_each(|segment| self.client.handle_segment(segment, self.now));
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.settle();
            let next = self.client.poll_timeout().into_iter().chain(self.server.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
        self.now = self.now.max(end);
    }

    fn exchange(&mut self, (client, server): (ConnectionId, ConnectionId)) {
        self.client.send(client, pattern(3000), self.now).unwrap();
        self.run_for(Duration::from_millis(100));
        let mut received = 0;
        while let Received::Data(piece) = self.server.recv(server, usize::MAX, self.now).unwrap() {
            received += piece.len();
        }
        assert_eq!(received, 3000);
    }
}

#[test]
fn ten_thousand_connections() {
    let mut world = World::new();
    let pairs = world.open(MANY);
    assert_eq!(world.server.footprint(), Footprint { connections: MANY, four_tuples: MANY, tokens: MANY });
    for pair in pairs.iter().step_by(97) {
        world.exchange(*pair);
    }
    // All at once, while the timers of all connections run.
    for (client, _) in &pairs {
        world.client.send(*client, pattern(2000), world.now).unwrap();
    }
    world.run_for(Duration::from_secs(1));
    for (_, server) in &pairs {
        assert_eq!(world.server.recv(*server, usize::MAX, world.now).unwrap(), Received::Data(pattern(2000)));
    }
    for (client, server) in &pairs {
        world.client.close(*client, world.now).unwrap();
        world.server.close(*server, world.now).unwrap();
        world.client.release(*client);
        world.server.release(*server);
    }
    world.run_for(Duration::from_secs(200));
    let nothing = Footprint { connections: 0, four_tuples: 0, tokens: 0 };
    assert_eq!((world.client.footprint(), world.server.footprint()), (nothing, nothing));
    let again = world.open(10);
    assert_eq!(again.len(), 10);
}
