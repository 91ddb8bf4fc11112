//! Peers that flood the owner with events, or occupy all subflow places.

use std::net::SocketAddr;

use arrayvec::ArrayVec;
use transport::{ConnectionConfig, ConnectionId, Event, SubflowId};
use units::Duration;
use wire::mptcp::{AddressId, MpPrio, MptcpOption, RemoveAddr};
use wire::{Flags, Segment};

use crate::forger::Forger;
use crate::live::live_bytes;
use crate::victim::{Victim, resets};

fn attack() -> (Victim, Forger, ConnectionId) {
    attack_with(ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() })
}

fn attack_with(config: ConnectionConfig) -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&config);
    let (forger, id) = victim.connect(true);
    victim.events.clear();
    (victim, forger, id)
}

/// Injects a segment and lets the victim answer it. The owner does not read its events.
fn inject_unheard(victim: &mut Victim, segment: Segment) {
    victim.endpoint.handle_segment(segment, victim.now);
    while victim.endpoint.poll_transmit(victim.now).is_some() {}
}

/// Returns all events that the owner has not read.
fn unheard(victim: &mut Victim) -> Vec<Event> {
    std::iter::from_fn(|| victim.endpoint.poll_event()).collect()
}

fn prio(backup: bool) -> MptcpOption {
    MptcpOption::Prio(MpPrio { backup })
}

fn remove(ids: impl IntoIterator<Item = u8>) -> MptcpOption {
    let address_ids: ArrayVec<_, 37> = ids.into_iter().map(AddressId).collect();
    MptcpOption::RemoveAddr(RemoveAddr { address_ids })
}

fn address(n: u32) -> SocketAddr {
    SocketAddr::from(([10, 9, (n >> 8) as u8, n as u8], 80))
}

#[test]
fn of_a_priority_that_flaps_the_last_word_waits() {
    let (mut victim, forger, id) = attack();
    let before = live_bytes();
    for n in 0..20_001 {
        let segment = forger.signal(0, prio(n % 2 == 0), victim.now);
        inject_unheard(&mut victim, segment);
    }
    assert!(live_bytes() - before < 5000, "{} octets", live_bytes() - before);
    let changed = |backup| Event::PriorityChanged { connection: id, subflow: SubflowId(0), backup };
    assert_eq!(unheard(&mut victim), [changed(true)]);
    let segment = forger.signal(0, prio(false), victim.now);
    inject_unheard(&mut victim, segment);
    assert_eq!(unheard(&mut victim), [changed(false)], "what was heard is not taken back");
}

#[test]
fn what_changes_nothing_is_no_event() {
    let (mut victim, forger, id) = attack();
    let mut heard = Vec::new();
    for option in [prio(false), remove(1..=30), prio(true), prio(true), forger.add_addr(5, address(1))] {
        for _ in 0..100 {
            let segment = forger.signal(0, option.clone(), victim.now);
            inject_unheard(&mut victim, segment);
            heard.extend(unheard(&mut victim));
        }
    }
    for _ in 0..100 {
        let segment = forger.signal(0, remove([5, 6, 7]), victim.now);
        inject_unheard(&mut victim, segment);
        heard.extend(unheard(&mut victim));
    }
    let expected = [
        Event::PriorityChanged { connection: id, subflow: SubflowId(0), backup: true },
        Event::AddressAnnounced { connection: id, address_id: AddressId(5), address: address(1) },
        Event::AddressWithdrawn { connection: id, address_id: AddressId(5) },
    ];
    assert_eq!(heard, expected);
}

#[test]
fn of_addresses_that_come_and_go_the_last_word_on_each_identifier_waits() {
    let (mut victim, forger, id) = attack();
    let before = live_bytes();
    for n in 0..10_000_u32 {
        let which = 1 + (n % 255) as u8;
        for option in [forger.add_addr(which, address(n)), remove([which])] {
            let segment = forger.signal(0, option, victim.now);
            inject_unheard(&mut victim, segment);
        }
    }
    let last = forger.signal(0, forger.add_addr(9, address(77)), victim.now);
    inject_unheard(&mut victim, last);
    assert!(live_bytes() - before < 60_000, "{} octets", live_bytes() - before);
    let unheard = unheard(&mut victim);
    assert_eq!(unheard.len(), 255);
    let announced: Vec<_> =
        unheard.iter().filter(|event| !matches!(event, Event::AddressWithdrawn { .. })).cloned().collect();
    assert_eq!(announced, [Event::AddressAnnounced { connection: id, address_id: AddressId(9), address: address(77) }]);
}

#[test]
fn attempts_of_the_peer_that_fail_are_silent() {
    let (mut victim, mut forger, _) = attack();
    for _ in 0..1000 {
        forger.flows.truncate(1);
        let f = victim.begin_join(&mut forger);
        assert_eq!(resets(&victim.inject(forger.ack(f, victim.now))), 1, "no MP_JOIN, no subflow");
    }
    assert_eq!(victim.events, []);
}

fn is_syn_ack(segments: &[Segment]) -> bool {
    matches!(segments, [answer] if answer.flags == Flags::SYN | Flags::ACK)
}

/// Sends the first segment of a join from a new address. Returns the answers.
fn join_syn(victim: &mut Victim, forger: &mut Forger) -> Vec<Segment> {
    let flow = victim.new_flow();
    forger.flows.push(flow);
    let f = forger.flows.len() - 1;
    victim.play(forger, |forger, now| forger.join_syn(f, now))
}

fn limited() -> (Victim, Forger, ConnectionId) {
    attack_with(ConnectionConfig { path_manager: "manual".into(), subflows_max: 4, ..ConnectionConfig::default() })
}

/// Three joins occupy three places: no other join gets in for a second, then the oldest gives way.
#[test]
fn joins_that_are_only_begun_give_way_after_a_second() {
    let (mut victim, mut forger, id) = limited();
    for _ in 0..3 {
        assert!(is_syn_ack(&join_syn(&mut victim, &mut forger)));
        victim.wait(Duration::from_millis(100));
    }
    assert_eq!(join_syn(&mut victim, &mut forger), [], "silence, so that the SYN is repeated");
    let honest = forger.flows.len() - 1;
    victim.wait(Duration::from_millis(699));
    let again =
        |victim: &mut Victim, forger: &mut Forger, f: usize| victim.play(forger, |forger, now| forger.join_syn(f, now));
    assert_eq!(again(&mut victim, &mut forger, honest), []);
    victim.wait(Duration::from_millis(1));
    assert!(is_syn_ack(&again(&mut victim, &mut forger, honest)));
    victim.play(&mut forger, |forger, now| forger.join_ack(honest, now));
    victim.send_data(&mut forger, honest, 500);
    assert_eq!(victim.read(id, &forger, 0), 500, "the honest join has succeeded");
    // The oldest join has lost its place: its third ACK is too late.
    let late = victim.play(&mut forger, |forger, now| forger.join_ack(1, now));
    assert_eq!(resets(&late), 1);
    // The other joins keep their places and can still complete.
    let f = 2;
    victim.play(&mut forger, |forger, now| forger.join_ack(f, now));
    victim.send_data(&mut forger, f, 500);
    assert_eq!(victim.read(id, &forger, 500), 500);
    victim.assert_honest_goes_on();
}

#[test]
fn joins_that_are_only_begun_are_forgotten_after_ten_seconds() {
    let (mut victim, mut forger, id) = limited();
    let open = |victim: &Victim| victim.stats(id).subflows.iter().filter(|flow| flow.state != "CLOSED").count();
    for _ in 0..3 {
        join_syn(&mut victim, &mut forger);
    }
    let repeated = victim.wait(Duration::from_millis(9_999));
    assert_eq!((open(&victim), repeated.len()), (4, 9), "SYN/ACKs again after 1, 3 and 7 s");
    assert_eq!(victim.wait(Duration::from_millis(1)), [], "silence: nobody may be there");
    assert_eq!(open(&victim), 1);
    assert_eq!(victim.wait(Duration::from_secs(300)), []);
    assert_eq!(victim.events, []);
}

/// Established subflows never give way.
#[test]
fn subflows_that_are_established_keep_their_places() {
    let (mut victim, mut forger, id) = limited();
    for _ in 0..3 {
        victim.join(&mut forger);
    }
    victim.wait(Duration::from_secs(60));
    let answers = join_syn(&mut victim, &mut forger);
    assert_eq!(resets(&answers), 1);
    let established = victim.stats(id).subflows.iter().filter(|subflow| subflow.state == "ESTABLISHED").count();
    assert_eq!(established, 4);
}
