//! Two endpoints and one path that loses, delays, reorders and duplicates segments, by a seed or by a plan.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use transport::{ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, EndpointConfig, ListenerId, Received};
use units::{Duration, Instant, Prng};
use wire::{Pattern, Payload, Segment};

const PORT: u16 = 80;

/// Fate of the n-th segment that enters the path, counted over both directions from zero.
pub enum Fate {
    Arrives,
    Lost,
    /// Arrives later by this time.
    Late(Duration),
    Twice,
}

/// Decides the fate of each segment.
pub type Plan = Box<dyn FnMut(u64, &Segment) -> Fate>;

/// A path with probabilities instead of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub loss: f64,
    pub duplicates: f64,
    /// Maximum extra delay, drawn for each segment, so that segments overtake each other.
    pub jitter: Duration,
}

pub struct Rough {
    pub client: Endpoint,
    pub server: Endpoint,
    pub now: Instant,
    pub client_id: ConnectionId,
    server_id: Option<ConnectionId>,
    listener: ListenerId,
    delay: Duration,
    plan: Plan,
    path: BTreeMap<(Instant, u64), (bool, Segment)>,
    pub segments: u64,
}

/// Result of a transfer.
#[derive(Debug)]
pub struct Outcome {
    pub duration: Duration,
    pub sender: ConnectionStats,
    pub receiver: ConnectionStats,
    pub segments: u64,
}

impl Rough {
    pub fn new(delay: Duration, config: &ConnectionConfig, server_config: &ConnectionConfig, plan: Plan) -> Self {
        let host = |ip: [u8; 4]| SocketAddr::from((ip, PORT));
        let mut client = Endpoint::with_seed(EndpointConfig::default(), 1);
        let mut server = Endpoint::with_seed(EndpointConfig::default(), 2);
        let listener = server.listen(host([10, 0, 0, 2]), server_config.clone()).unwrap();
        let from = SocketAddr::from(([10, 0, 0, 1], 0));
        let client_id = client.connect(from, host([10, 0, 0, 2]), config.clone(), Instant::ZERO).unwrap();
        let path = BTreeMap::new();
        let now = Instant::ZERO;
        Self { client, server, now, client_id, server_id: None, listener, delay, plan, path, segments: 0 }
    }

    /// Makes a plan from probabilities.
    pub fn weather(weather: Weather, seed: u64) -> Plan {
        let mut prng = Prng::fork(seed, "weather");
        Box::new(move |_, _| {
            if prng.chance(weather.loss) {
                return Fate::Lost;
            }
            if prng.chance(weather.duplicates) {
                return Fate::Twice;
            }
            Fate::Late(Duration::from_nanos((weather.jitter.as_nanos() as f64 * prng.unit()) as u64))
        })
    }

    fn flush(&mut self) {
        for to_server in [true, false] {
            let endpoint = if to_server { &mut self.client } else { &mut self.server };
            while let Some(segment) = endpoint.poll_transmit(self.now) {
                let number = self.segments;
                self.segments += 1;
                let at = self.now + self.delay;
                let mut carry = |at: Instant, order, segment| self.path.insert((at, order), (to_server, segment));
                match (self.plan)(number, &segment) {
                    Fate::Lost => {}
                    Fate::Arrives => drop(carry(at, 2 * number, segment)),
                    Fate::Late(more) => drop(carry(at + more, 2 * number, segment)),
                    Fate::Twice => {
                        carry(at, 2 * number, segment.clone());
                        carry(at, 2 * number + 1, segment);
                    }
                }
            }
            while endpoint.poll_event().is_some() {}
        }
        if self.server_id.is_none() {
            self.server_id = self.server.accept(self.listener);
        }
    }

    /// Processes the next event. Returns false if there is none.
    fn step(&mut self) -> bool {
        self.flush();
        let arrival = self.path.keys().next().map(|(at, _)| *at);
        let wake_ups = [arrival, self.client.poll_timeout(), self.server.poll_timeout()];
        let Some(next) = wake_ups.into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let (_, (to_server, segment)) = self.path.pop_first().unwrap();
            let endpoint = if to_server { &mut self.server } else { &mut self.client };
            endpoint.handle_segment(segment, self.now);
        }
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        self.flush();
        true
    }

    /// The client sends `up` octets, the server `down`, and both close. Both must receive everything intact and once,
    /// and both connections must end.
    pub fn exchange(mut self, up: u64, down: u64, name: &str) -> Outcome {
        let deadline = Instant::from_secs(3600);
        let mut ends = [Progress::new(up, down), Progress::new(down, up)];
        let mut done_at = None;
        loop {
            assert!(self.now < deadline, "{name}: {ends:?}\n{:#?}", self.client.stats(self.client_id));
            ends[0].drive(&mut self.client, self.client_id, self.now, name);
            if let Some(id) = self.server_id {
                ends[1].drive(&mut self.server, id, self.now, name);
            }
            if done_at.is_none() && ends.iter().all(|end| end.finished) {
                done_at = Some(self.now);
            }
            if !self.step() {
                break;
            }
        }
        let done_at = done_at.unwrap_or_else(|| panic!("{name}: stuck at {:?}: {ends:?}", self.now));
        let server_id = self.server_id.unwrap();
        let sender = self.client.stats(self.client_id).unwrap();
        let receiver = self.server.stats(server_id).unwrap();
        for stats in [&sender, &receiver] {
            assert_eq!(stats.subflows[0].state, "CLOSED", "{name}");
            assert_eq!(stats.subflows[0].in_flight_bytes, 0, "{name}");
        }
        let duration = done_at.saturating_since(Instant::ZERO);
        Outcome { duration, sender, receiver, segments: self.segments }
    }
}

/// What one application has sent and received.
#[derive(Debug)]
struct Progress {
    to_send: u64,
    sent: u64,
    shut: bool,
    to_receive: u64,
    received: u64,
    finished: bool,
}

impl Progress {
    fn new(to_send: u64, to_receive: u64) -> Self {
        Self { to_send, sent: 0, shut: false, to_receive, received: 0, finished: false }
    }

    fn drive(&mut self, endpoint: &mut Endpoint, id: ConnectionId, now: Instant, name: &str) {
        while self.sent < self.to_send {
            let len = (self.to_send - self.sent).min(1 << 20) as u32;
            let piece = Payload::Pattern(Pattern { stream: 3, offset: self.sent, len });
            let taken = endpoint.send(id, piece, now).unwrap_or_else(|error| panic!("{name}: {error}")) as u64;
            self.sent += taken;
            if taken == 0 {
                break;
            }
        }
        if self.sent == self.to_send && !self.shut {
            self.shut = true;
            endpoint.shutdown(id, now).unwrap();
        }
        while !self.finished {
            match endpoint.recv(id, usize::MAX, now).unwrap_or_else(|error| panic!("{name}: {error} {self:?}")) {
                Received::Data(payload) => {
                    let expected = Pattern { stream: 3, offset: self.received, len: payload.len() as u32 };
                    assert_eq!(payload, Payload::Pattern(expected), "{name}");
                    self.received += payload.len() as u64;
                }
                Received::Pending => break,
                Received::Finished => {
                    assert_eq!(self.received, self.to_receive, "{name}");
                    self.finished = true;
                }
            }
        }
    }
}
