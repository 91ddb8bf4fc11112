//! Ends of streams, subflows and connections (RFC 8684 sections 3.3.3, 3.5 and 3.6), and the state that remains.

use transport::error::{CloseReason, ConnectionError};
use transport::{ConnectionConfig, ConnectionId, EndpointConfig, Event, Footprint, Received, SubflowId};
use units::Duration;
use wire::mptcp::{Key, MpFastclose, MptcpOption};
use wire::{Flags, Segment};

use crate::pair::{
    Pair, Side, assert_pattern, change, client_address, dss, has_option, is_rst, is_syn, lose_first_n, path_of,
    pattern, server_address,
};

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

/// Creates a connection with one subflow on every path.
fn established(paths: &[u64]) -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(paths, config(), 1);
    let (client, server) = pair.establish(config());
    for path in 1..paths.len() as u8 {
        pair.client.add_subflow(client, client_address(path), server_address(0), false, pair.now).unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    pair.log = Some(Vec::new());
    (pair, client, server)
}

fn closed(events: &[Event]) -> Option<CloseReason> {
    events.iter().find_map(|event| match event {
        Event::Closed { reason, .. } => Some(*reason),
        _ => None,
    })
}

fn both_closed(pair: &Pair) -> (Option<CloseReason>, Option<CloseReason>) {
    (closed(&pair.client_events), closed(&pair.server_events))
}

const FINISHED: (Option<CloseReason>, Option<CloseReason>) = (Some(CloseReason::Finished), Some(CloseReason::Finished));

fn has_data_fin(segment: &Segment) -> bool {
    dss(segment).is_some_and(|dss| dss.data_fin)
}

/// Section 3.3.3: a DATA_FIN that ends data travels with them and has the data sequence number after them; one without
/// data maps subflow sequence number zero and length one.
#[test]
fn the_two_forms_of_data_fin() {
    let (mut pair, client, server) = established(&[10]);
    pair.client.send(client, pattern(0, 1000), pair.now).unwrap();
    pair.client.shutdown(client, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    pair.server.shutdown(server, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    let fins = pair.logged(|_, segment| has_data_fin(segment));
    let lengths: Vec<_> = fins.iter().map(|segment| dss(segment).unwrap().mapping.unwrap().len).collect();
    let ssn = dss(fins[1]).unwrap().mapping.unwrap().ssn;
    assert_eq!(
        (fins.len(), lengths, fins[0].payload.len(), fins[1].payload.len(), ssn),
        (2, vec![1001, 1], 1000, 0, 0)
    );
    assert_eq!(both_closed(&pair), FINISHED);
}

/// A DATA_FIN, with or without data, is repeated until it is acknowledged, however often it is lost.
#[test]
fn lost_data_fins_are_repeated() {
    for bytes in [0, 1000] {
        for times in [1, 2, 4] {
            for paths in [&[10][..], &[10, 30]] {
                let (mut pair, client, server) = established(paths);
                pair.interfere = lose_first_n(times, |_, segment| has_data_fin(segment));
                pair.client.send(client, pattern(0, bytes), pair.now).unwrap();
                pair.client.shutdown(client, pair.now).unwrap();
                pair.server.shutdown(server, pair.now).unwrap();
                pair.run_for(Duration::from_secs(60));
                assert_eq!(both_closed(&pair), FINISHED, "{bytes} octets, {times} lost");
                pair.assert_released(client, server);
            }
        }
    }
}

/// The acknowledgements of DATA_FINs are lost instead.
#[test]
fn lost_acknowledgements_of_data_fins_are_repeated() {
    for from in [Side::Client, Side::Server] {
        let (mut pair, client, server) = established(&[10, 30]);
        pair.client.shutdown(client, pair.now).unwrap();
        pair.run_for(Duration::from_millis(1));
        pair.interfere = lose_first_n(3, move |side, segment| side == from && segment.payload.is_empty());
        pair.run_for(Duration::from_secs(20));
        pair.server.shutdown(server, pair.now).unwrap();
        pair.run_for(Duration::from_secs(60));
        assert_eq!(both_closed(&pair), FINISHED, "{from:?}");
        pair.assert_released(client, server);
    }
}

/// Both sides end at the same time, also with data in flight.
#[test]
fn simultaneous_ends() {
    for bytes in [0, 100_000] {
        let (mut pair, client, server) = established(&[10, 30]);
        pair.client.send(client, pattern(0, bytes), pair.now).unwrap();
        pair.server.send(server, pattern(0, bytes), pair.now).unwrap();
        pair.client.shutdown(client, pair.now).unwrap();
        pair.server.shutdown(server, pair.now).unwrap();
        pair.run_for(Duration::from_secs(5));
        assert_eq!(both_closed(&pair), FINISHED);
        let (state, other) = (pair.client.stats(client).unwrap().state, pair.server.stats(server).unwrap().state);
        assert_eq!((state, other), ("TIME-WAIT", "TIME-WAIT"));
        let read = pair.server.recv(server, usize::MAX, pair.now).unwrap();
        assert_eq!(read, if bytes > 0 { Received::Data(pattern(0, bytes)) } else { Received::Finished });
        pair.assert_released(client, server);
    }
}

/// A half-closed connection carries data in the other direction as long as necessary.
#[test]
fn half_closed_connections_go_on() {
    let (mut pair, client, server) = established(&[10, 30]);
    pair.client.shutdown(client, pair.now).unwrap();
    pair.run_for(Duration::from_secs(600));
    assert_eq!(pair.client.stats(client).unwrap().state, "FIN-WAIT-2");
    assert_eq!(pair.client.send(client, pattern(0, 1), pair.now), Err(ConnectionError::WrongState));
    assert_pattern(&pair.transfer(Side::Server, server, client, 500_000), 500_000);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(both_closed(&pair), FINISHED);
}

/// After `close` no application reads: later data are discarded, and a peer that never ends is waited for a minute.
#[test]
fn a_closed_connection_lingers_no_longer_than_a_minute() {
    let (mut pair, client, server) = established(&[10, 30]);
    pair.client.close(client, pair.now).unwrap();
    pair.run_for(Duration::from_secs(30));
    pair.server.send(server, pattern(0, 100_000), pair.now).unwrap();
    // A subflow that joins in the meantime does not change that.
    pair.server.add_subflow(server, server_address(1), client_address6000(), false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(25));
    assert_eq!(both_closed(&pair), (None, None));
    assert_eq!(pair.server.stats(server).unwrap().acked_bytes, 100_000);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(both_closed(&pair), (Some(CloseReason::TimedOut), Some(CloseReason::Fastclose)));
    pair.assert_released(client, server);
}

/// RFC 9293 section 3.8.6.1 lets a peer keep its window shut while it answers probes. A DATA_FIN needs no window, so
/// silence after it counts as with an open one.
#[test]
fn a_shut_window_does_not_excuse_silence_about_a_data_fin() {
    let little = ConnectionConfig { receive_buffer_bytes: 20_000, ..config() };
    let mut pair = Pair::new(&[10], little, 1);
    let (client, _) = pair.establish(config());
    pair.client.send(client, pattern(0, 20_000), pair.now).unwrap();
    pair.run_for(Duration::from_secs(20));
    let stats = pair.client.stats(client).unwrap();
    assert_eq!((stats.acked_bytes, stats.unsent_bytes), (20_000, 0), "the server's buffer is full");
    pair.dark = vec![true];
    pair.client.close(client, pair.now).unwrap();
    pair.run_for(config().user_timeout + Duration::from_secs(120));
    assert_eq!(closed(&pair.client_events), Some(CloseReason::TimedOut));
}

fn client_address6000() -> std::net::SocketAddr {
    std::net::SocketAddr::new(client_address(1).ip(), 6000)
}

/// Section 3.5: an abort resets every subflow, each RST with the peer's key; the peer closes at once.
#[test]
fn abort_is_fastclose_on_every_subflow() {
    for from in [Side::Client, Side::Server] {
        let (mut pair, client, server) = established(&[10, 30]);
        pair.client.send(client, pattern(0, 50_000), pair.now).unwrap();
        pair.run_for(Duration::from_millis(15));
        let now = pair.now;
        let id = if from == Side::Client { client } else { server };
        pair.endpoint(from).abort(id, now).unwrap();
        pair.run_for(Duration::from_secs(1));
        let fastclosed = |segment: &Segment| has_option(segment, |option| matches!(option, MptcpOption::Fastclose(_)));
        assert_eq!(pair.logged(|side, segment| side == from && is_rst(segment) && fastclosed(segment)).len(), 2);
        let (aborted, fastclose) = (Some(CloseReason::Aborted), Some(CloseReason::Fastclose));
        assert_eq!(both_closed(&pair), if from == Side::Client { (aborted, fastclose) } else { (fastclose, aborted) });
        assert!(pair.client.send(client, pattern(0, 1), pair.now).is_err());
        pair.assert_released(client, server);
    }
}

/// A loss before the RST does not invalidate its MP_FASTCLOSE. A wrong key does, or a sequence number outside the
/// window.
#[test]
fn a_reset_behind_a_hole_is_a_fastclose_with_the_right_key() {
    for (ahead, right_key, is_heard) in
        [(0, true, true), (9_000, true, true), (9_000, false, false), (1 << 30, true, false)]
    {
        let (mut pair, client, server) = established(&[10, 30]);
        let (ack, key) = last_ack_and_key(&mut pair, client, server);
        let mut forged = ack;
        forged.payload = wire::Payload::Empty;
        forged.flags = Flags::RST | Flags::ACK;
        forged.seq += ahead;
        let receiver_key = if right_key { key } else { Key(key.0 ^ 1) };
        forged.options.mptcp = [MptcpOption::Fastclose(MpFastclose { receiver_key })].into_iter().collect();
        pair.forge(Side::Client, forged);
        pair.run_for(Duration::from_secs(1));
        let closed = closed(&pair.server_events);
        assert_eq!(closed, is_heard.then_some(CloseReason::Fastclose), "{ahead} {right_key}");
        if !is_heard {
            pair.exchange_and_close(client, server);
        }
    }
}

/// A RST without MP_FASTCLOSE, after an ACK with MP_FASTCLOSE: option A of section 3.5.
#[test]
fn fastclose_on_an_ack_is_answered_with_resets() {
    for right_key in [true, false] {
        let (mut pair, client, server) = established(&[10, 30]);
        let (ack, key) = last_ack_and_key(&mut pair, client, server);
        let mut forged = ack;
        forged.payload = wire::Payload::Empty;
        let receiver_key = if right_key { key } else { Key(key.0 ^ 1) };
        forged.options.mptcp = [MptcpOption::Fastclose(MpFastclose { receiver_key })].into_iter().collect();
        pair.log = Some(Vec::new());
        pair.forge(Side::Client, forged);
        pair.run_for(Duration::from_secs(1));
        let resets = pair.logged(|side, segment| side == Side::Server && is_rst(segment)).len();
        if right_key {
            assert_eq!((resets, closed(&pair.server_events)), (2, Some(CloseReason::Fastclose)));
            pair.assert_released(client, server);
        } else {
            assert_eq!((resets, closed(&pair.server_events)), (0, None));
            pair.exchange_and_close(client, server);
        }
    }
}

/// Returns the last segment that the client sent on its first subflow, and the server's key, which a fast close must
/// carry.
fn last_ack_and_key(pair: &mut Pair, client: ConnectionId, server: ConnectionId) -> (Segment, Key) {
    let mut watched = Pair::new(&[10, 30], config(), 1);
    watched.log = Some(Vec::new());
    watched.establish(config());
    // The same seed draws the same keys.
    let key = watched.logged(|side, _| side == Side::Server)[0].options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Capable(capable) => capable.sender_key,
        _ => None,
    });
    pair.server.send(server, pattern(0, 1), pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    pair.client.recv(client, 1, pair.now).unwrap();
    let sent = pair.logged(|side, segment| side == Side::Client && path_of(side, segment) == 0);
    ((*sent.last().unwrap()).clone(), key.unwrap())
}

/// A RST of one of several subflows ends that subflow, and the others carry its remaining data. A RST of the last ends
/// the connection, unless a new subflow joins in time (`mptcp_resets.rs`).
#[test]
fn resets_of_one_and_of_all_subflows() {
    for both in [false, true] {
        let (mut pair, client, server) = established(&[10, 30]);
        pair.interfere = change(move |side, segment| {
            if side == Side::Server && !segment.payload.is_empty() && (both || path_of(side, segment) == 0) {
                segment.flags = Flags::RST | Flags::ACK;
                segment.payload = wire::Payload::Empty;
                segment.options = wire::Options::default();
            }
        });
        if both {
            pair.server.send(server, pattern(0, 200_000), pair.now).unwrap();
            pair.run_for(Duration::from_secs(25));
            assert_eq!(closed(&pair.client_events), Some(CloseReason::Reset));
        } else {
            assert_pattern(&pair.transfer(Side::Server, server, client, 200_000), 200_000);
            let ended = Event::SubflowClosed { connection: client, subflow: SubflowId(0), reason: CloseReason::Reset };
            assert!(pair.client_events.contains(&ended));
        }
    }
}

/// Section 3.3.3: FINs of all subflows without DATA_FIN do not end the stream. The connection waits for a new subflow,
/// which continues the transfer; without one it gives up after a minute. The side that did not leave signals this if
/// its half is still open.
#[test]
fn a_connection_outlives_its_subflows() {
    for returns in [true, false] {
        let (mut pair, client, server) = established(&[10, 30]);
        pair.server.send(server, pattern(0, 300_000), pair.now).unwrap();
        pair.run_for(Duration::from_millis(25));
        for subflow in [SubflowId(0), SubflowId(1)] {
            pair.client.remove_subflow(client, subflow, pair.now).unwrap();
        }
        pair.run_for(Duration::from_secs(20));
        assert!(pair.client.stats(client).unwrap().subflows.iter().all(|subflow| subflow.state != "ESTABLISHED"));
        assert_eq!(both_closed(&pair), (None, None));
        if returns {
            pair.client.add_subflow(client, client_address(1), server_address(0), false, pair.now).unwrap();
            pair.run_for(Duration::from_secs(5));
            let got = pair.client.recv(client, usize::MAX, pair.now).unwrap();
            assert_eq!(got, Received::Data(pattern(0, 300_000)));
            pair.run_for(Duration::from_secs(120));
            pair.exchange_and_close(client, server);
        } else {
            pair.run_for(Duration::from_secs(60));
            assert_eq!(both_closed(&pair), (Some(CloseReason::Fastclose), Some(CloseReason::TimedOut)));
            pair.assert_released(client, server);
        }
    }
}

/// An abort in any state ends the connection and leaves no state.
#[test]
fn abort_in_every_state() {
    let nothing = Footprint { connections: 0, four_tuples: 0, tokens: 0 };
    // Milliseconds after the SYN: SYN-SENT, SYN-RECEIVED, established; then the closing states.
    for after_ms in [0, 5, 15, 25, 45, 95, 102, 107, 112, 115, 125, 135, 500] {
        for side in [Side::Client, Side::Server] {
            let mut pair = Pair::new(&[10], config(), 1);
            let client = pair.connect(config());
            let mut server = None;
            for ms in 0..after_ms {
                pair.run_for(Duration::from_millis(1));
                server = server.or_else(|| pair.server.accept(pair.listener));
                if ms == 100 {
                    pair.client.shutdown(client, pair.now).unwrap();
                }
                if ms == 105 {
                    pair.server.shutdown(server.unwrap(), pair.now).unwrap();
                }
            }
            let now = pair.now;
            match (side, server) {
                (Side::Client, _) => pair.client.abort(client, now).unwrap(),
                (Side::Server, Some(server)) => pair.server.abort(server, now).unwrap(),
                (Side::Server, None) => pair.server.close_listener(pair.listener, now),
            }
            pair.run_for(Duration::from_secs(2));
            while let Some(accepted) = pair.server.accept(pair.listener) {
                pair.server.release(accepted);
            }
            pair.client.release(client);
            server.into_iter().for_each(|server| pair.server.release(server));
            pair.run_for(Duration::from_secs(200));
            let left = (pair.client.footprint(), pair.server.footprint());
            assert_eq!(left, (nothing, nothing), "{side:?} after {after_ms} ms");
        }
    }
}

/// Statistics remain until `release`. Afterwards the identifier is invalid, though its slot serves the next connection.
#[test]
fn statistics_survive_and_slots_return() {
    let (mut pair, client, server) = established(&[10, 30]);
    assert_pattern(&pair.transfer(Side::Client, client, server, 100_000), 100_000);
    pair.server.shutdown(server, pair.now).unwrap();
    pair.run_for(Duration::from_secs(100));
    let stats = pair.client.stats(client).unwrap();
    assert_eq!((stats.state, stats.mptcp, stats.acked_bytes, stats.subflows.len()), ("CLOSED", true, 100_000, 2));
    assert!(stats.closed_at.is_some() && stats.subflows.iter().all(|subflow| subflow.closed_at.is_some()));
    assert_eq!(stats.subflows.iter().map(|subflow| subflow.acked_bytes).sum::<u64>(), 100_000);
    pair.client.release(client);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client.stats(client).map(|stats| stats.state), None);
    assert_eq!(pair.client.abort(client, pair.now), Err(ConnectionError::UnknownConnection));
    let next = pair.connect(config());
    assert_ne!(next, client);
    assert!(pair.client.stats(client).is_none() && pair.client.stats(next).is_some());
}

/// The backlog bounds the connections that wait, half-open or not accepted. Cookies admit as many again beyond it;
/// other clients must retry.
#[test]
fn the_backlog_is_bounded() {
    let mut pair = Pair::new(&[10], config(), 1);
    let mut server = transport::Endpoint::with_seed(EndpointConfig { backlog: 3, ..EndpointConfig::default() }, 9);
    pair.listener = server.listen(server_address(0), config()).unwrap();
    pair.server = server;
    let ids: Vec<_> = (0..8).map(|_| pair.connect(config())).collect();
    ids.iter().for_each(|id| assert_eq!(pair.client.send(*id, pattern(0, 100), pair.now), Ok(100)));
    pair.run_for(Duration::from_millis(500));
    assert_eq!(pair.server.footprint().connections, 6);
    let mut accepted: Vec<_> = std::iter::from_fn(|| pair.server.accept(pair.listener)).collect();
    pair.run_for(Duration::from_secs(5));
    accepted.extend(std::iter::from_fn(|| pair.server.accept(pair.listener)));
    assert_eq!((accepted.len(), ids.len()), (8, 8));
}

/// Connections that were not accepted end with their listener, including those being set up.
#[test]
fn a_listener_takes_its_queue_along() {
    for after_ms in [5, 15, 25, 100] {
        let mut pair = Pair::new(&[10], config(), 1);
        let client = pair.connect(config());
        pair.run_for(Duration::from_millis(after_ms));
        pair.server.close_listener(pair.listener, pair.now);
        pair.run_for(Duration::from_secs(100));
        assert!(closed(&pair.client_events).is_some(), "{after_ms}");
        pair.client.release(client);
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.server.footprint().connections + pair.client.footprint().connections, 0);
        assert!(pair.server.footprint().tokens + pair.client.footprint().tokens == 0);
    }
}

/// A SYN flood occupies the listener's backlog only until the half-open connections give up.
#[test]
fn half_open_connections_give_up() {
    let mut pair = Pair::new(&[10], config(), 1);
    pair.interfere = Some(Box::new(|_, segment, _| is_syn(&segment).then_some(segment)));
    let ids: Vec<_> = (0..10).map(|_| pair.connect(config())).collect();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.server.footprint().connections, 10);
    ids.iter().for_each(|id| pair.client.abort(*id, pair.now).unwrap());
    pair.run_for(Duration::from_secs(300));
    assert_eq!(pair.server.footprint(), Footprint { connections: 0, four_tuples: 0, tokens: 0 });
}

/// What is left of a closed connection on a local address ends when that address disappears: nobody could answer it.
#[test]
fn subflows_of_a_closed_connection_end_with_their_address() {
    let (mut pair, client, server) = established(&[10, 30]);
    pair.client.shutdown(client, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    pair.dark[1] = true;
    pair.server.shutdown(server, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(closed(&pair.client_events), Some(CloseReason::Finished));
    let states =
        |pair: &Pair| pair.client.stats(client).unwrap().subflows.iter().map(|it| it.state).collect::<Vec<_>>();
    assert_eq!(states(&pair), ["TIME-WAIT", "FIN-WAIT-1"]);
    pair.client_events.clear();
    pair.log = Some(Vec::new());
    pair.client.remove_local_address(client_address(1).ip(), pair.now);
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.logged(|side, segment| side == Side::Client && path_of(side, segment) == 1).len(), 0);
    let reason = CloseReason::AddressWithdrawn;
    assert_eq!(pair.client_events, [Event::SubflowClosed { connection: client, subflow: SubflowId(1), reason }]);
    assert_eq!(pair.client.footprint().four_tuples, 1, "the other subflow is in TIME-WAIT as before");
    pair.assert_released(client, server);
}
