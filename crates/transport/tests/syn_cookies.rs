//! SYN cookies (RFC 4987 section 3.6): the service of a listener that can remember no more handshakes.

use std::net::SocketAddr;

use transport::receiver_centric::ReceiverCentric;
use transport::{ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, EndpointConfig, ListenerId, Received};
use units::{Duration, Instant, SeqNr};
use wire::mptcp::{Key, MpCapable, MptcpOption};
use wire::{Flags, Payload, Segment};

use crate::forger::{Flow, Forger};

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

/// A listener with a backlog of `backlog` handshakes, in which strangers may have taken the first places.
struct Server {
    endpoint: Endpoint,
    listener: ListenerId,
    now: Instant,
}

impl Server {
    fn new(config: ConnectionConfig, backlog: usize, seed: u64) -> Self {
        let mut endpoint = Endpoint::with_seed(EndpointConfig { backlog, ..EndpointConfig::default() }, seed);
        let listener = endpoint.listen(SocketAddr::from(([0, 0, 0, 0], 80)), config).unwrap();
        Self { endpoint, listener, now: Instant::from_secs(1000) }
    }

    /// Creates a server with room for all handshakes.
    fn with_memory(config: ConnectionConfig) -> Self {
        Self::new(config, 100, 1)
    }

    /// Creates a server that remembers only one handshake, which never ends.
    fn flooded(config: ConnectionConfig) -> Self {
        Self::flooded_with(config, 1)
    }

    fn flooded_with(config: ConnectionConfig, seed: u64) -> Self {
        let mut server = Self::new(config, 1, seed);
        server.stranger(1);
        server
    }

    /// Sends a SYN without a continuation.
    fn stranger(&mut self, n: u16) {
        let stranger = Forger { flows: vec![flow(60_000 + n)], ..Forger::new(false, 1) };
        assert_eq!(self.play(stranger.syn(0, self.now)).len(), 1);
    }

    fn play(&mut self, segment: Segment) -> Vec<Segment> {
        self.endpoint.handle_segment(segment, self.now);
        self.flush()
    }

    fn flush(&mut self) -> Vec<Segment> {
        core::iter::from_fn(|| self.endpoint.poll_transmit(self.now)).collect()
    }

    fn wait(&mut self, span: Duration) -> Vec<Segment> {
        let (end, mut sent) = (self.now + span, Vec::new());
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            sent.extend(self.flush());
        }
        self.now = end;
        sent
    }

    /// Answers the client's SYN and informs the client.
    fn answer(&mut self, client: &mut Forger) -> Segment {
        let answers = self.play(client.syn(0, self.now));
        assert_eq!(answers.len(), 1);
        client.learn(&answers[0]);
        answers[0].clone()
    }

    fn accept(&mut self) -> Option<ConnectionId> {
        self.endpoint.accept(self.listener)
    }

    fn stats(&self, id: ConnectionId) -> ConnectionStats {
        self.endpoint.stats(id).unwrap()
    }

    fn connections(&self) -> usize {
        self.endpoint.footprint().connections
    }
}

fn flow(port: u16) -> Flow {
    Flow::new(SocketAddr::from(([10, 9, 0, 1], port)), SocketAddr::from(([10, 0, 0, 1], 80)), 5000)
}

fn client(forger: Forger) -> Forger {
    Forger { flows: vec![flow(5000)], ..forger }
}

fn capable(segment: &Segment) -> Option<MpCapable> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Capable(capable) => Some(*capable),
        _ => None,
    })
}

/// Returns the part of a segment that does not depend on keys and initial sequence numbers.
fn shape(segment: &Segment, iss: SeqNr) -> String {
    let options = &segment.options;
    let mptcp: Vec<String> = options
        .mptcp
        .iter()
        .map(|option| match option {
            MptcpOption::Capable(capable) => {
                format!("{:?}", MpCapable { sender_key: None, receiver_key: None, ..*capable })
            }
            MptcpOption::Dss(dss) => format!("DSS {:?}", dss.mapping.map(|mapping| (mapping.ssn, mapping.len))),
            other => format!("{other:?}"),
        })
        .collect();
    format!(
        "{:?} {} ack {} win {} +{} mss {:?} wscale {:?} sack {} ts {:?} ecn {:?} {mptcp:?}",
        segment.flags,
        segment.seq.since(iss),
        segment.ack.0,
        segment.window,
        segment.payload.len(),
        options.mss,
        options.window_scale,
        options.sack_permitted,
        options.timestamps.map(|stamp| stamp.echo),
        segment.ecn,
    )
}

/// Exchanges a SYN, the third ACK, and as much data as a window of 40 (scaled or not) takes, with a hole in the
/// client's data.
fn conversation(mut server: Server, mut client: Forger, change_syn: impl Fn(&mut Segment)) -> Vec<String> {
    let mut syn = client.syn(0, server.now);
    change_syn(&mut syn);
    let mut sent = server.play(syn);
    assert_eq!(sent.len(), 1);
    client.learn(&sent[0]);
    server.now += Duration::from_millis(100);
    sent.extend(server.play(Segment { window: 40, ..client.third_ack(0, server.now) }));
    let id = server.accept().expect("a connection");
    server.endpoint.send(id, Payload::from(vec![1; 100_000]), server.now).unwrap();
    sent.extend(server.flush());
    let hole = client.data_at(0, client.flows[0].nxt + 1000, client.dsn + 1000, 500, server.now);
    sent.extend(server.play(hole));
    let first = client.data(0, 1000, server.now);
    sent.extend(server.play(first));
    assert!(matches!(server.endpoint.recv(id, 5000, server.now), Ok(Received::Data(data)) if !data.is_empty()));
    let iss = sent[0].seq;
    let stats = server.stats(id);
    let mut shapes: Vec<_> = sent.iter().map(|segment| shape(segment, iss)).collect();
    shapes.push(format!("{} {} {}", stats.mptcp, stats.fell_back, stats.state));
    shapes
}

/// RFC 8684 section 3.1: the third ACK carries both keys precisely so that the listener need not remember them. With
/// MPTCP all of a SYN's offers come back, and with timestamps all of TCP's: a connection by cookie equals one from
/// memory.
#[test]
fn what_a_cookie_brings_back_is_what_was_offered() {
    for bits in 0..64_u32 {
        let on = |bit: u32| bits & 1 << bit != 0;
        let (mptcp, timestamps, ecn) = (on(0), on(1), on(5));
        if !mptcp && !timestamps {
            continue;
        }
        let offer = Forger {
            timestamps,
            sack: on(2),
            window_scale: [None, Some(7)][usize::from(on(3))],
            checksum: mptcp && on(4),
            ..Forger::new(mptcp, 77)
        };
        let config = ConnectionConfig { ecn: true, ..config() };
        let change = |syn: &mut Segment| {
            if ecn {
                syn.flags |= Flags::ECE | Flags::CWR;
            }
        };
        let by_memory = conversation(Server::with_memory(config.clone()), client(offer.clone()), change);
        let by_cookie = conversation(Server::flooded(config), client(offer), change);
        assert_eq!(by_cookie, by_memory, "MPTCP {mptcp}, timestamps {timestamps}, {bits:#b}");
    }
}

/// Beside the usual offers: MPTCP-rec, and every possible shift.
#[test]
fn rare_offers_come_back_too() {
    let config = ConnectionConfig { receiver_centric: Some(ReceiverCentric::DEFAULT), ..config() };
    let compare = |offer: Forger| {
        let by_memory = conversation(Server::with_memory(config.clone()), client(offer.clone()), |_| ());
        assert_eq!(conversation(Server::flooded(config.clone()), client(offer), |_| ()), by_memory);
    };
    for receiver_centric in [false, true] {
        compare(Forger { receiver_centric, timestamps: false, ..Forger::new(true, 77) });
    }
    for shift in 0..=15 {
        compare(Forger { window_scale: Some(shift), ..Forger::new(shift % 2 == 0, 77) });
    }
}

/// Returns what a SYN/ACK agrees to beside the MSS: window scale, SACK and ECN.
fn agreed(answer: &Segment) -> (Option<u8>, bool, bool) {
    (answer.options.window_scale, answer.options.sack_permitted, answer.flags.contains(Flags::ECE))
}

/// Without timestamps or a key only the MSS comes back. What both SYNs offer is agreed (RFC 7323 section 2.2), so the
/// SYN/ACK offers nothing that the listener will not remember.
#[test]
fn without_timestamps_and_mptcp_there_is_the_mss() {
    for (offered, largest) in [(1460, 1460), (1400, 1380), (600, 536), (536, 536), (300, 88), (65535, 1460)] {
        let mut server = Server::flooded(ConnectionConfig { ecn: true, ..config() });
        let mut client = client(Forger { timestamps: false, mss: Some(offered), ..Forger::new(false, 77) });
        let mut syn = client.syn(0, server.now);
        syn.flags |= Flags::ECE | Flags::CWR;
        let answers = server.play(syn);
        client.learn(&answers[0]);
        assert_eq!(agreed(&answers[0]), (None, false, false));
        server.play(client.third_ack(0, server.now));
        let id = server.accept().unwrap();
        server.endpoint.send(id, Payload::from(vec![1; 20_000]), server.now).unwrap();
        let sent = server.flush();
        assert_eq!(sent.iter().map(|segment| segment.payload.len()).max(), Some(largest), "of {offered}");
        assert!(sent.iter().all(|segment| segment.options.timestamps.is_none() && segment.window == 65535));
    }
}

#[test]
fn the_same_over_ipv6() {
    let mut server = Server::new(config(), 1, 1);
    let [local, remote, other] =
        ["[2001:db8::1]:80", "[2001:db8::2]:5000", "[2001:db8::3]:5000"].map(|a| a.parse().unwrap());
    server.listener = server.endpoint.listen("[::]:80".parse().unwrap(), config()).unwrap();
    let stranger = Forger { flows: vec![Flow::new(other, local, 9)], ..Forger::new(false, 1) };
    server.play(stranger.syn(0, server.now));
    let mut client = Forger { flows: vec![Flow::new(remote, local, 5000)], ..Forger::new(true, 77) };
    server.answer(&mut client);
    assert_eq!(server.connections(), 1, "nothing is remembered");
    server.play(client.third_ack(0, server.now));
    let id = server.accept().unwrap();
    assert!(server.stats(id).mptcp);
}

/// The listener remembers nothing of the SYN: neither connection nor four-tuple nor token.
#[test]
fn a_cookie_takes_no_memory() {
    let mut server = Server::flooded(config());
    let before = server.endpoint.footprint();
    let timeout = server.endpoint.poll_timeout();
    for port in 1000..3000 {
        let client = Forger { flows: vec![flow(port)], ..Forger::new(true, 77) };
        assert_eq!(server.play(client.syn(0, server.now)).len(), 1);
    }
    assert_eq!(server.endpoint.footprint(), before);
    assert_eq!(server.endpoint.poll_timeout(), timeout);
}

/// A cookie is valid only from the address it was sent to, with the sequence number it was made for, and with the right
/// key.
#[test]
fn a_cookie_that_was_changed_is_none() {
    let mut server = Server::flooded(config());
    let mut client = client(Forger::new(true, 77));
    server.answer(&mut client);
    let ack = client.third_ack(0, server.now);
    let mut forged: Vec<Segment> =
        (3..32).map(|bit| Segment { ack: SeqNr(ack.ack.0 ^ 1 << bit), ..ack.clone() }).collect();
    forged.extend((0..32).map(|bit| Segment { seq: SeqNr(ack.seq.0 ^ 1 << bit), ..ack.clone() }));
    forged.push(Segment { src: SocketAddr::from(([10, 9, 0, 1], 5001)), ..ack.clone() });
    forged.push(Segment { src: SocketAddr::from(([10, 9, 0, 2], 5000)), ..ack.clone() });
    forged.push(Segment { dst: SocketAddr::from(([10, 0, 0, 2], 80)), ..ack.clone() });
    for segment in forged {
        let reset = (Flags::RST, segment.ack);
        let answers: Vec<_> = server.play(segment).iter().map(|answer| (answer.flags, answer.seq)).collect();
        assert_eq!(answers, [reset]);
        assert_eq!(server.connections(), 1);
    }
    server.play(Segment { flags: Flags::RST | Flags::ACK, ..ack.clone() });
    server.play(Segment { flags: Flags::SYN | Flags::ACK, ..ack.clone() });
    assert_eq!(server.connections(), 1);
    server.play(ack);
    assert!(server.accept().is_some());
}

/// Another endpoint's cookie, and an ACK to a listener that has sent none, are invalid.
#[test]
fn cookies_of_others_are_none() {
    let mut client = client(Forger::new(true, 77));
    let mut server = Server::flooded_with(config(), 1);
    let cookie = server.answer(&mut client);
    let ack = client.third_ack(0, server.now);
    let mut other = Server::flooded_with(config(), 2);
    assert_ne!(other.answer(&mut client.clone()).seq, cookie.seq);
    assert!(other.play(ack.clone())[0].flags.contains(Flags::RST));
    let mut same = Server::new(config(), 1, 1);
    assert!(same.play(ack.clone())[0].flags.contains(Flags::RST), "it had room for every SYN");
    let mut again = Server::flooded_with(config(), 1);
    assert_eq!(again.answer(&mut client.clone()), cookie, "a run is a function of the seed");
}

/// A cookie is valid for at least 64 s and at most 128 s, whatever the clock at its creation.
#[test]
fn a_cookie_grows_old() {
    for begun in 0..16 {
        let opens_after = |age: u64| {
            let mut server = Server::flooded(config());
            server.wait(Duration::from_secs(begun * 8));
            let mut client = client(Forger::new(true, 77));
            server.answer(&mut client);
            let ack = client.third_ack(0, server.now);
            // Other SYNs keep the listener looking for cookies.
            server.wait(Duration::from_secs(age - 1));
            server.answer(&mut Forger { flows: vec![flow(4999)], ..Forger::new(true, 77) });
            server.wait(Duration::from_secs(1));
            server.play(ack);
            server.accept().is_some()
        };
        assert!([1, 30, 64].into_iter().all(opens_after), "begun after {begun} * 8 s");
        assert!(![128, 200, 1000].into_iter().any(opens_after), "begun after {begun} * 8 s");
    }
}

/// Section 3.1: the third ACK is lost. Data with only a DSS must not end the handshake; data with both keys do.
#[test]
fn the_first_data_replace_a_lost_third_ack() {
    let mut server = Server::flooded(config());
    let mut client = client(Forger::new(true, 77));
    server.answer(&mut client);
    let dss_only = client.data(0, 500, server.now);
    assert!(server.play(dss_only.clone()).is_empty(), "neither a RST nor a connection");
    assert_eq!(server.connections(), 1);
    let mut data = client.third_ack(0, server.now);
    let Some(MptcpOption::Capable(both)) = data.options.mptcp.first_mut() else { unreachable!() };
    both.data = Some(wire::mptcp::DataLen { len: 500, checksum: None });
    data.payload = dss_only.payload;
    server.play(data);
    let id = server.accept().unwrap();
    let received = server.endpoint.recv(id, 5000, server.now);
    assert!(server.stats(id).mptcp && matches!(received, Ok(Received::Data(data)) if data.len() == 500));
}

/// Section 3.7: if the path strips options from the third ACK on, or the key is wrong, the connection is plain TCP.
#[test]
fn without_the_keys_it_is_plain_tcp() {
    let mut server = Server::flooded(config());
    let mut client = client(Forger::new(true, 77));
    server.answer(&mut client);
    let mut stripped = client.third_ack(0, server.now);
    stripped.options.mptcp.clear();
    server.play(stripped);
    let id = server.accept().unwrap();
    assert_eq!((server.stats(id).mptcp, server.stats(id).state), (false, "ESTABLISHED"));

    let mut server = Server::flooded(config());
    server.answer(&mut client);
    let before = server.endpoint.footprint().tokens;
    let mut wrong = client.third_ack(0, server.now);
    let Some(MptcpOption::Capable(both)) = wrong.options.mptcp.first_mut() else { unreachable!() };
    both.receiver_key = both.receiver_key.map(|Key(key)| Key(key ^ 1 << 40));
    server.play(wrong);
    let id = server.accept().unwrap();
    let stats = server.stats(id);
    assert_eq!((stats.mptcp, stats.fell_back, stats.state), (false, true, "ESTABLISHED"));
    assert_eq!(server.endpoint.footprint().tokens, before);
}

/// Each four-tuple has its own key, so that no two clients share a token.
#[test]
fn keys_of_cookies_differ() {
    let mut server = Server::flooded(config());
    let keys: std::collections::BTreeSet<_> = (1000..1500)
        .map(|port| {
            let client = Forger { flows: vec![flow(port)], ..Forger::new(true, 77) };
            let answers = server.play(client.syn(0, server.now));
            capable(&answers[0]).unwrap().sender_key.unwrap().0
        })
        .collect();
    assert_eq!(keys.len(), 500);
    // Octets of a digest: each bit is set in about half of the keys.
    for bit in 0..64 {
        let set = keys.iter().filter(|key| *key & 1 << bit != 0).count();
        assert!((190..310).contains(&set), "bit {bit} is set in {set} of 500 keys");
    }
}

/// RFC 8684 section 3.1: a key that follows from the SYN cannot be redrawn. If its token is taken (here by a connection
/// that lives on in another subflow while its first four-tuple is opened again), the SYN/ACK offers no MPTCP.
#[test]
fn a_cookie_whose_token_is_taken_offers_no_mptcp() {
    let mut server = Server::flooded(config());
    let mut first = client(Forger::new(true, 77));
    let offered = capable(&server.answer(&mut first));
    assert!(offered.is_some());
    server.play(first.third_ack(0, server.now));
    let id = server.accept().unwrap();
    first.flows.push(flow(5001));
    first.learn(&server.play(first.join_syn(1, server.now))[0]);
    server.play(first.join_ack(1, server.now));
    server.play(Segment { flags: Flags::RST, ..first.ack(0, server.now) });
    assert_eq!(server.stats(id).subflows.iter().filter(|subflow| subflow.closed_at.is_none()).count(), 1);

    let tcp_only = client(Forger { timestamps: false, ..Forger::new(true, 79) });
    let answer = server.answer(&mut tcp_only.clone());
    assert_eq!((capable(&answer), agreed(&answer)), (None, (None, false, false)), "nothing would bring them back");
    let mut second = client(Forger::new(true, 78));
    assert_eq!(capable(&server.answer(&mut second)), None);
    second.mptcp = false;
    server.play(second.third_ack(0, server.now));
    let plain = server.accept().expect("it is served by plain TCP");
    let stats = server.stats(plain);
    assert_eq!((stats.mptcp, stats.state), (false, "ESTABLISHED"));
    assert!(server.stats(id).mptcp);
}

/// From the SYN/ACK on, timestamps never run backwards (RFC 7323 section 4.3), and the cookie's is not in the future.
#[test]
fn the_clock_of_a_cookie_is_no_later_than_it_is() {
    for ms in 0..200 {
        let mut server = Server::flooded(config());
        server.wait(Duration::from_millis(ms));
        let mut client = client(Forger { window_scale: Some((ms % 15) as u8), ..Forger::new(true, 77) });
        let stamp = server.answer(&mut client).options.timestamps.unwrap().value;
        let answers = server.play(client.third_ack(0, server.now));
        let next = answers[0].options.timestamps.unwrap().value;
        assert!(next.wrapping_sub(stamp) < 64, "{stamp}, then {next}");
    }
}

/// Connections that wait for `accept` have a separate limit: beyond the backlog no SYN is answered, and beyond twice as
/// many no cookie either. The client's segments are still valid once there is room.
#[test]
fn a_full_queue_is_silent() {
    let mut server = Server::flooded(config());
    let clients = [5000, 5001, 5002].map(|port| {
        let mut client = Forger { flows: vec![flow(port)], ..Forger::new(true, 77) };
        server.answer(&mut client);
        client
    });
    let thirds = clients.map(|client| client.third_ack(0, server.now));
    let [first, second, third] = thirds.map(|ack| (server.play(ack.clone()).len(), ack));
    assert_eq!((first.0, second.0, third.0), (1, 1, 0));
    let late = Forger { flows: vec![flow(5003)], ..Forger::new(true, 77) };
    assert!(server.play(late.syn(0, server.now)).is_empty());
    assert!(server.accept().is_some());
    assert!(!server.play(third.1)[0].flags.contains(Flags::RST));
    assert!(server.accept().is_some() && server.accept().is_some() && server.accept().is_none());
}

/// After the flood, when its handshakes have timed out (three minutes), SYNs are remembered again: a lost SYN/ACK is
/// repeated without the client's help.
#[test]
fn after_the_flood_handshakes_are_remembered_again() {
    let mut server = Server::flooded(config());
    server.wait(Duration::from_secs(300));
    assert_eq!(server.connections(), 0);
    let mut client = client(Forger::new(true, 77));
    let first = server.answer(&mut client);
    assert_eq!(server.connections(), 1);
    let repeated = server.wait(Duration::from_secs(1));
    assert_eq!(
        repeated.iter().map(|segment| (segment.flags, segment.seq)).collect::<Vec<_>>(),
        [(first.flags, first.seq)]
    );
}

/// RFC 9293 section 3.5: the third segment may carry data and the end of the stream.
#[test]
fn the_third_segment_may_end_the_stream() {
    let mut server = Server::flooded(config());
    let mut client = client(Forger::new(false, 77));
    server.answer(&mut client);
    let mut last = client.data(0, 700, server.now);
    last.flags |= Flags::FIN;
    server.play(last);
    let id = server.accept().unwrap();
    assert_eq!(server.stats(id).state, "CLOSE-WAIT");
    assert!(matches!(server.endpoint.recv(id, 5000, server.now), Ok(Received::Data(data)) if data.len() == 700));
}

/// Segments of no connection are answered only as long as the answers leave: at most 1024 wait. Answers that carry a
/// reason belong to no other.
#[test]
fn replies_to_strangers_are_bounded() {
    let mut server = Server::flooded(config());
    let mut client = client(Forger::new(true, 77));
    server.answer(&mut client);
    for port in 1000..4000 {
        let stranger = Forger { flows: vec![flow(port)], peer_key: Some(Key(9)), ..Forger::new(true, 77) };
        let is_join = port >= 2000;
        let syn = if is_join { stranger.join_syn(0, server.now) } else { stranger.syn(0, server.now) };
        server.endpoint.handle_segment(syn, server.now);
    }
    let replies = server.flush();
    assert_eq!(replies.len(), 1024);
    let reset = |segment: &&Segment| segment.flags.contains(Flags::RST);
    assert_eq!(replies.iter().filter(reset).count(), 24);
    assert!(replies.iter().all(|segment| segment.options.mptcp.len() == 1));
}
