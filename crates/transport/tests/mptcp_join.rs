//! MP_JOIN (RFC 8684 section 3.2): subflows opened by either side, and everything that can go wrong with them.

use std::net::SocketAddr;

use transport::error::{CloseReason, ConnectError, ListenError, Violation};
use transport::{ConnectionConfig, ConnectionId, Event, SettingsChange, SubflowId};
use units::{Dsn, Duration};
use wire::mptcp::{AddressId, DataSeq, Dss, Mapping, MpJoin, MpTcpRst, MptcpOption, ResetReason, Token};
use wire::{Flags, Segment};

use crate::pair::{
    Pair, Side, change, client_address, client_address6, has_option, is_pure_ack, is_rst, is_syn, is_syn_ack, join,
    lose_first_n, path_of, pattern, server_address, server_address6,
};

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

fn established() -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(&[10, 20], config(), 1);
    let (client, server) = pair.establish(config());
    pair.log = Some(Vec::new());
    (pair, client, server)
}

/// Opens a subflow on the second path.
fn open(pair: &mut Pair, from: Side, ids: (ConnectionId, ConnectionId)) -> SubflowId {
    open_on(1, pair, from, ids)
}

fn open_on(path: u8, pair: &mut Pair, from: Side, ids: (ConnectionId, ConnectionId)) -> SubflowId {
    let now = pair.now;
    match from {
        Side::Client => pair.client.add_subflow(ids.0, client_address(path), server_address(0), false, now),
        Side::Server => {
            let client = SocketAddr::new(client_address(path).ip(), 5000);
            pair.server.add_subflow(ids.1, SocketAddr::new(server_address(path).ip(), 0), client, false, now)
        }
    }
    .unwrap()
}

fn subflows(pair: &Pair, ids: (ConnectionId, ConnectionId)) -> (usize, usize) {
    let established = |stats: transport::ConnectionStats| {
        stats.subflows.iter().filter(|subflow| subflow.state == "ESTABLISHED").count()
    };
    (established(pair.client.stats(ids.0).unwrap()), established(pair.server.stats(ids.1).unwrap()))
}

fn closed_with(events: &[Event], id: SubflowId) -> Option<CloseReason> {
    events.iter().find_map(|event| match event {
        Event::SubflowClosed { subflow, reason, .. } if *subflow == id => Some(*reason),
        _ => None,
    })
}

/// Section 3.2: four segments, from either side, also to an address without a listener.
#[test]
fn either_side_joins() {
    for from in [Side::Client, Side::Server] {
        let (mut pair, client, server) = established();
        open(&mut pair, from, (client, server));
        pair.run_for(Duration::from_secs(1));
        assert_eq!(subflows(&pair, (client, server)), (2, 2));
        let log = pair.logged(|_, _| true);
        assert!(matches!(join(log[0]), Some(MpJoin::Syn { address_id: AddressId(1), .. })));
        assert!(matches!(join(log[1]), Some(MpJoin::SynAck { .. })));
        assert!(matches!(join(log[2]), Some(MpJoin::Ack { .. })));
        assert!(is_pure_ack(log[3]) && join(log[3]).is_none());
        assert_eq!(log.len(), 4);
        pair.exchange_and_close(client, server);
    }
}

#[test]
fn either_side_joins_over_ipv6() {
    let mut pair = Pair::v6(&[10, 20], config(), 1);
    let (client, server) = pair.establish(config());
    pair.client.add_subflow(client, client_address6(1), server_address6(1), false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(subflows(&pair, (client, server)), (2, 2));
    pair.exchange_and_close(client, server);
}

/// Section 3.2: if any of the four segments is lost, once or several times, the join still succeeds. The initiator
/// sends no data before it knows of the success.
#[test]
fn every_segment_of_a_join_may_be_lost() {
    let is_join_ack = |segment: &Segment| matches!(join(segment), Some(MpJoin::Ack { .. }));
    let cases: [fn(Side, &Segment) -> bool; 4] = [
        |_, segment| is_syn(segment),
        |_, segment| is_syn_ack(segment),
        |_, segment| matches!(join(segment), Some(MpJoin::Ack { .. })),
        |side, segment| path_of(side, segment) == 1 && side == Side::Server && is_pure_ack(segment),
    ];
    for (case, is_it) in cases.into_iter().enumerate() {
        for times in 1..=3 {
            for from in [Side::Client, Side::Server] {
                if case == 3 && from == Side::Server {
                    continue;
                }
                let (mut pair, client, server) = established();
                pair.interfere = lose_first_n(times, is_it);
                open(&mut pair, from, (client, server));
                pair.run_for(Duration::from_secs(20));
                assert_eq!(subflows(&pair, (client, server)), (2, 2), "segment {case} lost {times} times by {from:?}");
                assert!(pair.logged(|_, segment| is_join_ack(segment)).len() <= 1 + times as usize);
                pair.exchange_and_close(client, server);
            }
        }
    }
}

/// Section 3.2: a wrong or missing HMAC, in the SYN/ACK or in the third ACK, causes a RST that states the reason.
#[test]
fn joins_without_proof_are_reset() {
    let spoil: [fn(&mut MpJoin); 2] = [
        |join| {
            if let MpJoin::SynAck { hmac, .. } = join {
                *hmac ^= 1;
            }
        },
        |join| {
            if let MpJoin::Ack { hmac } = join {
                hmac[19] ^= 1;
            }
        },
    ];
    let violation = CloseReason::Violation(Violation::JoinHmac);
    // The side with the wrong proof, then the other. The owner of the other side gets no event for the peer's failed
    // attempts.
    for (how, told) in spoil.into_iter().zip([(Some(violation), None), (Some(CloseReason::Reset), None)]) {
        let (mut pair, client, server) = established();
        pair.interfere = change(move |_, segment| {
            for option in &mut segment.options.mptcp {
                if let MptcpOption::Join(join) = option {
                    how(join);
                }
            }
        });
        let id = open(&mut pair, Side::Client, (client, server));
        pair.run_for(Duration::from_secs(1));
        assert_eq!(subflows(&pair, (client, server)), (1, 1));
        let reasons = (closed_with(&pair.client_events, id), closed_with(&pair.server_events, SubflowId(1)));
        assert_eq!(reasons, told);
        let why = MptcpOption::TcpRst(MpTcpRst { transient: false, reason: ResetReason::MptcpSpecific });
        assert_eq!(pair.logged(|_, segment| is_rst(segment) && segment.options.mptcp.contains(&why)).len(), 1);
        pair.exchange_and_close(client, server);
    }
}

/// Section 3.2: options that a middlebox removes from any handshake segment of a join end only the join.
#[test]
fn joins_whose_options_vanish_are_reset() {
    let cases: [fn(&Segment) -> bool; 3] =
        [is_syn, is_syn_ack, |segment| matches!(join(segment), Some(MpJoin::Ack { .. }))];
    for is_it in cases {
        let (mut pair, client, server) = established();
        pair.interfere = change(move |_, segment| {
            if is_it(segment) {
                segment.options.mptcp.clear();
            }
        });
        open(&mut pair, Side::Client, (client, server));
        pair.run_for(Duration::from_secs(2));
        assert_eq!(subflows(&pair, (client, server)), (1, 1));
        pair.interfere = None;
        // A stripped SYN opens another connection.
        while let Some(other) = pair.server.accept(pair.listener) {
            pair.server.abort(other, pair.now).unwrap();
            pair.server.release(other);
        }
        pair.exchange_and_close(client, server);
    }
}

/// Nothing in a segment with a wrong HMAC may take effect: anyone who sees the token in a SYN could send it.
#[test]
fn an_unproven_third_ack_says_nothing() {
    let (mut pair, client, server) = established();
    pair.interfere = change(|_, segment| {
        let Some(MpJoin::Ack { .. }) = join(segment) else { return };
        let mapping = Mapping { dsn: DataSeq::Short(0), ssn: 0, len: 1, checksum: None };
        segment.options.mptcp.clear();
        segment.options.mptcp.push(MptcpOption::Join(MpJoin::Ack { hmac: [7; 20] }));
        segment.options.mptcp.push(MptcpOption::Dss(Dss {
            data_ack: Some(DataSeq::Long(Dsn(0).0)),
            mapping: Some(mapping),
            data_fin: true,
        }));
        segment.options.mptcp.push(MptcpOption::RemoveAddr(wire::mptcp::RemoveAddr {
            address_ids: [AddressId(0)].into_iter().collect(),
        }));
    });
    open(&mut pair, Side::Client, (client, server));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server.stats(server).unwrap().state, "ESTABLISHED");
    assert_eq!(subflows(&pair, (client, server)), (1, 1));
    pair.interfere = None;
    pair.exchange_and_close(client, server);
}

fn forged_syn(token: Token) -> Segment {
    let mut syn = Segment::new(SocketAddr::from(([10, 0, 0, 2], 999)), server_address(1));
    syn.flags = Flags::SYN;
    let option = MpJoin::Syn { backup: false, address_id: AddressId(9), token, nonce: 1 };
    syn.options.mptcp.push(MptcpOption::Join(option));
    syn
}

fn refusal(pair: &Pair) -> Option<ResetReason> {
    let resets = pair.logged(|side, segment| side == Side::Server && is_rst(segment));
    resets.iter().flat_map(|reset| &reset.options.mptcp).find_map(|option| match option {
        MptcpOption::TcpRst(reset) => Some(reset.reason),
        _ => None,
    })
}

/// Section 3.2: a token that names no connection is refused.
#[test]
fn an_unknown_token_is_refused() {
    let (mut pair, _, server) = established();
    let token = Token(pair.server.stats(server).unwrap().local_token.unwrap() ^ 1);
    pair.forge(Side::Client, forged_syn(token));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(refusal(&pair), Some(ResetReason::MptcpSpecific));
}

/// A token becomes invalid with its connection, and with fallback.
#[test]
fn the_token_of_a_closed_connection_is_refused() {
    let (mut pair, client, server) = established();
    let token = Token(pair.server.stats(server).unwrap().local_token.unwrap());
    pair.client.close(client, pair.now).unwrap();
    pair.server.close(server, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    pair.forge(Side::Client, forged_syn(token));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(refusal(&pair), Some(ResetReason::MptcpSpecific));
}

/// The limit on subflows holds on both sides. A subflow that has ended makes room, though it lingers in TIME-WAIT.
#[test]
fn limits_are_kept_and_places_come_back() {
    let limited = |subflows_max| ConnectionConfig { subflows_max, ..config() };
    let mut pair = Pair::new(&[10, 20], limited(2), 1);
    let (client, server) = pair.establish(limited(3));
    pair.log = Some(Vec::new());
    let ids = (client, server);
    let second = open(&mut pair, Side::Client, ids);
    pair.run_for(Duration::from_secs(1));
    let third = open(&mut pair, Side::Client, ids);
    let refused = pair.client.add_subflow(client, client_address(1), server_address(0), false, pair.now);
    assert_eq!(refused, Err(ConnectError::Limit));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(closed_with(&pair.client_events, third), Some(CloseReason::Refused));
    assert_eq!(refusal(&pair), Some(ResetReason::LackOfResources));
    for _ in 0..20 {
        let stats = pair.client.stats(client).unwrap();
        let last = stats.subflows.iter().rfind(|subflow| subflow.state == "ESTABLISHED").unwrap().id;
        pair.client.remove_subflow(client, last, pair.now).unwrap();
        pair.run_for(Duration::from_secs(1));
        assert_eq!(subflows(&pair, ids), (1, 1));
        open(&mut pair, Side::Client, ids);
        pair.run_for(Duration::from_secs(1));
        assert_eq!(subflows(&pair, ids), (2, 2));
    }
    assert_eq!(closed_with(&pair.client_events, second), Some(CloseReason::Finished));
    pair.exchange_and_close(client, server);
}

/// A four-tuple can have only one subflow. Joins across address families, or of a connection without MPTCP, are refused
/// as well.
#[test]
fn impossible_joins_are_refused_on_the_spot() {
    let (mut pair, client, _) = established();
    let local = SocketAddr::new(client_address(1).ip(), 6000);
    let now = pair.now;
    assert!(pair.client.add_subflow(client, local, server_address(0), false, now).is_ok());
    let again = pair.client.add_subflow(client, local, server_address(0), false, now);
    assert_eq!(again, Err(ConnectError::InUse));
    let mixed = pair.client.add_subflow(client, client_address6(1), server_address(0), false, now);
    assert_eq!(mixed, Err(ConnectError::FamilyMismatch));
    for nobody in ["10.0.1.1:0", "0.0.0.0:80", "224.0.0.1:80", "255.255.255.255:80"].map(|text| text.parse().unwrap()) {
        let joined = pair.client.add_subflow(client, client_address(1), nobody, false, now);
        assert_eq!(joined, Err(ConnectError::NoPeer(nobody)));
        let opened = pair.client.connect(client_address(1), nobody, config(), now);
        assert_eq!(opened, Err(ConnectError::NoPeer(nobody)));
    }
    let from_nowhere = pair.client.add_subflow(client, "0.0.0.0:0".parse().unwrap(), server_address(0), false, now);
    assert_eq!(from_nowhere, Err(ConnectError::NoLocalAddress));
    let listener = pair.server.listen("0.0.0.0:0".parse().unwrap(), config());
    assert_eq!(listener, Err(ListenError::PortZero));
    let tcp = ConnectionConfig { mptcp: false, ..config() };
    let plain = pair.connect(tcp);
    pair.run_for(Duration::from_secs(1));
    let refused = pair.client.add_subflow(plain, client_address(1), server_address(0), false, pair.now);
    assert_eq!(refused, Err(ConnectError::NotMptcp));
}

/// A join may arrive before the segment that establishes the connection for the receiving side: the SYN is not refused,
/// and its repetition succeeds.
#[test]
fn a_join_that_comes_too_early_is_taken_later() {
    let mut pair = Pair::new(&[300, 10], config(), 1);
    let client = pair.connect(config());
    pair.run_for(Duration::from_millis(950));
    let server = pair.server.accept(pair.listener).unwrap();
    open(&mut pair, Side::Server, (client, server));
    pair.run_for(Duration::from_millis(100));
    assert!(!pair.client.stats(client).unwrap().subflows.iter().any(|subflow| subflow.id == SubflowId(1)));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(subflows(&pair, (client, server)), (2, 2));
}

/// Section 3.2: the B flag asks for a backup.
#[test]
fn a_backup_is_asked_for_with_the_join() {
    let (mut pair, client, server) = established();
    pair.client.add_subflow(client, client_address(1), server_address(0), true, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client.stats(client).unwrap().subflows[1].backup);
    assert!(pair.server.stats(server).unwrap().subflows[1].backup);
    pair.server.send(server, pattern(0, 100_000), pair.now).unwrap();
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.server.stats(server).unwrap().subflows[1].sent_bytes, 0);
    assert!(pair.logged(|_, segment| has_option(segment, |option| matches!(option, MptcpOption::Prio(_)))).is_empty());
}

/// RFC 7323 section 2.2: a window scale cannot change. That of a later subflow, opened by either side, fits the largest
/// receive buffer so far, since the buffer may become as large again.
#[test]
fn the_window_scale_of_a_join_fits_the_largest_buffer() {
    for from in [Side::Client, Side::Server] {
        let mut pair = Pair::new(&[10, 10, 10, 10], config(), 1);
        let (client, server) = pair.establish(config());
        for (path, bytes, scale) in [(1, 512 << 10, 7), (2, 8 << 20, 8), (3, 100_000, 8)] {
            let change = SettingsChange { receive_buffer_bytes: Some(bytes), ..SettingsChange::default() };
            pair.client.change(client, &change, pair.now).unwrap();
            pair.server.change(server, &change, pair.now).unwrap();
            pair.log = Some(Vec::new());
            open_on(path, &mut pair, from, (client, server));
            pair.run_for(Duration::from_secs(1));
            let scales: Vec<_> = pair
                .logged(|_, segment| segment.flags.contains(Flags::SYN))
                .iter()
                .map(|segment| segment.options.window_scale)
                .collect();
            assert_eq!(scales, [Some(scale); 2], "with {bytes} octets");
        }
        pair.exchange_and_close(client, server);
    }
}
