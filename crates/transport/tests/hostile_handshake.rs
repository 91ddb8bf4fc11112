//! Peers that lie while they open connections and subflows.

use transport::error::CloseReason;
use transport::{ConnectionConfig, EndpointConfig, Event};
use units::Duration;
use wire::mptcp::{MpJoin, MptcpOption};
use wire::{Flags, Payload};

use crate::forger::Forger;
use crate::live::live_bytes;
use crate::victim::{Victim, resets};

fn config() -> ConnectionConfig {
    ConnectionConfig::default()
}

fn established_subflows(victim: &Victim) -> usize {
    victim.events.iter().filter(|event| matches!(event, Event::SubflowEstablished { .. })).count()
}

#[test]
fn a_join_ack_with_a_wrong_hmac_is_reset_and_its_other_options_and_data_count_for_nothing() {
    let mut victim = Victim::new(&config());
    let (mut forger, id) = victim.connect(true);
    let before = established_subflows(&victim);
    let f = victim.begin_join(&mut forger);
    // An attacker saw the token but not the keys; the ACK also carries data with a mapping.
    let mut ack = forger.data(f, 1000, victim.now);
    ack.options.mptcp.insert(0, MptcpOption::Join(MpJoin::Ack { hmac: [7; 20] }));
    let answers = victim.inject(ack);
    assert_eq!(resets(&answers), 1);
    assert_eq!(established_subflows(&victim), before);
    assert_eq!(victim.stats(id).received_bytes, 0, "data of a stranger are not data of the connection");
    assert_eq!(victim.send_data(&mut forger, 0, 100).len(), 1, "the first subflow lives");
    assert_eq!(victim.read(id, &forger, 0), 100);
    victim.assert_honest_goes_on();
}

#[test]
fn a_syn_ack_with_a_wrong_hmac_is_reset() {
    let mut victim = Victim::new(&config());
    let (mut forger, id) = victim.connect(true);
    let flow = victim.new_flow();
    victim.endpoint.add_subflow(id, flow.remote, flow.local, false, victim.now).unwrap();
    let syn = victim.wait(Duration::ZERO).remove(0);
    assert!(syn.flags.contains(Flags::SYN));
    forger.flows.push(flow);
    forger.learn(&syn);
    let answers = victim.play(&mut forger, |forger, now| {
        let mut answer = forger.syn_ack(1, now);
        let MptcpOption::Join(MpJoin::SynAck { hmac, .. }) = &mut answer.options.mptcp[0] else { panic!() };
        *hmac ^= 1;
        answer
    });
    assert_eq!(resets(&answers), 1);
    assert!(victim.stats(id).subflows.iter().all(|subflow| subflow.id.0 == 0 || subflow.established_at.is_none()));
    victim.send_data(&mut forger, 0, 100);
    assert_eq!(victim.read(id, &forger, 0), 100);
}

#[test]
fn joins_that_fail_again_and_again_cost_neither_memory_nor_the_connection() {
    let mut victim = Victim::new(&config());
    let (mut forger, id) = victim.connect(true);
    let mut after_some = 0;
    // More rounds than there are subflow identifiers.
    for round in 0..70_000_u32 {
        let mut flow = forger.flows[0].clone();
        flow.local.set_port(2000 + (round % 1000) as u16);
        forger.flows.truncate(1);
        forger.flows.push(flow);
        victim.play(&mut forger, |forger, now| forger.join_syn(1, now));
        let answers = victim.play(&mut forger, |forger, now| forger.ack(1, now));
        assert_eq!(resets(&answers), 1, "no MP_JOIN, no subflow");
        victim.events.clear();
        if round == 1000 {
            after_some = live_bytes();
        }
    }
    assert!(live_bytes() < after_some + 100_000, "{} octets more", live_bytes() - after_some);
    forger.flows.truncate(1);
    let f = victim.join(&mut forger);
    victim.send_data(&mut forger, f, 500);
    assert_eq!(victim.read(id, &forger, 0), 500, "an honest join still succeeds");
    victim.assert_honest_goes_on();
}

#[test]
fn a_flood_of_joins_takes_no_more_subflows_than_allowed() {
    let mut victim = Victim::new(&ConnectionConfig { subflows_max: 4, ..config() });
    let (mut forger, id) = victim.connect(true);
    for _ in 0..500 {
        victim.begin_join(&mut forger);
    }
    assert_eq!(victim.stats(id).subflows.len(), 4);
    victim.wait(Duration::from_secs(200));
    forger.flows.truncate(1);
    let f = victim.join(&mut forger);
    victim.send_data(&mut forger, f, 500);
    assert_eq!(victim.read(id, &forger, 0), 500, "once the flood is over, joins succeed again");
    victim.assert_honest_goes_on();
}

#[test]
fn a_flood_of_syns_takes_the_backlog_at_most_and_leaves_nothing_behind() {
    let mut victim = Victim::with_limits(&config(), EndpointConfig { backlog: 64, ..EndpointConfig::default() });
    victim.assert_honest_goes_on();
    let mut peak = 0;
    let mut levels = Vec::new();
    for round in 0..4 {
        let before = live_bytes();
        let mut answered = 0;
        for n in 0..5000_u32 {
            let mut forger = Forger::new(n % 2 == 0, 1);
            let mut flow = victim.new_flow();
            flow.local.set_port(1024 + (round * 5000 + n) as u16);
            forger.flows.push(flow);
            answered += victim.inject(forger.syn(0, victim.now)).len();
        }
        assert_eq!(answered, 5000, "past the backlog with cookies");
        assert!(victim.endpoint.footprint().connections <= 65);
        peak = peak.max(live_bytes() - before);
        victim.assert_honest_goes_on();
        victim.wait(Duration::from_secs(300));
        victim.events.clear();
        levels.push(live_bytes());
    }
    assert!(peak < 64 * 16_384, "{peak} octets for 64 half-open connections");
    assert!(levels[3] <= levels[1] + 4096, "each flood leaves something behind: {levels:?}");
    let (mut forger, id) = victim.connect(true);
    victim.send_data(&mut forger, 0, 10);
    assert_eq!(victim.read(id, &forger, 0), 10, "the next honest peer is served");
}

/// Complete connections, each closed by us, so TIME-WAIT is ours. The honest connection keeps its place, and so do
/// connections in use.
#[test]
fn connections_in_time_wait_give_way_to_new_ones() {
    let mut victim = Victim::with_limits(&config(), EndpointConfig { connections_max: 8, ..EndpointConfig::default() });
    for _ in 0..40 {
        let (mut forger, id) = victim.connect(false);
        victim.endpoint.close(id, victim.now).unwrap();
        victim.wait(Duration::ZERO).iter().for_each(|segment| {
            forger.learn(segment);
        });
        victim.play(&mut forger, |forger, now| {
            let mut fin = forger.ack(0, now);
            fin.flags |= Flags::FIN;
            fin
        });
        victim.endpoint.release(id);
        victim.wait(Duration::ZERO);
        assert!(victim.endpoint.footprint().connections <= 8);
        victim.events.clear();
    }
    assert_eq!(victim.endpoint.footprint().connections, 8);
    let kept: Vec<_> = (0..7).map(|_| victim.connect(true)).collect();
    let mut forger = Forger::new(true, 5);
    forger.flows.push(victim.new_flow());
    let syn = forger.syn(0, victim.now);
    assert_eq!(victim.inject(syn), [], "all are in use");
    victim.assert_honest_goes_on();
    assert_eq!(kept.iter().filter(|(_, id)| victim.stats(*id).closed_at.is_some()).count(), 0);
    victim.wait(Duration::from_secs(100));
    assert_eq!(victim.endpoint.footprint().connections, 8);
}

#[test]
fn the_token_of_a_failed_handshake_leads_nowhere() {
    let mut victim = Victim::new(&config());
    let mut forger = Forger::new(true, 5);
    let flow = victim.new_flow();
    forger.flows.push(flow);
    victim.play(&mut forger, |forger, now| forger.syn(0, now));
    victim.play(&mut forger, |forger, now| {
        let mut reset = forger.ack(0, now);
        reset.flags = Flags::RST;
        reset
    });
    // Another connection may have the place of the failed one by now.
    let (_, id) = victim.connect(true);
    let f = forger.flows.len();
    let flow = victim.new_flow();
    forger.flows.push(flow);
    let answers = victim.play(&mut forger, |forger, now| forger.join_syn(f, now));
    assert_eq!(resets(&answers), 1);
    assert_eq!(victim.stats(id).subflows.len(), 1);
}

#[test]
fn strange_options_on_a_syn_are_bounded() {
    for (mss, window_scale) in [(Some(0), Some(255)), (Some(1), Some(15)), (Some(65535), Some(14)), (None, None)] {
        let mut victim = Victim::new(&config());
        let (mut forger, id) = victim.connect_as(Forger { mss, window_scale, ..Forger::new(true, 3) });
        let data = Payload::from(vec![1; 20_000]);
        victim.endpoint.send(id, data, victim.now).unwrap();
        let mut octets = 0;
        for _ in 0..2000 {
            let sent = victim.wait(Duration::from_millis(1));
            for segment in &sent {
                octets += segment.payload.len();
                assert!(segment.payload.len() + segment.options.encoded_len() <= 1460);
                assert!(segment.payload.len() >= 20 || octets >= 20_000, "no small pieces: {}", segment.payload.len());
                forger.learn(segment);
            }
            if !sent.is_empty() {
                let sent = victim.play(&mut forger, |forger, now| forger.ack(0, now));
                victim.sent.extend(sent);
            }
        }
        assert!(octets >= 20_000, "{octets} with MSS {mss:?} and window scale {window_scale:?}");
        assert_eq!(victim.stats(id).acked_bytes, 20_000);
    }
}

#[test]
fn data_on_a_syn_wait_for_the_handshake() {
    let mut victim = Victim::new(&config());
    let mut forger = Forger::new(false, 3);
    let flow = victim.new_flow();
    forger.flows.push(flow);
    let answers = victim.play(&mut forger, |forger, now| {
        let mut syn = forger.syn(0, now);
        syn.payload = Payload::from(vec![9; 5000]);
        syn
    });
    assert!(answers[0].flags.contains(Flags::SYN | Flags::ACK));
    assert_eq!(answers[0].ack, forger.flows[0].iss + 1, "the data were not taken");
    victim.play(&mut forger, |forger, now| forger.third_ack(0, now));
    let id = victim.endpoint.accept(victim.listener).unwrap();
    assert_eq!(victim.stats(id).received_bytes, 0);
}

#[test]
fn a_stream_that_ends_before_the_peer_has_shown_mptcp_says_so_once() {
    let mut victim = Victim::new(&config());
    let (mut forger, id) = victim.connect_out(config());
    victim.endpoint.shutdown(id, victim.now).unwrap();
    let mut said = victim.wait(Duration::from_millis(10));
    said.extend(victim.play(&mut forger, |forger, now| forger.ack(0, now)));
    let ends = |option: &MptcpOption| matches!(option, MptcpOption::Dss(dss) if dss.data_fin);
    assert_eq!(said.iter().filter(|segment| segment.options.mptcp.iter().any(ends)).count(), 1, "{said:?}");
    assert!(said.len() <= 2);
}

#[test]
fn a_connection_established_after_its_listener_closed_is_reset() {
    let mut victim = Victim::new(&config());
    let mut forger = Forger::new(true, 3);
    let flow = victim.new_flow();
    forger.flows.push(flow);
    victim.play(&mut forger, |forger, now| forger.syn(0, now));
    let before = victim.endpoint.connections().count();
    victim.endpoint.close_listener(victim.listener, victim.now);
    let answers = victim.play(&mut forger, |forger, now| forger.third_ack(0, now));
    assert_eq!(resets(&answers), 1);
    victim.wait(Duration::from_secs(1));
    assert_eq!(victim.endpoint.connections().count(), before - 1);
}

#[test]
fn attempts_to_open_subflows_do_not_keep_a_dead_connection_alive() {
    let mut victim = Victim::new(&config());
    let (mut forger, id) = victim.connect_out(config());
    victim.play(&mut forger, |forger, now| forger.ack(0, now));
    for n in 2..5 {
        let address = std::net::SocketAddr::from(([10, 9, 0, n], 80));
        victim.play(&mut forger, |forger, now| forger.signal(0, forger.add_addr(n, address), now));
    }
    victim.endpoint.send(id, Payload::from(vec![1; 5000]), victim.now).unwrap();
    // The peer falls silent on all addresses: the user time-out (300 s), then a minute for a new subflow.
    victim.wait(Duration::from_secs(400));
    assert!(victim.stats(id).closed_at.is_some(), "{:#?}", victim.stats(id));
}

/// RSTs are not authenticated, and a peer may open and reset connections as fast as it likes. Each costs no more, and
/// for no longer, than one that is left open.
#[test]
fn connections_that_are_reset_are_forgotten() {
    let limits = EndpointConfig { connections_max: 50, ..EndpointConfig::default() };
    let mut victim = Victim::with_limits(&ConnectionConfig::default(), limits);
    let before = victim.endpoint.footprint();
    let mut ids = Vec::new();
    for n in 0..30 {
        let (mut forger, id): (Forger, _) = victim.connect_as(Forger::new(true, 0xf000 + n));
        victim.play(&mut forger, |forger, now| {
            let mut rst = forger.ack(0, now);
            rst.flags = wire::Flags::RST;
            rst
        });
        ids.push(id);
    }
    assert_eq!(victim.endpoint.footprint().connections, before.connections + 30);
    victim.wait(Duration::from_secs(20));
    let ended = |event: &&Event| matches!(event, Event::Closed { reason: CloseReason::Reset, .. });
    assert_eq!(victim.events.iter().filter(ended).count(), 30);
    ids.into_iter().for_each(|id| victim.endpoint.release(id));
    victim.wait(Duration::ZERO);
    assert_eq!(victim.endpoint.footprint(), before);
    victim.assert_honest_goes_on();
}
