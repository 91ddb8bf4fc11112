//! Subflows whose other end has proved nothing yet (RFC 8684 section 3.2): it learns nothing of the connection, and
//! takes nothing from it.

use std::net::SocketAddr;

use transport::error::ConnectionError;
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, SubflowId};
use units::Dsn;
use wire::Segment;
use wire::mptcp::{AddressId, MpFail, MptcpOption, RemoveAddr};

use crate::script::mptcp::{end_stream, mapping, signal};
use crate::script::{Script, mptcp_config as config};

/// An octet below what the engine expects, which it answers at once.
const STRAY: &str = "A 0+1 ack 1";

/// Creates a connection and a join, as flow 2, of a host that has seen the token. It gets no further than the SYN/ACK.
fn half_open() -> Script {
    let mut script = Script::accepted();
    script.new_flow();
    script.inject("2: S 0 mss 1000 join");
    script.expect("2: SA 0 ack 1 join");
    script
}

/// Lets the engine close the first subflow, whose FIN the peer has received.
fn leave_first(script: &mut Script) {
    script.command(|endpoint, id, now| endpoint.remove_subflow(id, SubflowId(0), now)).unwrap();
    script.expect("FA 1 ack 1 dack 1");
    script.inject("A 1 ack 2 dack 1");
    script.expect_nothing();
}

/// Creates a connection that the engine opened and whose SYN with MP_JOIN, on flow 2, the peer has not answered.
fn unanswered() -> Script {
    let mut script = Script::connect(config());
    script.expect("S 0 mpc");
    script.inject("SA 0 ack 1 mss 1000 sackok mpc");
    script.expect("A 1 ack 1 mpc");
    script.inject("A 1 ack 1 dack 1");
    let (local, remote) = ("10.0.0.3:5000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    script.command(|endpoint, id, now| endpoint.add_subflow(id, local, remote, false, now)).unwrap();
    script.expect("2: S 0 join");
    script
}

/// Creates a connection that the engine opened, with a subflow from each of its two addresses and the peer's only one.
fn meshed(subflows_max: usize) -> Script {
    let mesh = ConnectionConfig { path_manager: "full-mesh".into(), subflows_max, ..config() };
    let mut script = Script::connect(mesh);
    script.expect("S 0 mpc");
    let second = LocalAddress { ip: "10.0.0.3".parse().unwrap(), backup: false };
    script.command(|endpoint, _, now| endpoint.add_local_address(second, now));
    script.inject("SA 0 ack 1 mss 1000 sackok mpc");
    script.expect("A 1 ack 1 mpc");
    script.inject("A 1 ack 1 dack 1");
    script.expect("2: S 0 join");
    script.inject("2: SA 0 ack 1 mss 1000 join");
    script.expect("2: A 1 ack 1 join");
    script.inject("2: A 1 ack 1 dack 1");
    // Long enough to be no failure.
    script.run_for(10_000);
    script.expect_nothing();
    script
}

/// Somebody who has seen the token forges a join, as flow `flow`, from the peer's address and port to the engine's second
/// address.
fn forge(script: &mut Script, flow: u16) {
    script.inject_with("S 0 mss 1000 join", |syn| {
        (syn.src, syn.dst) = ("10.0.0.2:80".parse().unwrap(), SocketAddr::from(([10, 0, 0, 3], 7000 + flow)));
    });
    script.expect(&format!("{flow}: SA 0 ack 1 join"));
}

#[test]
fn who_has_proved_nothing_learns_no_data_sequence_number() {
    let mut script = half_open();
    script.inject(&format!("2: {STRAY}"));
    script.expect("2: A 1 ack 1");
    script.inject("2: A 1 ack 1 join");
    script.expect("2: A 1 ack 1 dack 1");
    script.inject(&format!("2: {STRAY}"));
    script.expect("2: A 1 ack 1 dack 1");
}

/// The same in the other direction: the SYN with MP_JOIN is answered by a SYN that proves nothing (RFC 9293 figure 8).
#[test]
fn who_answers_a_join_without_proof_learns_none_either() {
    let mut script = unanswered();
    script.inject("2: S 0 mss 1000");
    script.expect("2: SA 0 ack 1 join");
    script.inject(&format!("2: {STRAY}"));
    script.expect("2: A 1 ack 1");
}

/// Options of such a SYN count for nothing.
#[test]
fn who_answers_a_join_without_proof_is_not_believed() {
    let claims: [fn(&mut Segment); 4] = [
        |syn| {
            let address_ids = [AddressId(0), AddressId(1)].into_iter().collect();
            syn.options.mptcp.push(MptcpOption::RemoveAddr(RemoveAddr { address_ids }));
        },
        |syn| syn.options.mptcp.push(MptcpOption::Fail(MpFail { dsn: Dsn(1) })),
        |syn| signal(syn).mapping = Some(mapping(1, 1, 0)),
        |syn| end_stream(syn, || 1),
    ];
    for add in claims {
        let mut script = unanswered();
        script.events.clear();
        script.inject_with("2: S 0 mss 1000", add);
        script.expect("2: SA 0 ack 1 join");
        script.expect_nothing();
        assert_eq!(script.events, []);
        script.send(500);
        script.expect("A 1+500 ack 1 dack 1 map 1");
    }
}

/// What is sent once waits for the peer, although there is no other subflow to send it on.
#[test]
fn who_has_proved_nothing_takes_no_option_about_addresses() {
    let mut script = half_open();
    leave_first(&mut script);
    let other = "10.0.0.7".parse().unwrap();
    script.command(|endpoint, id, now| endpoint.announce_address(id, other, None, now)).unwrap();
    script.inject(&format!("2: {STRAY}"));
    script.expect("2: A 1 ack 1");
    script.inject("2: A 1 ack 1 join");
    script.expect("2: A 1 ack 1 dack 1 add");
}

/// Nor does the end of the stream leave there.
#[test]
fn who_has_proved_nothing_takes_no_end_of_the_stream() {
    let mut script = half_open();
    // Both are due at once, and the subflow that sent last is asked first.
    let (id, now) = (script.id(), script.now);
    script.endpoint.shutdown(id, now).unwrap();
    script.inject(&format!("2: {STRAY}"));
    let mut sent = script.drain();
    sent.sort_unstable();
    assert_eq!(sent, ["2: A 1 ack 1", "A 1 ack 1 dack 1 dfin 1"]);
}

/// A subflow in TIME-WAIT answers a repeated FIN. Its peer may have closed, and would not read the rest.
#[test]
fn what_is_sent_once_does_not_leave_in_time_wait() {
    let mut script = Script::accepted();
    leave_first(&mut script);
    script.inject("FA 1 ack 2 dack 1");
    script.expect("A 2 ack 2 dack 1");
    let other = "10.0.0.7".parse().unwrap();
    script.command(|endpoint, id, now| endpoint.announce_address(id, other, None, now)).unwrap();
    script.inject("FA 1 ack 2 dack 1");
    script.expect("A 2 ack 2 dack 1");
    script.new_flow();
    script.inject("2: S 0 mss 1000 join");
    script.expect("2: SA 0 ack 1 join");
    script.inject("2: A 1 ack 1 join");
    script.expect("2: A 1 ack 1 dack 1 add");
    // Now the first subflow has sent last, and is asked first.
    script.inject("FA 1 ack 2 dack 1");
    script.expect("A 2 ack 2 dack 1");
    let (id, now) = (script.id(), script.now);
    script.endpoint.shutdown(id, now).unwrap();
    script.inject("FA 1 ack 2 dack 1");
    script.expect("A 2 ack 2 dack 1");
    script.expect("2: A 1 ack 1 dack 1 dfin 1");
}

/// Nor does a priority: the subflow no longer exists for the peer.
#[test]
fn a_subflow_in_time_wait_has_no_priority_to_change() {
    let mut script = Script::accepted();
    leave_first(&mut script);
    script.inject("FA 1 ack 2 dack 1");
    script.expect("A 2 ack 2 dack 1");
    let changed = script.command(|endpoint, id, now| endpoint.set_priority(id, SubflowId(0), true, now));
    script.expect_nothing();
    assert_eq!(changed, Err(ConnectionError::UnknownSubflow));
}

/// Nor does a window that opens, whether all subflows are told of it or one; and if one, then one on which the peer can
/// still send, not one whose FINs have crossed.
#[test]
fn a_window_update_does_not_leave_in_time_wait() {
    for (waiting, fin_acked) in [(6, 1), (13, 1), (6, 0)] {
        let mut script = Script::listen(ConnectionConfig { receive_buffer_bytes: 16_000, ..config() });
        script.inject("S 0 mss 1000 sackok mpc");
        script.inject("A 1 ack 1 mpc");
        script.new_flow();
        script.inject("2: S 0 mss 1000 join");
        script.inject("2: A 1 ack 1 join");
        script.drain();
        script.command(|endpoint, id, now| endpoint.remove_subflow(id, SubflowId(0), now)).unwrap();
        script.inject(&format!("FA 1 ack {} dack 1", 1 + fin_acked));
        for n in 0..waiting {
            let at = 1 + 1000 * n;
            script.inject(&format!("2: A {at}+1000 ack 1 map {at}"));
        }
        script.run_for(100);
        script.drain();
        assert_eq!(script.recv(waiting * 1000), Some(waiting * 1000));
        let end = 1 + 1000 * waiting;
        assert_eq!(script.drain(), [format!("2: A 1 ack {end} dack {end}")]);
    }
}

/// Joins in the peer's name, refused by the peer or still open, do not keep this side from opening its own.
#[test]
fn joins_of_others_are_no_failures_of_our_own() {
    let mut script = meshed(8);
    for flow in 3..10 {
        forge(&mut script, flow);
        script.inject(&format!("{flow}: R 1"));
    }
    forge(&mut script, 10);
    script.inject("2: R 1");
    script.run_for(1000);
    let sent = script.drain();
    assert!(sent.contains(&"11: S 0 join".to_owned()), "{sent:?}");
}

/// Such a join may take the place of a subflow that is due, but not for longer than it lasts.
#[test]
fn the_place_of_a_join_that_proved_nothing_is_used_again() {
    let mut script = meshed(2);
    script.inject("2: R 1");
    forge(&mut script, 3);
    script.run_for(10_000);
    let sent = script.drain();
    assert_eq!(sent.last().unwrap(), "4: S 0 join");
}

/// RFC 8684 section 3.5: MP_FASTCLOSE contains the peer's key.
#[test]
fn who_has_proved_nothing_does_not_get_the_peers_key() {
    let mut script = half_open();
    script.abort();
    script.expect("RA 1 ack 1 fastclose");
    script.expect("2: RA 1 ack 1");
    script.expect_nothing();
}
