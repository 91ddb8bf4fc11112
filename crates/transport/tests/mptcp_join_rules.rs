//! The rules of RFC 8684 section 3.2 for the four segments of a join, segment by segment.

use transport::SubflowId;
use wire::mptcp::{AddressId, MpFastclose, MpJoin, MpTcpRst, MptcpOption, RemoveAddr, ResetReason};
use wire::{Flags, Segment};

use crate::script::{Script, mptcp_config as config};

/// Creates a connection that the engine opened, and the SYN of a second subflow that it opens to the peer's next port.
fn joining() -> (Script, Segment) {
    let mut script = Script::connect(config());
    script.expect("S 0 mpc");
    script.inject("SA 0 ack 1 mss 1000 sackok mpc");
    script.expect("A 1 ack 1 mpc");
    script.inject("A 1 ack 1 dack 1");
    let (id, now) = (script.id(), script.now);
    let (local, remote) = ("10.0.0.3:5000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    script.endpoint.add_subflow(id, local, remote, false, now).unwrap();
    script.run_for(0);
    script.run_for(1);
    let syn = script.expect("2: S 0 join");
    (script, syn)
}

fn join_of(segment: &Segment) -> MpJoin {
    let find = |option: &MptcpOption| match option {
        MptcpOption::Join(join) => Some(*join),
        _ => None,
    };
    segment.options.mptcp.iter().find_map(find).expect("MP_JOIN")
}

/// The third ACK with the HMAC must be answered, or the peer may not send data. So must its repetition.
#[test]
fn the_third_ack_of_a_join_is_answered_each_time() {
    let mut script = Script::accepted();
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect("2: SA 0 ack 1 join");
    for _ in 0..3 {
        script.inject("2: A 1 ack 1 join");
        script.expect("2: A 1 ack 1 dack 1");
    }
}

/// A repeated SYN/ACK has the random number and HMAC of the first.
#[test]
fn a_repeated_syn_ack_says_the_same() {
    let mut script = Script::accepted();
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    let first = join_of(&script.expect("2: SA 0 ack 1 join"));
    script.inject("2: S 0 mss 1000 sackok join");
    assert_eq!(join_of(&script.expect("2: SA 0 ack 1 join")), first);
}

/// The side that joins sends no data before the fourth segment, and repeats its third ACK until that arrives.
#[test]
fn no_data_before_the_fourth_segment() {
    let (mut script, _) = joining();
    script.inject("2: SA 0 ack 1 mss 1000 sackok join");
    script.expect("2: A 1 ack 1 join");
    script.inject("R 1");
    script.send(500);
    script.expect_nothing();
    script.run_for(1500);
    let again = script.drain();
    assert!(!again.is_empty() && again.iter().all(|line| line == "2: A 1 ack 1 join"), "{again:?}");
    script.inject("2: A 1 ack 1 dack 1");
    script.expect("2: A 1+500 ack 1 dack 1 map 1");
}

/// A SYN/ACK without MP_JOIN, or with a wrong HMAC, ends the subflow with a RST.
#[test]
fn a_syn_ack_without_proof_is_reset() {
    for strip in [true, false] {
        let (mut script, _) = joining();
        script.inject_with("2: SA 0 ack 1 mss 1000 sackok join", |segment| match &mut segment.options.mptcp[0] {
            _ if strip => segment.options.mptcp.clear(),
            MptcpOption::Join(MpJoin::SynAck { hmac, .. }) => *hmac ^= 1,
            other => panic!("{other:?}"),
        });
        script.expect("2: RA 1 ack 1 tcprst");
        script.send(100);
        script.expect("A 1+100 ack 1 dack 1 map 1");
    }
}

/// A third ACK without MP_JOIN, or with a wrong HMAC, likewise. Each such RST gives an MPTCP-specific error as reason.
#[test]
fn resets_of_joins_say_why() {
    type Change = fn(&mut Segment);
    let changes: [Change; 2] = [
        |segment| segment.options.mptcp.clear(),
        |segment| match &mut segment.options.mptcp[0] {
            MptcpOption::Join(MpJoin::SynAck { hmac, .. }) => *hmac ^= 1,
            MptcpOption::Join(MpJoin::Ack { hmac }) => hmac[19] ^= 1,
            other => panic!("{other:?}"),
        },
    ];
    for change in changes {
        let (mut opened, _) = joining();
        opened.inject_with("2: SA 0 ack 1 mss 1000 sackok join", change);
        let mut accepted = Script::accepted();
        accepted.new_flow();
        accepted.inject("2: S 0 mss 1000 sackok join");
        accepted.expect("2: SA 0 ack 1 join");
        accepted.inject_with("2: A 1 ack 1 join", change);
        for mut script in [opened, accepted] {
            let reset = script.drain_segments().pop().expect("a RST");
            assert!(reset.flags.contains(Flags::RST));
            let expected = MpTcpRst { transient: false, reason: ResetReason::MptcpSpecific };
            assert_eq!(reset.options.mptcp.last(), Some(&MptcpOption::TcpRst(expected)));
        }
    }
}

/// The token identifies the connection, not the port: a join may go to a port without a listener.
#[test]
fn a_join_finds_its_connection_by_the_token() {
    let mut script = Script::accepted();
    script.new_flow();
    let elsewhere = |segment: &mut Segment| segment.dst.set_port(8080);
    script.inject_with("2: S 0 mss 1000 sackok join", elsewhere);
    script.expect("3: SA 0 ack 1 join");
    script.inject("3: A 1 ack 1 join");
    script.expect("3: A 1 ack 1 dack 1");
    script.inject("3: A 1+500 ack 1 dack 1 map 1");
    assert_eq!(script.recv(1000), Some(500));
}

/// Every address has an identifier: 0 for that of the first subflow, and another one for each other address.
#[test]
fn another_address_joins_with_another_identifier() {
    let (_, syn) = joining();
    let MpJoin::Syn { address_id, .. } = join_of(&syn) else { panic!("{syn:?}") };
    assert_ne!(address_id, AddressId(0));
}

/// A join before the third ACK is ignored, not refused: its repetition succeeds once both sides know the keys.
#[test]
fn a_join_before_the_keys_is_not_refused() {
    let mut script = Script::listen(config());
    script.inject("S 0 mss 1000 sackok mpc");
    script.expect("SA 0 ack 1 mpc");
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect_nothing();
    script.inject("A 1 ack 1 mpc");
    script.expect("A 1 ack 1 dack 1");
    script.inject("2: S 0 mss 1000 sackok join");
    script.expect("2: SA 0 ack 1 join");
}

/// RFC 9293 section 3.10.5: a SYN that was not answered is taken back silently, whatever ends the subflow.
#[test]
fn a_join_that_nobody_answered_ends_silently() {
    type End = fn(&mut Script);
    let ends: [(&str, End); 5] = [
        ("removed", |script| {
            script.command(|endpoint, id, now| endpoint.remove_subflow(id, SubflowId(1), now)).unwrap();
        }),
        ("withdrawn here", |script| {
            let local = "10.0.0.3".parse().unwrap();
            script.command(|endpoint, id, now| endpoint.withdraw_address(id, local, now)).unwrap();
        }),
        ("withdrawn by the peer", |script| {
            let option = MptcpOption::RemoveAddr(RemoveAddr { address_ids: [AddressId(0)].into_iter().collect() });
            script.inject_with("A 1 ack 1 dack 1", |segment| segment.options.mptcp.push(option));
        }),
        ("closed by the peer", |script| {
            let receiver_key = script.known.key.unwrap();
            let option = MptcpOption::Fastclose(MpFastclose { receiver_key });
            script.inject_with("A 1 ack 1 dack 1", |segment| segment.options.mptcp.push(option));
        }),
        ("finished", |script| {
            script.shutdown();
            script.inject("A 1 ack 1 dack 2 dfin 1");
        }),
    ];
    for (name, end) in ends {
        let (mut script, _) = joining();
        end(&mut script);
        let sent = script.drain_segments();
        script.run_for(10_000);
        let is_of_join = |segment: &Segment| segment.src.port() == 5000;
        assert!(!sent.iter().chain(&script.drain_segments()).any(is_of_join), "{name}: {sent:?}");
    }
}
