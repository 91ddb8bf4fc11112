//! Peers that abuse MPTCP's signals, and strangers that guess.

use std::net::SocketAddr;

use arrayvec::ArrayVec;
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, ConnectionId, Event};
use units::Duration;
use wire::mptcp::{AddAddr, AddressId, Experimental, Key, MpFastclose, MpPrio, MptcpOption, RemoveAddr};
use wire::{Flags, Segment};

use crate::forger::Forger;
use crate::live::live_bytes;
use crate::victim::{Victim, resets, victim_address};

fn attack() -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&ConnectionConfig::default());
    let (forger, id) = victim.connect(true);
    (victim, forger, id)
}

/// The victim has opened the connection, from one of its two addresses: it may join where the forger says.
fn attack_on_initiator() -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&ConnectionConfig::default());
    victim.endpoint.add_local_address(LocalAddress { ip: victim_address(2).ip(), backup: false }, victim.now);
    let (mut forger, id) = victim.connect_out(ConnectionConfig::default());
    let answers = victim.play(&mut forger, |forger, now| forger.ack(0, now));
    assert_eq!(syns(&answers), 1, "it joins from its other address");
    (victim, forger, id)
}

fn removal(id: u8) -> MptcpOption {
    let address_ids: ArrayVec<_, 37> = [AddressId(id)].into_iter().collect();
    MptcpOption::RemoveAddr(RemoveAddr { address_ids })
}

fn announced(victim: &mut Victim) -> Vec<(AddressId, SocketAddr)> {
    let events = victim.events.drain(..).filter_map(|event| match event {
        Event::AddressAnnounced { address_id, address, .. } => Some((address_id, address)),
        _ => None,
    });
    events.collect()
}

fn assert_alive(victim: &mut Victim, forger: &mut Forger, id: ConnectionId) {
    victim.send_data(forger, 0, 1000);
    assert_eq!(victim.read(id, forger, 0), 1000);
    victim.assert_honest_goes_on();
}

fn echoes(segment: &Segment) -> bool {
    segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::AddAddr(add) if add.is_echo()))
}

fn syns(segments: &[Segment]) -> usize {
    segments.iter().filter(|segment| segment.flags == Flags::SYN).count()
}

#[test]
fn addresses_with_wrong_hmacs_are_not_heard() {
    let (mut victim, mut forger, id) = attack_on_initiator();
    let (before, mut opened) = (live_bytes(), 0);
    for n in 0..10_000_u32 {
        let address = SocketAddr::from(([10, 9, (n >> 8) as u8, n as u8], 80));
        let MptcpOption::AddAddr(right) = forger.add_addr(n as u8, address) else { panic!() };
        let wrong = AddAddr { hmac: Some(right.hmac.unwrap() ^ (1 << (n % 64))), ..right };
        let answers = victim.inject(forger.signal(0, MptcpOption::AddAddr(wrong), victim.now));
        assert!(!answers.iter().any(echoes));
        opened += syns(&answers);
    }
    assert_eq!(opened, 0);
    assert!(!victim.events.iter().any(|event| matches!(event, Event::AddressAnnounced { .. })));
    assert!(live_bytes() - before < 50_000);
    assert_alive(&mut victim, &mut forger, id);
}

#[test]
fn addresses_of_nobody_are_not_remembered() {
    let (mut victim, mut forger, id) = attack_on_initiator();
    let nobodies =
        ["0.0.0.0:80", "224.0.0.1:80", "255.255.255.255:80", "[::]:80", "[ff02::1]:80", "192.0.2.1:0"].into_iter();
    for (n, nobody) in (1..).zip(nobodies) {
        let option = forger.add_addr(n, nobody.parse().unwrap());
        assert_eq!(syns(&victim.inject(forger.signal(0, option, victim.now))), 0);
    }
    assert!(!victim.events.iter().any(|event| matches!(event, Event::AddressAnnounced { .. })));
    assert_alive(&mut victim, &mut forger, id);
}

#[test]
fn a_flood_of_right_addresses_is_bounded() {
    let (mut victim, mut forger, id) = attack_on_initiator();
    let (before, mut opened) = (live_bytes(), 0);
    for n in 0..20_000_u32 {
        let address = SocketAddr::from(([10, 9, (n >> 8) as u8, n as u8], 80));
        let option = forger.add_addr(1 + (n % 255) as u8, address);
        let answers = victim.inject(forger.signal(0, option, victim.now));
        assert!(answers.len() <= 4, "one signal, few answers");
        opened += syns(&answers);
        victim.events.clear();
    }
    assert_eq!(opened, ConnectionConfig::default().subflows_max - 2, "the places beside those of the two addresses");
    assert!(live_bytes() - before < 200_000, "{} octets", live_bytes() - before);
    assert_alive(&mut victim, &mut forger, id);
}

/// The forger withdraws each address at once, to make room for the next: one SYN and one RST for every two options.
#[test]
fn one_identifier_with_ever_new_addresses_does_not_make_the_victim_a_scanner() {
    let at_once = ConnectionConfig::default().subflows_max;
    // Identifier 0 is that of the forger's first address.
    for address_id in [5, 0] {
        let (mut victim, mut forger, id) = attack_on_initiator();
        let f = victim.join(&mut forger);
        let (mut opened, mut reset) = (0, 0);
        let mut scan = |victim: &mut Victim, times: u32| {
            for n in 0..times {
                let address = SocketAddr::from(([10, 9, (n >> 8) as u8, n as u8], 80));
                for option in [forger.add_addr(address_id, address), removal(address_id)] {
                    let answers = victim.inject(forger.signal(f, option, victim.now));
                    (opened, reset) = (opened + syns(&answers), reset + resets(&answers));
                }
            }
            core::mem::take(&mut opened)
        };
        let first = scan(&mut victim, 2500);
        assert!((1..=at_once).contains(&first), "identifier {address_id}: {first} SYNs");
        let mut later = 0;
        for _ in 0..30 {
            victim.wait(Duration::from_secs(1));
            later += scan(&mut victim, 100);
        }
        assert!((1..=30).contains(&later), "identifier {address_id}: {later} SYNs in 30 s");
        assert!(reset <= at_once + 30 + 2, "identifier {address_id}: {reset} RSTs");
        if address_id != 0 {
            assert_alive(&mut victim, &mut forger, id);
        }
    }
}

/// An honest peer whose address changes now and then is joined at once.
#[test]
fn an_address_that_changes_is_joined_at_once() {
    let (mut victim, forger, _) = attack_on_initiator();
    for n in 0..20 {
        let address = SocketAddr::from(([10, 9, 1, n], 80));
        let answers = victim.inject(forger.signal(0, forger.add_addr(1, address), victim.now));
        let joined = answers.iter().filter(|answer| answer.flags == Flags::SYN && answer.dst == address).count();
        assert_eq!(joined, 2, "from both addresses");
        victim.wait(Duration::from_secs(2));
        victim.inject(forger.signal(0, removal(1), victim.now));
    }
}

/// RFC 8684 section 3.4.1: a peer that gives an identifier another address without withdrawing it is not heard. It gets
/// no echo either, which would tell it that the address is known.
#[test]
fn an_identifier_names_one_address_until_it_is_withdrawn() {
    let (mut victim, mut forger, id) = attack_on_initiator();
    let [one, other] = [1, 2].map(|last| SocketAddr::from(([10, 9, 1, last], 80)));
    for (option, heard) in [
        (forger.add_addr(1, one), vec![(AddressId(1), one)]),
        (forger.add_addr(1, other), vec![]),
        (removal(1), vec![]),
        (forger.add_addr(1, other), vec![(AddressId(1), other)]),
        (forger.add_addr(1, one), vec![]),
    ] {
        let answers = victim.inject(forger.signal(0, option.clone(), victim.now));
        assert_eq!(announced(&mut victim), heard, "{option:?}");
        let expected = if heard.is_empty() { 0 } else { 2 };
        assert_eq!(syns(&answers), expected, "{option:?}");
        assert_eq!(answers.iter().any(echoes), !heard.is_empty(), "{option:?}");
        for _ in 0..2 {
            assert_eq!(victim.inject(forger.ack(0, victim.now)), [], "nothing is due after {option:?}");
        }
    }
    assert_alive(&mut victim, &mut forger, id);
}

#[test]
fn removing_every_address_ends_the_peers_own_connection() {
    let (mut victim, mut forger, id) = attack();
    victim.join(&mut forger);
    for first in (0..=255_u8).step_by(30) {
        let address_ids: ArrayVec<_, 37> = (first..=first.saturating_add(29)).map(AddressId).collect();
        let remove = MptcpOption::RemoveAddr(RemoveAddr { address_ids });
        victim.inject(forger.signal(0, remove, victim.now));
    }
    assert!(victim.stats(id).subflows.iter().all(|subflow| subflow.state == "CLOSED"));
    victim.wait(Duration::from_secs(120));
    assert!(victim.stats(id).closed_at.is_some());
    victim.assert_honest_goes_on();
}

#[test]
fn priorities_that_flap_are_followed_and_cost_nothing() {
    let (mut victim, mut forger, id) = attack();
    let before = live_bytes();
    for n in 0..20_000 {
        let answers = victim.inject(forger.signal(0, MptcpOption::Prio(MpPrio { backup: n % 2 == 0 }), victim.now));
        assert!(answers.len() <= 1);
        victim.events.clear();
    }
    assert!(live_bytes() - before < 20_000);
    assert!(!victim.stats(id).subflows[0].backup);
    assert_alive(&mut victim, &mut forger, id);
}

#[test]
fn fastclose_needs_the_victims_key() {
    let (mut victim, mut forger, id) = attack();
    let right = forger.peer_key.unwrap();
    for wrong in [Key(0), forger.key, Key(right.0 ^ 1)] {
        for flags in [Flags::ACK, Flags::ACK | Flags::PSH] {
            let option = MptcpOption::Fastclose(MpFastclose { receiver_key: wrong });
            let mut segment = forger.signal(0, option, victim.now);
            segment.flags = flags;
            assert_eq!(resets(&victim.inject(segment)), 0);
        }
    }
    assert_alive(&mut victim, &mut forger, id);
    let option = MptcpOption::Fastclose(MpFastclose { receiver_key: right });
    victim.inject(forger.signal(0, option, victim.now));
    assert!(victim.stats(id).closed_at.is_some(), "the right key does end it");
}

#[test]
fn resets_have_to_guess_the_exact_sequence_number() {
    // RFC 5961 section 3.
    let (mut victim, mut forger, id) = attack();
    let expected = forger.flows[0].nxt;
    let mut answers = 0;
    for n in 0..100_000_u32 {
        let mut reset = forger.ack(0, victim.now);
        reset.flags = if n % 2 == 0 { Flags::RST } else { Flags::RST | Flags::ACK };
        reset.seq = expected + 1 + n * 40_000;
        if reset.seq != expected {
            answers += victim.inject(reset).len();
        }
    }
    assert!(answers <= 2, "{answers} challenge ACKs at one instant");
    for n in 0..1000 {
        let mut syn = forger.ack(0, victim.now);
        syn.flags = Flags::SYN;
        syn.seq = expected + n;
        answers += victim.inject(syn).len();
    }
    assert!(answers <= 2);
    assert_alive(&mut victim, &mut forger, id);
}

#[test]
fn floods_of_options_are_carried_like_any_other() {
    let (mut victim, mut forger, id) = attack();
    let before = live_bytes();
    for n in 0..2000_u32 {
        let mut segment = forger.ack(0, victim.now);
        for _ in 0..20 {
            segment.options.mptcp.push(MptcpOption::Experimental(Experimental { flags: 15, data: ArrayVec::new() }));
            segment.options.mptcp.push(MptcpOption::Prio(MpPrio { backup: false }));
            segment.options.mptcp.push(forger.add_addr(7, SocketAddr::from(([10, 9, 9, n as u8], 80))));
        }
        assert!(victim.inject(segment).len() < 20);
        victim.events.clear();
    }
    assert!(live_bytes() - before < 100_000);
    assert_alive(&mut victim, &mut forger, id);
}

#[test]
fn strangers_get_a_reset_and_nothing_else() {
    let (mut victim, mut forger, id) = attack();
    let before = live_bytes();
    for n in 0..20_000_u32 {
        let mut stranger = Forger::new(true, 1);
        let mut flow = victim.new_flow();
        flow.local.set_port(n as u16);
        flow.remote.set_port(1 + (n >> 8) as u16);
        stranger.flows.push(flow);
        let mut segment = stranger.data(0, 100, victim.now);
        segment.flags = if n % 3 == 0 { Flags::SYN } else { Flags::ACK };
        // Not to the listener's port, but to one without a listener.
        segment.dst.set_port(81);
        assert!(victim.inject(segment).len() <= 1);
    }
    assert!(live_bytes() - before < 50_000);
    assert_alive(&mut victim, &mut forger, id);
}

/// RFC 9293 section 3.9.2.3 (MUST-57, MUST-63): a segment from or to an address that is not one host's gets no state and
/// no answer, since the answers of many would go to one, or one answer to many.
#[test]
fn addresses_of_many_are_not_answered() {
    let (mut victim, mut forger, id) = attack();
    let footprint = victim.endpoint.footprint();
    for address in ["224.0.0.1:80", "255.255.255.255:80", "0.0.0.0:80", "[ff02::1]:80", "[::]:80"] {
        let many: SocketAddr = address.parse().unwrap();
        let one: SocketAddr = if many.is_ipv4() { "10.9.0.9:80" } else { "[2001:db8::9]:80" }.parse().unwrap();
        for (src, dst) in [(many, one), (one, many)] {
            for flags in [Flags::SYN, Flags::ACK, Flags::SYN | Flags::ACK] {
                let mut segment = Segment::new(src, dst);
                segment.flags = flags;
                assert_eq!(victim.inject(segment), [], "{flags:?} from {src} to {dst}");
            }
        }
    }
    assert_eq!(victim.endpoint.footprint(), footprint);
    assert_alive(&mut victim, &mut forger, id);
}
