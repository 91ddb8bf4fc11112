//! Fallback to plain TCP (RFC 8684 section 3.7) wherever a middlebox may strip options or change data.

use std::cell::Cell;
use std::rc::Rc;

use transport::error::{CloseReason, Violation};
use transport::{ConnectionConfig, ConnectionId, Event, Received};
use units::Duration;
use wire::mptcp::{DataSeq, MptcpOption, ResetReason};
use wire::{Flags, Payload, Segment};

use crate::pair::{
    self, Pair, Side, assert_pattern, capable, change, client_address, dss, has_option, is_rst, is_syn, is_syn_ack,
    lose_first_n, path_of, pattern, server_address,
};

const BYTES: u64 = 300_000;

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

fn with_checksums() -> ConnectionConfig {
    ConnectionConfig { checksum: true, ..config() }
}

/// Creates a connection over a path that strips MPTCP options from segments for which `is_it` holds.
fn stripped(is_it: impl Fn(Side, &Segment) -> bool + 'static) -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(&[10], config(), 1);
    pair.log = Some(Vec::new());
    pair.interfere = change(move |side, segment| {
        if is_it(side, segment) {
            segment.options.mptcp.clear();
        }
    });
    let (client, server) = pair.establish(config());
    (pair, client, server)
}

fn fell_back(pair: &Pair, client: ConnectionId, server: ConnectionId) -> (bool, bool) {
    (pair.client.stats(client).unwrap().fell_back, pair.server.stats(server).unwrap().fell_back)
}

fn speaks_mptcp(pair: &Pair, client: ConnectionId, server: ConnectionId) -> (bool, bool) {
    (pair.client.stats(client).unwrap().mptcp, pair.server.stats(server).unwrap().mptcp)
}

fn has_no_options(segment: &&Segment) -> bool {
    segment.options.mptcp.is_empty()
}

/// The option is stripped from SYN, SYN/ACK or both: plain TCP from the start.
#[test]
fn stripped_on_syns() {
    let cases: [fn(Side, &Segment) -> bool; 3] = [
        |_, segment| is_syn(segment),
        |_, segment| is_syn_ack(segment),
        |_, segment| is_syn(segment) || is_syn_ack(segment),
    ];
    for is_it in cases {
        let (mut pair, client, server) = stripped(is_it);
        assert_eq!(pair.client_events[0], Event::Connected { connection: client, mptcp: false });
        pair.exchange_and_close(client, server);
        assert!(pair.logged(|_, segment| !segment.payload.is_empty()).iter().all(has_no_options));
    }
}

/// Stripped from the third ACK only: the listener falls back, and its first ACK of data tells the initiator.
#[test]
fn stripped_on_the_third_ack() {
    for first in [Side::Client, Side::Server] {
        let is_first = Cell::new(true);
        let (mut pair, client, server) = stripped(move |side, segment| {
            side == Side::Client
                && capable(segment).is_some_and(|capable| capable.receiver_key.is_some())
                && is_first.replace(false)
        });
        assert_eq!(speaks_mptcp(&pair, client, server), (true, false));
        let (sender, receiver) = if first == Side::Client { (client, server) } else { (server, client) };
        assert_pattern(&pair.transfer(first, sender, receiver, BYTES), BYTES);
        assert_eq!(fell_back(&pair, client, server), (true, true));
        let back = if first == Side::Client { Side::Server } else { Side::Client };
        assert_pattern(&pair.transfer(back, receiver, sender, BYTES), BYTES);
        pair.assert_released(client, server);
    }
}

/// Stripped from the third ACK, and neither side has data: the initiator's DATA_FIN gets no answer, but a FIN does.
#[test]
fn stripped_on_the_third_ack_of_a_connection_without_data() {
    for first in [Side::Client, Side::Server] {
        let (mut pair, client, server) = stripped(|side, segment| side == Side::Client && !is_syn(segment));
        match first {
            Side::Client => pair.client.shutdown(client, pair.now).unwrap(),
            Side::Server => pair.server.shutdown(server, pair.now).unwrap(),
        }
        pair.run_for(Duration::from_secs(30));
        let heard = match first {
            Side::Client => pair.server_events.contains(&Event::PeerFinished(server)),
            Side::Server => pair.client_events.contains(&Event::PeerFinished(client)),
        };
        assert!(heard, "{first:?}");
        pair.client.shutdown(client, pair.now).unwrap();
        pair.server.shutdown(server, pair.now).unwrap();
        pair.run_for(Duration::from_secs(30));
        let finished = |events: &[Event]| {
            events.iter().any(|event| matches!(event, Event::Closed { reason: CloseReason::Finished, .. }))
        };
        assert!(finished(&pair.client_events) && finished(&pair.server_events), "{first:?}");
        pair.assert_released(client, server);
    }
}

/// Stripped from all that comes back: the client falls back when its first data are acknowledged, and has no data left to
/// tell the server so. The server, still in MPTCP, learns from the FIN that the client's stream has ended.
#[test]
fn the_end_of_a_stream_whose_fallback_the_peer_did_not_hear_of() {
    let (mut pair, client, server) = stripped(|side, segment| side == Side::Server && !is_syn_ack(segment));
    pair.client.send(client, pattern(0, 1000), pair.now).unwrap();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(fell_back(&pair, client, server), (true, false));
    pair.server.send(server, pattern(0, 1000), pair.now).unwrap();
    pair.run_for(Duration::from_millis(100));
    pair.client.shutdown(client, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server_events.contains(&Event::PeerFinished(server)));
    pair.server.send(server, pattern(1000, 1000), pair.now).unwrap();
    pair.run_for(Duration::from_millis(100));
    let received = core::iter::from_fn(|| match pair.client.recv(client, usize::MAX, pair.now) {
        Ok(Received::Data(data)) => Some(data),
        _ => None,
    });
    assert_pattern(&received.collect::<Vec<_>>(), 2000);
}

/// When and with what the side that fell back ends its stream.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    First,
    Last,
    /// Behind data that it sends once the other side's FIN has been acknowledged.
    LastWithData,
}

/// Returns whether `side` has seen an event for which `is_it` holds.
fn has_seen(pair: &Pair, side: Side, is_it: impl Fn(&Event) -> bool) -> bool {
    let events = if side == Side::Client { &pair.client_events } else { &pair.server_events };
    events.iter().any(is_it)
}

/// Options are removed from what the side `deaf` would receive, from DATA_FINs only if `is_data_fin_lost`. `deaf` falls
/// back and has no data left to tell the other side so, which goes on with MPTCP. Both streams end with all their
/// octets; each side learns that its end has arrived, and not before it has. The first `lost_acks` segments of `deaf`
/// after the other side's FIN are lost.
fn both_ends_after_an_unheard_fallback(deaf: Side, is_data_fin_lost: bool, end: End, lost_acks: u32, loss: f64) {
    let case = format!("{deaf:?}, DATA_FIN lost: {is_data_fin_lost}, {end:?}, {lost_acks} lost, {loss}");
    let is_handshake = |segment: &Segment| {
        is_syn(segment) || is_syn_ack(segment) || capable(segment).is_some() && segment.payload.is_empty()
    };
    let is_kept = move |segment: &Segment| {
        is_handshake(segment) || !is_data_fin_lost && dss(segment).is_some_and(|dss| dss.data_fin)
    };
    let (mut pair, client, server) = stripped(move |side, segment| side != deaf && !is_kept(segment));
    let mut strip = pair.interfere.take().unwrap();
    let (mut left, mut fin_seen) = (lost_acks, false);
    pair.interfere = Some(Box::new(move |side, segment, now| {
        fin_seen |= side != deaf && segment.flags.contains(Flags::FIN);
        if side == deaf && fin_seen && left > 0 {
            left -= 1;
            return None;
        }
        strip(side, segment, now)
    }));
    let (other, ids) = match deaf {
        Side::Client => (Side::Server, [client, server]),
        Side::Server => (Side::Client, [server, client]),
    };
    let now = pair.now;
    pair.client.send(client, pattern(0, 1000), now).unwrap();
    pair.run_for(Duration::from_millis(300));
    assert!(pair.endpoint(deaf).stats(ids[0]).unwrap().fell_back, "{case}");
    assert!(!pair.endpoint(other).stats(ids[1]).unwrap().fell_back, "{case}");
    pair.loss = loss;
    let now = pair.now;
    if deaf == Side::Client {
        pair.server.send(server, pattern(0, 1000), now).unwrap();
    }
    if end == End::First {
        pair.endpoint(deaf).shutdown(ids[0], now).unwrap();
    }
    pair.endpoint(other).shutdown(ids[1], now).unwrap();
    let arrived = |pair: &Pair, side: Side| has_seen(pair, side, |event| matches!(event, Event::PeerFinished(_)));
    let acked = |pair: &Pair, side: Side| has_seen(pair, side, |event| matches!(event, Event::AllAcknowledged(_)));
    let mut received = [Vec::new(), Vec::new()];
    let mut sent = if deaf == Side::Client { [1000, 1000] } else { [0, 1000] };
    for n in 0..3000 {
        pair.run_for(Duration::from_millis(10));
        assert!(arrived(&pair, deaf) || !acked(&pair, other), "{case}");
        assert!(arrived(&pair, other) || !acked(&pair, deaf), "{case}");
        received[0].extend(read(&mut pair, deaf, ids[0]));
        received[1].extend(read(&mut pair, other, ids[1]));
        if n == 1500 && end != End::First {
            let now = pair.now;
            if end == End::LastWithData {
                pair.endpoint(deaf).send(ids[0], pattern(sent[0], 3000), now).unwrap();
                sent[0] += 3000;
            }
            pair.endpoint(deaf).shutdown(ids[0], now).unwrap();
        }
    }
    let finished = |event: &Event| matches!(event, Event::Closed { reason: CloseReason::Finished, .. });
    for side in [deaf, other] {
        assert!(arrived(&pair, side) && acked(&pair, side), "{case}, {side:?}");
        assert!(has_seen(&pair, side, finished), "{case}, {side:?}");
    }
    assert_pattern(&received[0], sent[1]);
    assert_pattern(&received[1], sent[0]);
    pair.assert_released(client, server);
}

/// The server ends a stream without data with DATA_FINs that are lost, then with a FIN, and hears nothing of how the
/// client takes it until the client's next data show that it has fallen back.
#[test]
fn a_fallback_after_the_fin_was_acknowledged() {
    let strips = Rc::new(Cell::new(false));
    let switch = strips.clone();
    let (mut pair, client, server) =
        stripped(move |side, segment| side == Side::Server && !is_syn_ack(segment) || strips.get());
    pair.client.send(client, pattern(0, 1000), pair.now).unwrap();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(fell_back(&pair, client, server), (true, false));
    switch.set(true);
    pair.server.shutdown(server, pair.now).unwrap();
    pair.run_for(Duration::from_secs(15));
    assert!(has_seen(&pair, Side::Client, |event| matches!(event, Event::PeerFinished(_))));
    let is_acked = |event: &Event| matches!(event, Event::AllAcknowledged(_));
    assert!(!has_seen(&pair, Side::Server, is_acked), "it cannot know");
    pair.client.send(client, pattern(1000, 1000), pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(fell_back(&pair, client, server), (true, true));
    assert!(has_seen(&pair, Side::Server, is_acked));
    pair.client.send(client, pattern(2000, 1000), pair.now).unwrap();
    pair.client.shutdown(client, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_pattern(&read(&mut pair, Side::Server, server), 3000);
    let finished = |event: &Event| matches!(event, Event::Closed { reason: CloseReason::Finished, .. });
    for side in [Side::Client, Side::Server] {
        assert!(has_seen(&pair, side, finished), "{side:?}");
    }
    pair.assert_released(client, server);
}

#[test]
fn both_ends_after_a_fallback_that_the_peer_did_not_hear_of() {
    for deaf in [Side::Client, Side::Server] {
        for is_data_fin_lost in [true, false] {
            for end in [End::First, End::Last, End::LastWithData] {
                for (lost_acks, loss) in [(0, 0.0), (2, 0.0), (0, 0.25)] {
                    both_ends_after_an_unheard_fallback(deaf, is_data_fin_lost, end, lost_acks, loss);
                }
            }
        }
    }
}

/// The first DATA_FINs are lost and neither side has data, so the peer never sent a DSS. The FIN that is then sent as
/// to a peer that fell back still carries the DATA_FIN for a peer that did not.
#[test]
fn lost_data_fins_of_a_connection_without_data() {
    for first in [Side::Client, Side::Server] {
        let (mut pair, client, server) = stripped(|_, _| false);
        pair.interfere = lose_first_n(4, |_, segment| {
            dss(segment).is_some_and(|dss| dss.data_fin) && !segment.flags.contains(Flags::FIN)
        });
        let (id, events): (_, fn(&Pair) -> &Vec<Event>) = match first {
            Side::Client => (server, |pair| &pair.server_events),
            Side::Server => (client, |pair| &pair.client_events),
        };
        match first {
            Side::Client => pair.client.shutdown(client, pair.now).unwrap(),
            Side::Server => pair.server.shutdown(server, pair.now).unwrap(),
        }
        pair.run_for(Duration::from_secs(30));
        assert!(events(&pair).contains(&Event::PeerFinished(id)), "{first:?}");
        assert_eq!(fell_back(&pair, client, server), (false, false), "{first:?}");
        let (back, sender, receiver) = match first {
            Side::Client => (Side::Server, server, client),
            Side::Server => (Side::Client, client, server),
        };
        assert_pattern(&pair.transfer(back, sender, receiver, BYTES), BYTES);
        pair.assert_released(client, server);
    }
}

/// Options pass only on SYNs, in one direction or both, and either side sends first. Both sides end up with TCP, and no
/// octet is lost or duplicated.
#[test]
fn stripped_on_everything_but_syns() {
    let directions: [&[Side]; 3] = [&[Side::Client], &[Side::Server], &[Side::Client, Side::Server]];
    for stripping in directions {
        for first in [Side::Client, Side::Server] {
            let (mut pair, client, server) =
                stripped(move |side, segment| stripping.contains(&side) && !is_syn(segment) && !is_syn_ack(segment));
            let (sender, receiver) = if first == Side::Client { (client, server) } else { (server, client) };
            assert_pattern(&pair.transfer(first, sender, receiver, BYTES), BYTES);
            let back = if first == Side::Client { Side::Server } else { Side::Client };
            assert_pattern(&pair.transfer(back, receiver, sender, BYTES), BYTES);
            assert_eq!(fell_back(&pair, client, server), (true, true), "{stripping:?} strip, {first:?} first");
            pair.run_for(Duration::from_secs(1));
            let acked =
                [pair.client.stats(client).unwrap().acked_bytes, pair.server.stats(server).unwrap().acked_bytes];
            assert_eq!(acked, [BYTES, BYTES]);
            pair.assert_released(client, server);
        }
    }
}

/// Stripped from data only: the options of SYNs and ACKs pass.
#[test]
fn stripped_on_segments_with_data() {
    for first in [Side::Client, Side::Server] {
        let (mut pair, client, server) = stripped(|_, segment| !segment.payload.is_empty());
        let (sender, receiver) = if first == Side::Client { (client, server) } else { (server, client) };
        assert_pattern(&pair.transfer(first, sender, receiver, BYTES), BYTES);
        let back = if first == Side::Client { Side::Server } else { Side::Client };
        assert_pattern(&pair.transfer(back, receiver, sender, BYTES), BYTES);
        // The sender learns of it with the first data of the other side. Until then the receiver acknowledges data as
        // before.
        assert_eq!(fell_back(&pair, client, server), (true, true));
        pair.assert_released(client, server);
    }
}

/// A path changes in the middle of a transfer and strips options from then on, in either direction or both. The only
/// subflow has carried all data in order, so the transfer can continue.
#[test]
fn stripped_later_with_a_single_subflow() {
    let directions: [&[Side]; 3] = [&[Side::Client], &[Side::Server], &[Side::Client, Side::Server]];
    for stripping in directions {
        for loss in [0.0, 0.02] {
            let strips = Rc::new(Cell::new(false));
            let switch = strips.clone();
            let (mut pair, client, server) = stripped(move |side, _| strips.get() && stripping.contains(&side));
            pair.client.send(client, pattern(0, 200_000), pair.now).unwrap();
            pair.run_for(Duration::from_millis(200));
            assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
            let mut received = read(&mut pair, Side::Server, server);
            switch.set(true);
            pair.loss = loss;
            pair.client.send(client, pattern(200_000, 300_000), pair.now).unwrap();
            pair.client.shutdown(client, pair.now).unwrap();
            pair.run_for(Duration::from_secs(30));
            received.extend(read(&mut pair, Side::Server, server));
            assert_pattern(&received, 500_000);
            assert_pattern(&pair.transfer(Side::Server, server, client, BYTES), BYTES);
            assert_eq!(fell_back(&pair, client, server), (true, true), "{stripping:?} {loss}");
            pair.assert_released(client, server);
        }
    }
}

fn read(pair: &mut Pair, side: Side, id: ConnectionId) -> Vec<Payload> {
    let now = pair.now;
    let mut pieces = Vec::new();
    while let Received::Data(piece) = pair.endpoint(side).recv(id, usize::MAX, now).unwrap() {
        pieces.push(piece);
    }
    pieces
}

fn two_subflows(config: ConnectionConfig) -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(&[10, 20], config.clone(), 1);
    let (client, server) = pair.establish(config);
    pair.client.add_subflow(client, client_address(1), server_address(0), false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    pair.log = Some(Vec::new());
    (pair, client, server)
}

fn reset_reasons(pair: &Pair) -> Vec<ResetReason> {
    let resets = pair.logged(|_, segment| is_rst(segment));
    let options = resets.iter().flat_map(|segment| &segment.options.mptcp);
    options
        .filter_map(|option| match option {
            MptcpOption::TcpRst(rst) => Some(rst.reason),
            _ => None,
        })
        .collect()
}

/// With several subflows, the one whose path strips options is reset, and its data take another path.
#[test]
fn stripped_later_with_several_subflows() {
    for victim in [0, 1] {
        let (mut pair, client, server) = two_subflows(config());
        pair.interfere = change(move |side, segment| {
            if path_of(side, segment) == victim && !segment.payload.is_empty() {
                segment.options.mptcp.clear();
            }
        });
        assert_pattern(&pair.transfer(Side::Server, server, client, BYTES), BYTES);
        assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
        assert!(reset_reasons(&pair).contains(&ResetReason::MiddleboxInterference));
        let reason = CloseReason::Violation(Violation::UnmappedData);
        assert!(
            pair.client_events
                .iter()
                .any(|event| matches!(event, Event::SubflowClosed { reason: why, .. } if *why == reason))
        );
        assert_pattern(&pair.transfer(Side::Client, client, server, BYTES), BYTES);
        pair.assert_released(client, server);
    }
}

/// On a joined path only handshakes carry options. The first answer to data shows this, and the sender resets the
/// subflow.
#[test]
fn stripped_on_a_join_after_its_handshake() {
    let (mut pair, client, server) = {
        let mut pair = Pair::new(&[30, 10], config(), 1);
        let (client, server) = pair.establish(config());
        (pair, client, server)
    };
    pair.log = Some(Vec::new());
    pair.interfere = change(|side, segment| {
        if path_of(side, segment) == 1 && dss(segment).is_some() && side == Side::Server {
            segment.options.mptcp.clear();
        }
    });
    pair.client.add_subflow(client, client_address(1), server_address(0), false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_pattern(&pair.transfer(Side::Client, client, server, BYTES), BYTES);
    assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
    assert_eq!(reset_reasons(&pair), [ResetReason::MiddleboxInterference]);
}

/// Changes one octet in the `n`th segment with data of `side` on `path`, and in all later ones.
fn alter_from(n: u32, victim: Side, path: usize) -> Option<pair::Interfere> {
    let mut seen = 0;
    change(move |side, segment| {
        if side != victim || path_of(side, segment) != path || segment.payload.is_empty() {
            return;
        }
        seen += 1;
        if seen >= n {
            let mut octets = segment.payload.to_bytes().to_vec();
            octets[0] ^= 0xff;
            segment.payload = octets.into();
        }
    })
}

/// Returns the distance between data sequence number and subflow sequence number of a mapping.
fn distance(segment: &Segment) -> u32 {
    let mapping = dss(segment).unwrap().mapping.unwrap();
    let DataSeq::Short(dsn) = mapping.dsn else { panic!("four octets") };
    dsn.wrapping_sub(mapping.ssn)
}

fn total(pieces: &[Payload]) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

/// A middlebox changes data on the only subflow: MP_FAIL in both directions, an infinite mapping, and TCP from there
/// on. The application gets the data as changed by the middlebox, complete and in order.
#[test]
fn altered_data_on_a_single_subflow() {
    for n in [1, 5, 50] {
        for victim in [Side::Client, Side::Server] {
            let mut pair = Pair::new(&[10], with_checksums(), 1);
            let (client, server) = pair.establish(with_checksums());
            pair.log = Some(Vec::new());
            pair.interfere = alter_from(n, victim, 0);
            let (sender, receiver) = if victim == Side::Client { (client, server) } else { (server, client) };
            let received = pair.transfer(victim, sender, receiver, BYTES);
            assert_eq!(total(&received), BYTES, "{n} {victim:?}");
            assert_eq!(fell_back(&pair, client, server), (true, true));
            for side in [Side::Client, Side::Server] {
                let fails = pair.logged(|from, segment| {
                    from == side && has_option(segment, |option| matches!(option, MptcpOption::Fail(_)))
                });
                assert_eq!(fails.len(), 1, "{side:?}");
            }
            let is_infinite =
                |segment: &Segment| dss(segment).is_some_and(|dss| dss.mapping.is_some_and(|mapping| mapping.len == 0));
            let infinite = pair.logged(|from, segment| from == victim && is_infinite(segment));
            assert_eq!(infinite.len(), 1);
            // It starts where a mapping could have started: all mappings have the same distance between the two spaces.
            let ordinary =
                pair.logged(|from, segment| from == victim && !segment.payload.is_empty() && dss(segment).is_some());
            assert_eq!(distance(infinite[0]), distance(ordinary[0]));
            pair.interfere = None;
            let back = if victim == Side::Client { Side::Server } else { Side::Client };
            assert_pattern(&pair.transfer(back, receiver, sender, BYTES), BYTES);
            pair.assert_released(client, server);
        }
    }
}

/// A middlebox that changes data also joins segments: data after the bad mapping in the same segment are not lost.
#[test]
fn altered_data_in_joined_segments() {
    let mut pair = Pair::new(&[10], with_checksums(), 1);
    let (client, server) = pair.establish(with_checksums());
    let mut held: Option<Segment> = None;
    let mut joined = false;
    pair.interfere = Some(Box::new(move |side, mut segment, _| {
        if side == Side::Client || joined || segment.payload.is_empty() {
            return Some(segment);
        }
        let Some(first) = held.take() else {
            held = Some(segment);
            return None;
        };
        joined = true;
        let mut octets = [first.payload.to_bytes(), segment.payload.to_bytes()].concat();
        octets[7] ^= 1;
        segment.payload = octets.into();
        segment.seq = first.seq;
        segment.options.mptcp.insert_many(0, first.options.mptcp);
        Some(segment)
    }));
    let received = pair.transfer(Side::Server, server, client, BYTES);
    assert_eq!(total(&received), BYTES);
    assert_eq!(fell_back(&pair, client, server), (true, true));
    assert_eq!(pair.server.stats(server).unwrap().subflows[0].retransmitted_bytes, 0, "nothing was lost on the way");
}

/// Fallback counts no octet twice: data that have not arrived never count as acknowledged.
#[test]
fn falling_back_acknowledges_nothing_twice() {
    let (mut pair, client, server) =
        stripped(|_, segment| !is_syn(segment) && !is_syn_ack(segment) && capable(segment).is_none());
    pair.client.send(client, pattern(0, 200_000), pair.now).unwrap();
    for _ in 0..100 {
        pair.run_for(Duration::from_millis(1));
        let (acked, arrived) =
            (pair.client.stats(client).unwrap().acked_bytes, pair.server.stats(server).unwrap().received_bytes);
        assert!(acked <= arrived, "{acked} acknowledged of {arrived}");
    }
    assert_eq!(fell_back(&pair, client, server), (true, true));
}

/// With several subflows and mappings that span segments, part of the altered one has been acknowledged when the
/// alteration is found. No subflow is responsible for these octets any more, yet they are sent again at once.
#[test]
fn altered_data_that_were_acknowledged_in_part() {
    let config = ConnectionConfig { offload_max_bytes: 20_000, ..with_checksums() };
    let (mut pair, client, server) = two_subflows(config);
    pair.cut_to = Some((1000, false));
    pair.interfere = alter_from(30, Side::Server, 0);
    let started = pair.now;
    assert_pattern(&pair.transfer(Side::Server, server, client, BYTES), BYTES);
    assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
    assert!(pair.now - started < Duration::from_millis(900), "{:?}", pair.now - started);
}

/// MP_FAIL is lost. The absence of DATA_ACKs in our ACKs has the same meaning, once three data-level time-outs in a row
/// have passed without a join.
#[test]
fn altered_data_whose_report_is_lost() {
    let mut pair = Pair::new(&[10], with_checksums(), 1);
    let (client, server) = pair.establish(with_checksums());
    let mut alter = alter_from(5, Side::Server, 0).unwrap();
    pair.interfere = Some(Box::new(move |side, segment, now| {
        let is_report = has_option(&segment, |option| matches!(option, MptcpOption::Fail(_)));
        if is_report { None } else { alter(side, segment, now) }
    }));
    let received = pair.transfer(Side::Server, server, client, BYTES);
    assert_eq!(total(&received), BYTES);
    pair.run_for(Duration::from_secs(8));
    assert_eq!(fell_back(&pair, client, server), (true, true));
}

/// With several subflows altered data are not delivered: the subflow gets a RST with MP_FAIL, and others bring the
/// originals.
#[test]
fn altered_data_on_one_of_several_subflows() {
    for victim in [0, 1] {
        let (mut pair, client, server) = two_subflows(with_checksums());
        pair.interfere = alter_from(5, Side::Server, victim);
        assert_pattern(&pair.transfer(Side::Server, server, client, BYTES), BYTES);
        assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
        let failed = pair.logged(|side, segment| {
            side == Side::Client
                && is_rst(segment)
                && has_option(segment, |option| matches!(option, MptcpOption::Fail(_)))
        });
        assert_eq!(failed.len(), 1);
        pair.interfere = None;
        assert_pattern(&pair.transfer(Side::Client, client, server, BYTES), BYTES);
        pair.assert_released(client, server);
    }
}

/// Without checksums the change goes unnoticed, as configured.
#[test]
fn altered_data_without_checksums() {
    let mut pair = Pair::new(&[10], config(), 1);
    let (client, server) = pair.establish(config());
    pair.interfere = alter_from(5, Side::Server, 0);
    assert_eq!(total(&pair.transfer(Side::Server, server, client, BYTES)), BYTES);
    assert_eq!(speaks_mptcp(&pair, client, server), (true, true));
}

/// One peer, on either side, has no MPTCP.
#[test]
fn peers_without_mptcp() {
    let tcp = ConnectionConfig { mptcp: false, ..config() };
    for (ours, theirs) in [(config(), tcp.clone()), (tcp, config())] {
        let mut pair = Pair::v6(&[10], theirs, 1);
        let (client, server) = pair.establish(ours);
        assert_eq!(pair.client_events[0], Event::Connected { connection: client, mptcp: false });
        assert_eq!(pair.server.footprint().tokens + pair.client.footprint().tokens, 0);
        pair.exchange_and_close(client, server);
    }
}
