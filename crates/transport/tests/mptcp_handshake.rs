//! MP_CAPABLE (RFC 8684 section 3.1): every form of the handshake, and its possible accidents.

use std::net::SocketAddr;

use transport::error::{CloseReason, ConnectError, Violation};
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, Received};
use units::{Duration, Instant, SeqNr};
use wire::mptcp::{CapableFlags, DataSeq, Dss, Key, MpCapable, MptcpOption};
use wire::{Flags, Segment};

use crate::pair::{
    Pair, Side, assert_pattern, capable, change, client_address, dss, is_pure_ack, is_rst, is_syn, is_syn_ack,
    lose_first, lose_first_n, pattern, server_address, strip,
};
use crate::script::{self, Script};

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

fn pair() -> Pair {
    let mut pair = Pair::new(&[10], config(), 1);
    pair.log = Some(Vec::new());
    pair
}

fn speaks_mptcp(pair: &Pair, client: ConnectionId, server: ConnectionId) -> (bool, bool) {
    (pair.client.stats(client).unwrap().mptcp, pair.server.stats(server).unwrap().mptcp)
}

fn has_capable(segment: &Segment) -> bool {
    capable(segment).is_some()
}

/// Section 3.1: SYN without key, SYN/ACK with the listener's, third ACK with both. The listener then shows with a DSS
/// that it has them.
#[test]
fn keys_are_exchanged_in_three_segments() {
    for mut pair in [pair(), Pair::v6(&[10], config(), 1)] {
        pair.log = Some(Vec::new());
        let (client, server) = pair.establish(config());
        let log = pair.logged(|_, _| true);
        let forms: Vec<_> = log[..3].iter().map(|segment| capable(segment).unwrap()).collect();
        let listener_key = forms[1].sender_key;
        assert_eq!((forms[0].sender_key, forms[0].receiver_key, forms[1].receiver_key), (None, None, None));
        assert_eq!(forms[2].receiver_key, listener_key);
        assert!(listener_key.is_some() && forms[2].sender_key.is_some() && forms[2].sender_key != listener_key);
        assert!(forms.iter().all(|form| form.version == 1 && form.flags == CapableFlags::HMAC_SHA256));
        assert!(is_pure_ack(log[3]) && dss(log[3]).is_some(), "the fourth segment confirms");
        assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
        let (local, remote) = (pair.client.stats(client).unwrap(), pair.server.stats(server).unwrap());
        assert_eq!((local.local_token, local.remote_token), (remote.remote_token, remote.local_token));
        pair.exchange_and_close(client, server);
    }
}

/// Section 3.1: the third ACK is lost; the first data carry both keys and their mapping.
#[test]
fn data_with_mp_capable_replace_a_lost_third_ack() {
    let mut pair = pair();
    pair.interfere = lose_first(|side, segment| side == Side::Client && is_pure_ack(segment));
    let client = pair.connect(config());
    pair.client.send(client, pattern(0, 5000), pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    let server = pair.server.accept(pair.listener).unwrap();
    let first = pair.logged(|side, segment| side == Side::Client && !segment.payload.is_empty());
    let first_len = first[0].payload.len();
    assert_eq!(capable(first[0]).unwrap().data.unwrap().len as usize, first_len);
    assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
    let received = pair.server.recv(server, usize::MAX, pair.now).unwrap();
    assert_eq!(received, Received::Data(pattern(0, 5000)));
    assert_eq!(pair.server.stats(server).unwrap().duplicate_bytes, 0);
}

/// Section 3.1: third ACK and first data are lost. Later data have only a DSS and must not end the handshake.
#[test]
fn data_that_overtake_the_keys_wait() {
    for lost in 1..=3 {
        let mut pair = pair();
        pair.interfere =
            lose_first_n(lost, |side, segment| side == Side::Client && has_capable(segment) && !is_syn(segment));
        let client = pair.connect(config());
        pair.client.send(client, pattern(0, 12_000), pair.now).unwrap();
        pair.run_for(Duration::from_secs(5));
        let server = pair.server.accept(pair.listener).unwrap();
        assert_eq!(speaks_mptcp(&pair, client, server), (true, true), "{lost} lost");
        assert_eq!(pair.server.recv(server, usize::MAX, pair.now).unwrap(), Received::Data(pattern(0, 12_000)));
        assert_pattern(&pair.transfer(Side::Server, server, client, 100_000), 100_000);
    }
}

/// Section 3.7: the third ACK is lost, and the peer does not repeat its keys, as Linux 6.18 does once its application
/// has ended the stream. Two SYN/ACKs later the connection is plain TCP.
#[test]
fn keys_that_do_not_come_again_are_given_up() {
    let mut pair = pair();
    let mut is_lost = false;
    pair.interfere = Some(Box::new(move |side, mut segment, _| {
        if side == Side::Server || is_syn(&segment) || !has_capable(&segment) {
            return Some(segment);
        }
        if !std::mem::replace(&mut is_lost, true) {
            return None;
        }
        segment.options.mptcp.clear();
        let dss = Dss { data_ack: Some(DataSeq::Short(1)), ..Dss::default() };
        segment.options.mptcp.push(MptcpOption::Dss(dss));
        Some(segment)
    }));
    let client = pair.connect(config());
    pair.client.send(client, pattern(0, 12_000), pair.now).unwrap();
    pair.run_for(Duration::from_millis(2900));
    assert_eq!(pair.server.accept(pair.listener), None, "the keys may still come");
    pair.run_for(Duration::from_secs(3));
    let server = pair.server.accept(pair.listener).expect("the connection goes on without MPTCP");
    assert_eq!(pair.server.recv(server, usize::MAX, pair.now).unwrap(), Received::Data(pattern(0, 12_000)));
    assert_eq!(speaks_mptcp(&pair, client, server), (false, false));
    assert_pattern(&pair.transfer(Side::Server, server, client, 100_000), 100_000);
}

/// The same, but the peer continues with MPTCP and sends octets again behind later ones, as Linux does on the same
/// subflow. In the subflow's order they would be in the stream twice.
#[test]
fn a_peer_that_goes_on_with_mptcp_is_not_taken_at_its_order() {
    let (first, again) = ("A 1+1000 ack 1 map 1", "A 1001+1000 ack 1 map 1");
    for (order, delivered) in [([first, again], 1000), ([again, first], 0)] {
        let mut script = Script::listen(script::mptcp_config());
        script.inject("S 0 mss 1000 sackok mpc");
        script.expect("SA 0 ack 1 mpc");
        script.expect_at(1000, "SA 0 ack 1 mpc");
        script.expect_at(3000, "SA 0 ack 1 mpc");
        order.iter().for_each(|segment| script.inject(segment));
        assert!(script.drain_segments().last().is_some_and(is_rst), "{order:?}");
        let bytes = match script.endpoint.recv(script.id(), usize::MAX, script.now) {
            Ok(Received::Data(data)) => data.len(),
            _ => 0,
        };
        assert_eq!(bytes, delivered);
        let reason = CloseReason::Violation(Violation::MappingMismatch);
        assert_eq!(script.closed(), Some(reason));
    }
}

/// The first data came without a mapping, so the subflow's order counts. Then they come again with one, before any
/// other.
#[test]
fn the_first_mapping_after_a_fallback_is_compared_with_the_beginning() {
    for (dsn, is_taken) in [(1, false), (502, true)] {
        let mut script = Script::listen(script::mptcp_config());
        script.inject("S 0 mss 1000 sackok mpc");
        script.expect("SA 0 ack 1 mpc");
        script.inject("A 1 ack 1 mpc");
        script.inject("A 1+501 ack 1");
        script.inject(&format!("A 502+501 ack 1 map {dsn}"));
        assert_eq!(script.drain_segments().last().is_some_and(is_rst), !is_taken, "{dsn}");
        let mut bytes = 0;
        while let Ok(Received::Data(data)) = script.endpoint.recv(script.id(), usize::MAX, script.now) {
            bytes += data.len();
        }
        assert_eq!(bytes, if is_taken { 1002 } else { 501 }, "{dsn}");
    }
}

/// Without an agreement on MPTCP, a DSS is ignored.
#[test]
fn mappings_mean_nothing_to_plain_tcp() {
    let mut script = Script::ready();
    script.known.key = Some(Key(1));
    script.inject("A 1+1000 ack 1 map 1");
    script.inject("A 1001+1000 ack 1 map 1");
    assert!(!script.drain_segments().iter().any(is_rst));
    assert_eq!(script.recv(usize::MAX), Some(2000));
}

/// ACK and data both arrive before the listener has sent anything: its SYN/ACK has announced a window for them.
#[test]
fn data_in_the_same_breath_as_the_third_ack_are_taken() {
    let mut server = Endpoint::with_seed(EndpointConfig::default(), 1);
    let mut client = Endpoint::with_seed(EndpointConfig::default(), 2);
    let listener = server.listen(server_address(0), config()).unwrap();
    let now = Instant::ZERO;
    let config = ConnectionConfig { nagle: false, ..config() };
    let id = client.connect(client_address(0), server_address(0), config, now).unwrap();
    client.send(id, pattern(0, 4000), now).unwrap();
    server.handle_segment(client.poll_transmit(now).unwrap(), now);
    client.handle_segment(server.poll_transmit(now).unwrap(), now);
    while let Some(segment) = client.poll_transmit(now) {
        server.handle_segment(segment, now);
    }
    let accepted = server.accept(listener).unwrap();
    assert_eq!(server.recv(accepted, usize::MAX, now).unwrap(), Received::Data(pattern(0, 4000)));
}

/// Section 3.1: a lost SYN or SYN/ACK is repeated with its option, and so is the third ACK when the SYN/ACK comes
/// again.
#[test]
fn lost_handshake_segments_are_repeated() {
    let cases: [fn(Side, &Segment) -> bool; 3] = [
        |_, segment| is_syn(segment),
        |_, segment| is_syn_ack(segment),
        |side, segment| side == Side::Client && is_pure_ack(segment),
    ];
    for is_it in cases {
        let mut pair = pair();
        pair.interfere = lose_first(is_it);
        let client = pair.connect(config());
        pair.run_for(Duration::from_secs(5));
        let server = pair.server.accept(pair.listener).unwrap();
        assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
        pair.exchange_and_close(client, server);
    }
}

/// Section 3.1: plain TCP answers any offer that is not version 1 with HMAC-SHA256 and B unset; our version answers a
/// later one.
#[test]
fn offers_are_judged_by_version_and_flags() {
    let offer = |version, flags, sender_key| MpCapable { version, flags, sender_key, receiver_key: None, data: None };
    let hmac = CapableFlags::HMAC_SHA256;
    let cases = [
        (offer(1, hmac, None), true),
        (offer(2, hmac, None), true),
        (offer(0, hmac, Some(Key(7))), false),
        (offer(1, hmac, Some(Key(7))), false),
        (offer(1, CapableFlags::default(), None), false),
        (offer(1, hmac.union(CapableFlags::EXTENSIBILITY), None), false),
    ];
    for (option, agreed) in cases {
        let mut server = Endpoint::with_seed(EndpointConfig::default(), 1);
        server.listen(server_address(0), config()).unwrap();
        let mut syn = Segment::new(SocketAddr::from(([10, 0, 0, 1], 4000)), server_address(0));
        syn.flags = Flags::SYN;
        syn.options.mptcp.push(MptcpOption::Capable(option));
        server.handle_segment(syn, Instant::ZERO);
        let answer = server.poll_transmit(Instant::ZERO).unwrap();
        assert!(is_syn_ack(&answer));
        assert_eq!(capable(&answer).map(|capable| capable.version), agreed.then_some(1), "{option:?}");
    }
}

/// Section 3.1, flag A: if either side wants checksums, both use them.
#[test]
fn checksums_are_used_if_either_side_wants_them() {
    for (client_wants, server_wants) in [(false, false), (true, false), (false, true), (true, true)] {
        let with = |checksum| ConnectionConfig { checksum, ..config() };
        let mut pair = Pair::new(&[10], with(server_wants), 1);
        pair.log = Some(Vec::new());
        let (client, server) = pair.establish(with(client_wants));
        pair.exchange_and_close(client, server);
        let with_data = pair.logged(|_, segment| !segment.payload.is_empty());
        let checksums = with_data.iter().map(|segment| match (dss(segment), capable(segment)) {
            (Some(dss), _) => dss.mapping.unwrap().checksum.is_some(),
            (None, capable) => capable.unwrap().data.unwrap().checksum.is_some(),
        });
        let expected = client_wants || server_wants;
        assert!(checksums.into_iter().all(|has| has == expected), "{client_wants} {server_wants}");
    }
}

/// Section 3.1, flag C: no joins to the address of the first subflow.
#[test]
fn an_address_that_forbids_joins_gets_none() {
    let mesh = ConnectionConfig::default();
    for forbids in [false, true] {
        let mut pair = Pair::new(&[10, 10], mesh.clone(), 1);
        pair.interfere = change(move |side, segment| {
            for option in &mut segment.options.mptcp {
                match option {
                    MptcpOption::Capable(capable) if side == Side::Server && forbids => {
                        capable.flags = capable.flags.union(CapableFlags::NO_JOIN_TO_THIS_ADDRESS);
                    }
                    _ => {}
                }
            }
            // The peer's other address remains unknown.
            segment.options.mptcp.retain(|option| !matches!(option, MptcpOption::AddAddr(_)));
        });
        let (client, _) = pair.establish(mesh.clone());
        assert_eq!(pair.client.stats(client).unwrap().subflows.len(), if forbids { 1 } else { 2 });
    }
}

/// The same by hand: whoever asks for such a join is told why there is none. An announcement of that address changes
/// nothing.
#[test]
fn joins_by_hand_to_an_address_that_forbids_them_are_refused() {
    for forbidding in [Side::Client, Side::Server] {
        let mut pair = Pair::new(&[10, 10], config(), 1);
        pair.interfere = change(move |side, segment| {
            for option in &mut segment.options.mptcp {
                match option {
                    // The third ACK repeats the flags of the SYN.
                    MptcpOption::Capable(capable) if side == forbidding => {
                        capable.flags = capable.flags.union(CapableFlags::NO_JOIN_TO_THIS_ADDRESS);
                    }
                    _ => {}
                }
            }
        });
        let (client, server) = pair.establish(config());
        let port = pair.client.stats(client).unwrap().subflows[0].local.port();
        let at_client = |path| SocketAddr::new(client_address(path).ip(), port);
        let at_server = |path| SocketAddr::new(server_address(path).ip(), 0);
        let (joins, [own, id], local, [remote, other]) = match forbidding {
            Side::Server => (Side::Client, [server, client], client_address(1), [server_address(0), server_address(1)]),
            Side::Client => (Side::Server, [client, server], at_server(1), [at_client(0), at_client(1)]),
        };
        let now = pair.now;
        pair.endpoint(forbidding).announce_address(own, remote.ip(), Some(remote.port()), now).unwrap();
        pair.run_for(Duration::from_secs(1));
        let now = pair.now;
        let refused = pair.endpoint(joins).add_subflow(id, local, remote, false, now);
        assert_eq!(refused, Err(ConnectError::JoinsForbidden(remote)));
        assert!(pair.endpoint(joins).add_subflow(id, local, other, false, now).is_ok());
        let events = if joins == Side::Client { &pair.client_events } else { &pair.server_events };
        assert!(!events.iter().any(|event| matches!(event, Event::AddressAnnounced { .. })), "{events:?}");
    }
}

/// Section 3.1: a third ACK that echoes another key proves nothing. The listener continues as TCP, and the initiator
/// notices that its data are acknowledged without a DATA_ACK (section 3.7).
#[test]
fn a_wrong_echoed_key_falls_back() {
    let mut pair = pair();
    pair.interfere = change(|side, segment| {
        for option in &mut segment.options.mptcp {
            match option {
                MptcpOption::Capable(capable) if side == Side::Client && capable.receiver_key.is_some() => {
                    capable.receiver_key = Some(Key(1));
                }
                _ => {}
            }
        }
    });
    let (client, server) = pair.establish(config());
    pair.exchange_and_close(client, server);
    assert!(pair.client_events.contains(&Event::FellBack(client)));
    assert!(
        !pair
            .server_events
            .iter()
            .any(|event| matches!(event, Event::SubflowClosed { reason, .. } if *reason != CloseReason::Finished))
    );
}

/// A path drops SYNs with MP_CAPABLE: after two repetitions the SYN omits it.
#[test]
fn syns_that_never_arrive_are_tried_without_the_option() {
    let mut pair = pair();
    pair.interfere =
        Some(Box::new(|_, segment, _| if is_syn(&segment) && has_capable(&segment) { None } else { Some(segment) }));
    let client = pair.connect(config());
    pair.run_for(Duration::from_secs(20));
    let server = pair.server.accept(pair.listener).expect("a TCP connection");
    assert_eq!(pair.logged(|_, segment| is_syn(segment) && has_capable(segment)).len(), 3);
    assert_eq!(pair.client_events[0], Event::Connected { connection: client, mptcp: false });
    pair.exchange_and_close(client, server);
}

/// RFC 9293 section 3.5: two SYNs cross. MP_CAPABLE has no form for that, so both sides use TCP.
#[test]
fn crossing_syns_make_a_plain_tcp() {
    let addresses = [SocketAddr::from(([10, 0, 0, 1], 1000)), SocketAddr::from(([10, 0, 0, 2], 2000))];
    let mut a = Endpoint::with_seed(EndpointConfig::default(), 1);
    let mut b = Endpoint::with_seed(EndpointConfig::default(), 2);
    let mut now = Instant::ZERO;
    let from_a = a.connect(addresses[0], addresses[1], config(), now).unwrap();
    let from_b = b.connect(addresses[1], addresses[0], config(), now).unwrap();
    a.send(from_a, pattern(0, 3000), now).unwrap();
    for _ in 0..20 {
        let to_b: Vec<_> = std::iter::from_fn(|| a.poll_transmit(now)).collect();
        let to_a: Vec<_> = std::iter::from_fn(|| b.poll_transmit(now)).collect();
        now += Duration::from_millis(50);
        to_b.into_iter().for_each(|segment| b.handle_segment(segment, now));
        to_a.into_iter().for_each(|segment| a.handle_segment(segment, now));
        a.handle_timeout(now);
        b.handle_timeout(now);
    }
    let (stats_a, stats_b) = (a.stats(from_a).unwrap(), b.stats(from_b).unwrap());
    assert_eq!((stats_a.state, stats_b.state), ("ESTABLISHED", "ESTABLISHED"));
    assert!(!stats_a.mptcp && !stats_b.mptcp);
    assert_eq!(b.recv(from_b, usize::MAX, now).unwrap(), Received::Data(pattern(0, 3000)));
}

/// Section 3.3.3: a connection ends before it carried any data; its DATA_FIN is the first DSS.
#[test]
fn a_connection_without_data_ends_at_once() {
    for lost in 0..6 {
        let mut pair = pair();
        let mut seen = 0;
        pair.interfere = Some(Box::new(move |_, segment, _| {
            seen += 1;
            (seen != lost + 3).then_some(segment)
        }));
        let client = pair.connect(config());
        pair.client.shutdown(client, pair.now).unwrap();
        pair.run_for(Duration::from_secs(20));
        let mut server = None;
        while let Some(id) = pair.server.accept(pair.listener) {
            server = Some(id);
        }
        let server = server.expect("accepted");
        pair.server.close(server, pair.now).unwrap();
        pair.run_for(Duration::from_secs(20));
        let reason = pair.client_events.iter().rev().find_map(|event| match event {
            Event::Closed { connection, reason } if *connection == client => Some(*reason),
            _ => None,
        });
        assert_eq!(reason, Some(CloseReason::Finished), "segment {lost} after the SYN/ACK lost");
    }
}

/// A RST in answer to the SYN refuses the connection; without an answer it times out.
#[test]
fn refused_and_unanswered_connections_end() {
    let mut pair = pair();
    let refused =
        pair.client.connect(client_address(0), SocketAddr::from(([10, 0, 1, 1], 81)), config(), pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client_events.contains(&Event::Closed { connection: refused, reason: CloseReason::Refused }));
    pair.dark[0] = true;
    let unanswered = pair.connect(config());
    pair.run_for(Duration::from_secs(200));
    assert!(pair.client_events.contains(&Event::Closed { connection: unanswered, reason: CloseReason::TimedOut }));
    pair.client.release(refused);
    pair.client.release(unanswered);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client.footprint().connections, 0);
}

/// The half-open listener believes a RST whatever options it carries.
#[test]
fn a_reset_ends_a_handshake_that_waits_for_keys() {
    let mut pair = pair();
    pair.interfere = Some(Box::new(|side, segment, _| (side == Side::Server || is_syn(&segment)).then_some(segment)));
    pair.connect(config());
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.server.footprint().connections, 1);
    let syn = pair.logged(|_, segment| is_syn(segment))[0].clone();
    let mut rst = strip(syn);
    rst.flags = Flags::RST;
    rst.seq += 1;
    rst.options.mptcp.push(MptcpOption::TcpRst(wire::mptcp::MpTcpRst {
        transient: false,
        reason: wire::mptcp::ResetReason::Unspecified,
    }));
    assert!(is_rst(&rst) && rst.ack == SeqNr(0));
    pair.forge(Side::Client, rst);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.server.footprint(), transport::Footprint { connections: 0, four_tuples: 0, tokens: 0 });
}
