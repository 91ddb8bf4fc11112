//! A listener under a flood of SYNs from addresses that do not exist, beside real clients: 100,000 SYNs a second, mixed
//! with forged ACKs and joins, in virtual time.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, ListenerId, Received};
use units::{Duration, Instant, Prng, SeqNr};
use wire::mptcp::{AddressId, CapableFlags, MpCapable, MpJoin, MptcpOption, Token};
use wire::{Flags, Pattern, Payload, Segment, Timestamps};

use crate::live::live_bytes;

const CLIENTS: usize = 50;
const REQUEST_BYTES: u32 = 200;
const RESPONSE_BYTES: u32 = 300_000;
/// Ten SYNs, an ACK and a join make a round: 100,000 SYNs a second.
const ROUND: [Forged; 12] = {
    let mut round = [Forged::Syn; 12];
    round[5] = Forged::Ack;
    round[11] = Forged::Join;
    round
};
const INTERVAL: Duration = Duration::from_nanos(100_000 / 12);

#[derive(Clone, Copy)]
enum Forged {
    Syn,
    Ack,
    Join,
}

/// Forged segments.
struct Flood {
    prng: Prng,
    sent: usize,
    next: Instant,
}

impl Flood {
    fn segment(&mut self) -> Segment {
        let word = self.prng.below(1 << 33);
        let octets = (word as u32).to_be_bytes();
        let src = SocketAddr::from(([198, 18 | octets[0] & 1, octets[1], octets[2]], 1024 | (word >> 17) as u16));
        let mut segment = Segment::new(src, server_address(0, 80));
        segment.seq = SeqNr(self.prng.below(1 << 32) as u32);
        segment.window = 65535;
        segment.options.timestamps = Some(Timestamps { value: 7, echo: self.prng.below(1 << 32) as u32 });
        match ROUND[self.sent % ROUND.len()] {
            Forged::Ack => {
                segment.flags = Flags::ACK;
                segment.ack = SeqNr(self.prng.below(1 << 32) as u32);
            }
            Forged::Join => {
                let (token, nonce) = (Token(self.prng.below(1 << 32) as u32), 1);
                segment.flags = Flags::SYN;
                let join = MpJoin::Syn { backup: false, address_id: AddressId(2), token, nonce };
                segment.options.mptcp.push(MptcpOption::Join(join));
            }
            Forged::Syn => {
                segment.flags = Flags::SYN;
                segment.options.mss = Some(1460);
                segment.options.window_scale = Some(7);
                segment.options.sack_permitted = true;
                let flags = CapableFlags::HMAC_SHA256;
                let capable = MpCapable { version: 1, flags, sender_key: None, receiver_key: None, data: None };
                segment.options.mptcp.extend((word & 1 == 0).then_some(MptcpOption::Capable(capable)));
            }
        }
        self.sent += 1;
        self.next += INTERVAL;
        segment
    }
}

struct Client {
    endpoint: Endpoint,
    connection: Option<ConnectionId>,
    starts_at: Instant,
    connected_at: Option<Instant>,
    received: u64,
    finished: bool,
}

struct World {
    server: Endpoint,
    listener: ListenerId,
    /// Connections of the server, and whether the response was written.
    served: Vec<ConnectionId>,
    clients: Vec<Client>,
    flood: Flood,
    now: Instant,
    in_flight: BTreeMap<(Instant, u64), Segment>,
    order: u64,
    /// Deadline of each endpoint: the server, then the clients.
    timers: Vec<Instant>,
}

fn server_address(path: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, path + 1], port))
}

fn client_ip(client: usize, path: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, client as u8, path + 1).into()
}

fn endpoint(addresses: [IpAddr; 2], seed: u64) -> Endpoint {
    let local_addresses = addresses.map(|ip| LocalAddress { ip, backup: false }).to_vec();
    Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, seed)
}

fn pattern(offset: u64, len: u32) -> Payload {
    Payload::Pattern(Pattern { stream: 1, offset, len })
}

impl World {
    fn new(seed: u64) -> Self {
        let mut server = endpoint([0, 1].map(|path| server_address(path, 0).ip()), seed);
        let listener = server.listen(SocketAddr::from(([0, 0, 0, 0], 80)), ConnectionConfig::default()).unwrap();
        let client = |i: usize| Client {
            endpoint: endpoint([0, 1].map(|path| client_ip(i, path)), seed + 1 + i as u64),
            connection: None,
            starts_at: Instant::FAR_FUTURE,
            connected_at: None,
            received: 0,
            finished: false,
        };
        Self {
            server,
            listener,
            served: Vec::new(),
            clients: (0..CLIENTS).map(client).collect(),
            flood: Flood { prng: Prng::fork(seed, "flood"), sent: 0, next: Instant::ZERO },
            now: Instant::ZERO,
            in_flight: BTreeMap::new(),
            order: 0,
            timers: vec![Instant::FAR_FUTURE; CLIENTS + 1],
        }
    }

    /// Delivers a segment after 10 ms one way, or 30 ms between the second addresses.
    fn carry(&mut self, segment: Segment) {
        let last = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) => ip.octets()[3],
            IpAddr::V6(_) => unreachable!(),
        };
        let delay = if last(segment.src).max(last(segment.dst)) == 1 { 10 } else { 30 };
        self.order += 1;
        self.in_flight.insert((self.now + Duration::from_millis(delay), self.order), segment);
    }

    /// Sends the server's segments; those to non-existent addresses are lost.
    fn flush_server(&mut self) {
        while let Some(segment) = self.server.poll_transmit(self.now) {
            if matches!(segment.dst.ip(), IpAddr::V4(ip) if ip.octets()[0] == 10) {
                self.carry(segment);
            }
        }
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Incoming(_) => self.served.extend(self.server.accept(self.listener)),
                Event::Readable(id) => self.respond(id),
                _ => {}
            }
        }
        self.timers[0] = self.server.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
    }

    fn respond(&mut self, id: ConnectionId) {
        let now = self.now;
        if matches!(self.server.recv(id, usize::MAX, now), Ok(Received::Data(data)) if data.len() == REQUEST_BYTES as usize)
        {
            assert_eq!(self.server.send(id, pattern(0, RESPONSE_BYTES), now), Ok(RESPONSE_BYTES as usize));
            self.server.shutdown(id, now).unwrap();
        }
    }

    fn flush_client(&mut self, i: usize) {
        let now = self.now;
        let client = &mut self.clients[i];
        while let Some(event) = client.endpoint.poll_event() {
            match event {
                Event::Connected { connection, .. } => {
                    client.connected_at = Some(now);
                    client.endpoint.send(connection, pattern(0, REQUEST_BYTES), now).unwrap();
                }
                Event::Readable(id) => loop {
                    match client.endpoint.recv(id, usize::MAX, now).unwrap() {
                        Received::Data(data) => {
                            assert_eq!(data, pattern(client.received, data.len() as u32));
                            client.received += data.len() as u64;
                        }
                        Received::Finished => break client.finished = true,
                        Received::Pending => break,
                    }
                },
                _ => {}
            }
        }
        while let Some(segment) = self.clients[i].endpoint.poll_transmit(now) {
            self.carry(segment);
        }
        self.timers[i + 1] = self.clients[i].endpoint.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
    }

    fn start(&mut self, i: usize) {
        let client = &mut self.clients[i];
        client.starts_at = self.now;
        let local = SocketAddr::new(client_ip(i, 0), 0);
        let config = ConnectionConfig::default();
        client.connection = Some(client.endpoint.connect(local, server_address(0, 80), config, self.now).unwrap());
        self.flush_client(i);
    }

    fn deliver(&mut self, segment: Segment) {
        let IpAddr::V4(ip) = segment.dst.ip() else { unreachable!() };
        match ip.octets() {
            [10, 1, ..] => {
                self.server.handle_segment(segment, self.now);
                self.flush_server();
            }
            [_, _, i, _] => {
                self.clients[usize::from(i)].endpoint.handle_segment(segment, self.now);
                self.flush_client(usize::from(i));
            }
        }
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            let arrival = self.in_flight.keys().next().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
            let (due, timer) = self.timers.iter().copied().enumerate().min_by_key(|(_, at)| *at).unwrap();
            let next = arrival.min(timer).min(self.flood.next);
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if self.flood.next == next {
                let segment = self.flood.segment();
                self.server.handle_segment(segment, self.now);
                self.flush_server();
            } else if arrival == next {
                let (_, segment) = self.in_flight.pop_first().unwrap();
                self.deliver(segment);
            } else if due == 0 {
                self.server.handle_timeout(self.now);
                self.flush_server();
            } else {
                self.clients[due - 1].endpoint.handle_timeout(self.now);
                self.flush_client(due - 1);
            }
        }
        self.now = end;
    }

    fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }
}

/// Floods the listener for `seconds` while clients come one after the other. Each is served, with MPTCP over all its
/// paths, as without a flood.
fn flood(seconds: u64) {
    let mut world = World::new(1);
    world.run_for(Duration::from_millis(100));
    let backlog = EndpointConfig::default().backlog;
    assert_eq!(world.server.footprint().connections, backlog);
    let before = live_bytes();
    world.run_for(Duration::from_millis(400));
    let growth = live_bytes() - before;
    assert!(growth < 40_000, "40,000 SYNs took {growth} octets");

    let pause = Duration::from_millis((seconds * 1000 - 2000) / CLIENTS as u64);
    for i in 0..CLIENTS {
        world.start(i);
        world.run_for(pause);
        assert!(world.server.footprint().connections <= backlog + CLIENTS);
    }
    world.run_until(Instant::from_millis(seconds * 1000));
    assert!(world.flood.sent as u64 > seconds * 119_000);

    for client in &world.clients {
        let id = client.connection.unwrap();
        let stats = client.endpoint.stats(id).unwrap();
        assert_eq!(
            client.connected_at,
            Some(client.starts_at + Duration::from_millis(20)),
            "the first SYN is answered"
        );
        assert_eq!((client.received, client.finished, stats.mptcp), (u64::from(RESPONSE_BYTES), true, true));
        assert_eq!(stats.subflows.len(), 4, "full mesh");
        assert!(stats.subflows.iter().all(|subflow| subflow.established_at.is_some()));
    }
    assert_eq!(world.served.len(), CLIENTS);
    let forged = world.flood.sent / ROUND.len();
    assert!(
        world.served.iter().all(|id| world.server.stats(*id).unwrap().mptcp),
        "{forged} forged ACKs opened nothing"
    );
}

#[test]
fn clients_beside_a_flood_are_all_served() {
    flood(4);
}

#[test]
#[ignore = "a minute of 100,000 SYNs a second"]
fn clients_beside_a_flood_of_a_minute_are_all_served() {
    flood(60);
}
