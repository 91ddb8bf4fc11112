//! Rules about signals that span sections of RFC 8684: how congestion control treats an ACK with an option, on which
//! segments options count, and how subflows and connections end on request.

use std::net::SocketAddr;

use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Event};
use units::Duration;
use wire::mptcp::{AddressId, DataSeq, Dss, MpFail, MpFastclose, MpPrio, MptcpOption, RemoveAddr};
use wire::{Flags, Payload, Segment};

use crate::forger::Forger;
use crate::pair::{Pair, Side, client_address, has_option, is_rst, path_of, pattern, server_address};
use crate::victim::Victim;

/// Returns the number of data segments that the victim repeats after four equal ACKs, each with `option` beside its
/// DSS.
fn repeated_after(option: Option<&MptcpOption>) -> usize {
    let mut victim = Victim::new(&ConnectionConfig::default());
    let (mut forger, id) = victim.connect_as(Forger { sack: false, ..Forger::new(true, 0xf0f0) });
    let acked = forger.flows[0].peer_nxt;
    victim.endpoint.send(id, Payload::from(vec![1; 10_000]), victim.now).unwrap();
    let first = victim.wait(Duration::ZERO).len();
    assert!(first >= 7, "{first} segments are under way");
    let mut again = 0;
    for _ in 0..4 {
        let answers = victim.play(&mut forger, |forger, now| {
            let mut ack = forger.ack(0, now);
            ack.ack = acked;
            ack.options.mptcp.extend(option.cloned());
            ack
        });
        again += answers.iter().filter(|answer| answer.seq == acked && !answer.payload.is_empty()).count();
    }
    again
}

/// Section 3.4.1: an ACK with an option other than a DSS is not a duplicate ACK that indicates a loss.
#[test]
fn acks_with_signals_tell_of_no_loss() {
    assert_eq!(repeated_after(None), 1, "without an option they do");
    assert_eq!(repeated_after(Some(&MptcpOption::Prio(MpPrio { backup: false }))), 0);
    let removal = RemoveAddr { address_ids: [AddressId(77)].into_iter().collect() };
    assert_eq!(repeated_after(Some(&MptcpOption::RemoveAddr(removal))), 0);
}

type Change = fn(&mut Segment);

/// Changes, and whether TCP then accepts the segment.
const CHANGES: [(Change, bool); 4] = [
    (|segment| segment.seq = segment.seq - 100_000, false),
    (|segment| segment.seq += 1 << 30, false),
    (|segment| segment.ack += 1 << 30, false),
    (|_| (), true),
];

/// Section 3.4.2: a withdrawal counts only on a segment that TCP accepts.
#[test]
fn a_withdrawal_on_an_unacceptable_segment_counts_for_nothing() {
    let removal = || MptcpOption::RemoveAddr(RemoveAddr { address_ids: [AddressId(1)].into_iter().collect() });
    for (change, counts) in CHANGES {
        let mut victim = Victim::new(&ConnectionConfig::default());
        let (mut forger, id) = victim.connect(true);
        let f = victim.join(&mut forger);
        assert_eq!(f, 1);
        let mut segment = forger.signal(0, removal(), victim.now);
        change(&mut segment);
        victim.inject(segment);
        let alive = victim.stats(id).subflows.iter().filter(|subflow| subflow.state == "ESTABLISHED").count();
        assert_eq!(alive, if counts { 1 } else { 2 });
    }
}

/// Sections 3 and 3.4.1: the same holds for every other signal, including a DATA_ACK.
#[test]
fn no_signal_on_an_unacceptable_segment_counts() {
    type Signal = fn(&Forger) -> MptcpOption;
    type Heard = fn(&Victim, ConnectionId) -> bool;
    let signals: [(Signal, Heard); 5] = [
        (
            |forger| forger.add_addr(7, SocketAddr::from(([10, 9, 0, 7], 80))),
            |victim, _| victim.events.iter().any(|event| matches!(event, Event::AddressAnnounced { .. })),
        ),
        (|_| MptcpOption::Prio(MpPrio { backup: true }), |victim, id| victim.stats(id).subflows[0].backup),
        (
            |forger| MptcpOption::Fastclose(MpFastclose { receiver_key: forger.peer_key.unwrap() }),
            |victim, id| victim.stats(id).state == "CLOSED",
        ),
        (|forger| MptcpOption::Fail(MpFail { dsn: forger.peer_dsn }), |victim, id| victim.stats(id).fell_back),
        (
            |forger| {
                let data_ack = Some(DataSeq::Long(forger.peer_dsn.0 + 500));
                MptcpOption::Dss(Dss { data_ack, ..Dss::default() })
            },
            |victim, id| victim.stats(id).acked_bytes == 500,
        ),
    ];
    for (signal, heard) in signals {
        for (change, counts) in CHANGES {
            let mut victim = Victim::new(&ConnectionConfig { nagle: false, ..ConnectionConfig::default() });
            let (forger, id) = victim.connect(true);
            victim.endpoint.send(id, Payload::from(vec![1; 500]), victim.now).unwrap();
            victim.wait(Duration::ZERO);
            let option = signal(&forger);
            let mut segment = forger.signal(0, option.clone(), victim.now);
            change(&mut segment);
            victim.inject(segment);
            assert_eq!(heard(&victim, id), counts, "{option:?}");
        }
    }
}

/// Section 3.4.1: the same address with another port is a separate address to join.
#[test]
fn an_address_may_be_announced_with_another_port() {
    let mut victim = Victim::new(&ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() });
    let (forger, _) = victim.connect(true);
    let at = |last: u8, port: u16| SocketAddr::from(([10, 9, 0, last], port));
    for address in [at(7, 80), at(7, 80), at(7, 8080), at(8, 80), at(7, 81)] {
        victim.inject(forger.signal(0, forger.add_addr(3, address), victim.now));
    }
    let announced = victim.events.iter().filter_map(|event| match event {
        Event::AddressAnnounced { address_id, address, .. } => Some((*address_id, *address)),
        _ => None,
    });
    let expected = [80, 8080, 81].map(|port| (AddressId(3), at(7, port)));
    assert_eq!(announced.collect::<Vec<_>>(), expected);
}

/// Creates two subflows, on paths of 10 and 30 ms.
fn established() -> (Pair, [transport::ConnectionId; 2]) {
    let config = ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() };
    let mut pair = Pair::new(&[10, 30], config.clone(), 1);
    let (client, server) = pair.establish(config);
    pair.client.add_subflow(client, client_address(1), server_address(1), false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    pair.log = Some(Vec::new());
    (pair, [client, server])
}

/// Section 3.4.2: a working subflow is closed with FINs in both directions, not with REMOVE_ADDR and not with a RST.
#[test]
fn a_working_subflow_is_closed_with_fins() {
    let (mut pair, [client, server]) = established();
    let subflow = pair.client.stats(client).unwrap().subflows[1].id;
    pair.client.remove_subflow(client, subflow, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    for side in [Side::Client, Side::Server] {
        let fins = pair.logged(|from, segment| from == side && segment.flags.contains(Flags::FIN));
        assert!(!fins.is_empty() && fins.iter().all(|fin| path_of(side, fin) == 1));
    }
    let is_removal = |option: &MptcpOption| matches!(option, MptcpOption::RemoveAddr(_));
    assert!(pair.logged(|_, segment| is_rst(segment) || has_option(segment, is_removal)).is_empty());
    pair.exchange_and_close(client, server);
}

/// Section 3.5: two fast closes cross. Each side ends at once and keeps no state.
#[test]
fn two_fast_closes_cross() {
    let (mut pair, [client, server]) = established();
    pair.client.send(client, pattern(0, 10_000), pair.now).unwrap();
    pair.run_for(Duration::from_millis(5));
    pair.client.abort(client, pair.now).unwrap();
    pair.server.abort(server, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    for events in [&pair.client_events, &pair.server_events] {
        let reasons: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Closed { reason, .. } => Some(*reason),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, [CloseReason::Aborted]);
    }
    pair.assert_released(client, server);
}
