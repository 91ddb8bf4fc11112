//! When a connection is fully established (RFC 8684 section 3.1), and the events that its owner gets.

use std::net::SocketAddr;

use transport::error::{ConnectError, ConnectionError};
use transport::{ConnectionConfig, ConnectionId, Event, SubflowId};
use units::Duration;
use wire::Segment;
use wire::mptcp::{AddAddr, AddressId, Dss, MpPrio, MptcpOption};

use crate::forger::Forger;
use crate::script::{Script, mptcp_config};
use crate::victim::{self, Victim};

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

/// Creates a connection that the engine opened. The peer has sent nothing since its SYN/ACK.
fn unconfirmed() -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&config());
    victim.events.clear();
    let (forger, id) = victim.connect_out(config());
    (victim, forger, id)
}

fn announced() -> SocketAddr {
    SocketAddr::from(([10, 9, 0, 7], 8080))
}

/// Builds an ACK with `option` as its only option.
fn bare(forger: &Forger, option: MptcpOption, victim: &Victim) -> Segment {
    let mut segment = forger.ack(0, victim.now);
    segment.options.mptcp = vec![option].into_iter().collect();
    segment
}

fn echoes(segments: &[Segment]) -> Vec<AddAddr> {
    let options = segments.iter().flat_map(|segment| &segment.options.mptcp);
    options
        .filter_map(|option| match option {
            MptcpOption::AddAddr(add) if add.is_echo() => Some(*add),
            _ => None,
        })
        .collect()
}

fn confirmations(victim: &Victim) -> usize {
    victim.events.iter().filter(|event| matches!(event, Event::FullyEstablished(_))).count()
}

/// Whether the engine may open a subflow now. Gives up an opened subflow at once.
fn may_join(victim: &mut Victim, id: ConnectionId) -> bool {
    let (local, remote) = (victim::victim_address(1).ip(), announced());
    match victim.endpoint.add_subflow(id, SocketAddr::new(local, 0), remote, false, victim.now) {
        Ok(subflow) => victim.endpoint.remove_subflow(id, subflow, victim.now).is_ok(),
        Err(ConnectError::NotMptcp) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_address_confirms_at_the_initiator_and_is_echoed() {
    let (mut victim, forger, id) = unconfirmed();
    assert!(!may_join(&mut victim, id));
    let now = victim.now;
    let address = victim::victim_address(2).ip();
    assert_eq!(victim.endpoint.announce_address(id, address, None, now), Err(ConnectionError::WrongState));
    assert_eq!(confirmations(&victim), 0);
    let option = forger.add_addr(3, announced());
    let answers = victim.inject(bare(&forger, option.clone(), &victim));
    let MptcpOption::AddAddr(add) = option else { panic!() };
    assert_eq!(echoes(&answers), [AddAddr { hmac: None, ..add }]);
    let expected = [
        Event::Connected { connection: id, mptcp: true },
        Event::FullyEstablished(id),
        Event::AddressAnnounced { connection: id, address_id: AddressId(3), address: announced() },
    ];
    let heard: Vec<_> =
        victim.events.iter().filter(|event| !matches!(event, Event::SubflowEstablished { .. })).cloned().collect();
    assert_eq!(heard, expected);
    assert!(may_join(&mut victim, id));
    assert_eq!(victim.endpoint.announce_address(id, address, None, victim.now), Ok(()));
}

/// After the address, the engine's first data go with a DSS: MP_CAPABLE has nothing left to confirm.
#[test]
fn what_an_address_has_confirmed_needs_no_keys_beside_data() {
    for confirmed in [false, true] {
        let (mut victim, forger, id) = unconfirmed();
        if confirmed {
            victim.inject(bare(&forger, forger.add_addr(3, announced()), &victim));
        }
        victim.endpoint.send(id, wire::Payload::from(vec![1; 100]), victim.now).unwrap();
        let sent = victim.wait(Duration::ZERO);
        let options = &sent.iter().find(|segment| !segment.payload.is_empty()).unwrap().options.mptcp;
        assert_eq!(matches!(options[0], MptcpOption::Dss(_)), confirmed, "{options:?}");
        assert_eq!(matches!(options[0], MptcpOption::Capable(_)), !confirmed, "{options:?}");
    }
}

#[test]
fn an_address_without_the_right_hmac_confirms_nothing() {
    let (mut victim, forger, id) = unconfirmed();
    let MptcpOption::AddAddr(right) = forger.add_addr(3, announced()) else { panic!() };
    for hmac in [None, right.hmac.map(|hmac| hmac ^ 1)] {
        let answers = victim.inject(bare(&forger, MptcpOption::AddAddr(AddAddr { hmac, ..right }), &victim));
        assert_eq!(echoes(&answers), []);
    }
    victim.inject(bare(&forger, MptcpOption::Prio(MpPrio { backup: true }), &victim));
    assert_eq!(confirmations(&victim), 0);
    assert!(!may_join(&mut victim, id));
}

#[test]
fn a_data_ack_confirms_and_a_dss_without_one_does_not() {
    let (mut victim, mut forger, id) = unconfirmed();
    let mut data = forger.data(0, 100, victim.now);
    let MptcpOption::Dss(Dss { data_ack, .. }) = &mut data.options.mptcp[0] else { panic!() };
    *data_ack = None;
    victim.inject(data);
    forger.sent(0, 100);
    assert_eq!(victim.read(id, &forger, 0), 100, "its data count all the same");
    assert_eq!(confirmations(&victim), 0);
    assert!(!may_join(&mut victim, id));
    for _ in 0..3 {
        victim.inject(forger.ack(0, victim.now));
    }
    assert_eq!(confirmations(&victim), 1, "once is enough");
    assert!(may_join(&mut victim, id));
}

/// The listener's connection is fully established from the third ACK on. Its events come in the order that [`Event`]
/// documents.
#[test]
fn an_accepted_connection_is_fully_established_and_echoes_addresses_before_any_data() {
    let mut victim = Victim::new(&config());
    victim.events.clear();
    let mut forger = Forger::new(true, 0xf0f0);
    let flow = victim.new_flow();
    let (remote, local) = (flow.local, flow.remote);
    forger.flows.push(flow);
    victim.play(&mut forger, |forger, now| forger.syn(0, now));
    assert_eq!(victim.events, []);
    victim.play(&mut forger, |forger, now| forger.third_ack(0, now));
    let id = victim.endpoint.accept(victim.listener).unwrap();
    let subflow = SubflowId(0);
    let expected = [
        Event::SubflowEstablished { connection: id, subflow, local, remote },
        Event::FullyEstablished(id),
        Event::Incoming(victim.listener),
    ];
    assert_eq!(victim.events, expected);
    assert!(may_join(&mut victim, id));
    let answers = victim.inject(bare(&forger, forger.add_addr(3, announced()), &victim));
    assert_eq!(echoes(&answers).len(), 1);
    assert_eq!(confirmations(&victim), 1);
}

/// MP_CAPABLE with data would need more room than a DSS, so segments grow by four octets once the peer has confirmed
/// MPTCP. The window counts in these: after a time-out it is one segment, then two (RFC 5681 section 3.1).
#[test]
fn the_window_counts_in_segments_of_the_size_that_is_confirmed() {
    let mut script = Script::connect(mptcp_config());
    script.expect("S 0 mpc");
    script.run_until(100);
    script.inject("SA 0 ack 1 mss 1000 mpc");
    script.expect("A 1 ack 1 mpc");
    assert_eq!(script.stats().mss_bytes, 976);
    script.inject("A 1 ack 1 dack 1");
    assert_eq!(script.stats().mss_bytes, 980);
    script.send(980);
    script.expect("A 1+980 ack 1 dack 1 map 1");
    script.expect_at(400, "A 1+980 ack 1 dack 1 map 1");
    assert_eq!(script.stats().cwnd_bytes, 980);
    script.send(5000);
    script.expect_nothing();
    script.run_until(500);
    script.inject("A 1 ack 981 dack 981");
    assert_eq!(script.drain(), ["A 981+980 ack 1 dack 1 map 981", "A 1961+980 ack 1 dack 1 map 1961"]);
}
