//! Resets of the last subflow (RFC 8684 section 3.5): a RST ends only the subflow, and the connection waits for
//! another.

use transport::error::{CloseReason, ConnectionError};
use transport::{ConnectionConfig, Event};
use units::{Dsn, Duration};
use wire::Segment;
use wire::mptcp::{MpFail, MpFastclose, MptcpOption};

use crate::script::{self, Script, mptcp_config as config};

/// How long a connection whose last subflow was reset waits for another, ms.
const WAIT_MS: u64 = 20_000;

/// Creates a connection that the engine opened, with the named path manager.
fn opened(path_manager: &str) -> Script {
    let mut script = Script::connect(ConnectionConfig { path_manager: path_manager.into(), ..config() });
    script.expect("S 0 mpc");
    script.inject("SA 0 ack 1 mss 1000 sackok mpc");
    script.expect("A 1 ack 1 mpc");
    script.inject("A 1 ack 1 dack 1");
    script
}

/// The peer joins with another subflow, which gets the DATA_ACK `acked`.
fn join(script: &mut Script, acked: u32) {
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect(&format!("{flow}: SA 0 ack 1 join"));
    script.inject(&format!("{flow}: A 1 ack 1 join"));
    script.expect(&format!("{flow}: A 1 ack 1 dack {acked}"));
}

/// Data of the reset subflow, and data written in the meantime, leave on the next subflow that the peer opens.
#[test]
fn a_listener_waits_for_the_next_subflow() {
    let mut script = Script::accepted();
    script.send(1500);
    script.expect("A 1+980 ack 1 dack 1 map 1");
    script.expect("A 981+520 ack 1 dack 1 map 981");
    script.inject("A 1 ack 981 dack 981");
    script.inject("R 1");
    let reset = |event: &Event| matches!(event, Event::SubflowClosed { reason: CloseReason::Reset, .. });
    assert!(script.events.iter().any(reset), "the application hears of the subflow");
    script.send(300);
    script.run_for(WAIT_MS - 1000);
    assert_eq!(script.closed(), None);
    script.expect_nothing();
    join(&mut script, 1);
    let sent = script.drain();
    assert_eq!(sent, ["2: A 1+520 ack 1 dack 1 map 981", "2: A 521+300 ack 1 dack 1 map 1501"]);
    script.inject("2: A 1+400 ack 821 dack 1801 map 1");
    assert_eq!(script.recv(1000), Some(400));
    script.run_for(10 * WAIT_MS);
    assert_eq!(script.closed(), None, "the wait is over");
}

/// Without a join, the application learns why the connection ended, and no state remains.
#[test]
fn a_connection_that_nobody_joins_ends_as_reset() {
    for with_data in [false, true] {
        let mut script = Script::accepted();
        if with_data {
            script.send(1500);
            script.drain();
        }
        script.inject("R 1");
        script.run_for(WAIT_MS - 1);
        assert_eq!(script.closed(), None);
        script.run_for(1);
        assert_eq!(script.closed(), Some(CloseReason::Reset));
        script.expect_nothing();
        script.assert_nothing_left(1);
    }
}

/// After time-outs the connection waits a minute, or the user time-out if that is less, however far the data-level
/// time-out has doubled by then (decision 0017).
#[test]
fn a_connection_whose_subflow_timed_out_waits_as_long_as_said() {
    for user_timeout_s in [12, 15, 20, 25, 30, 40, 60, 90] {
        let user_timeout = Duration::from_secs(user_timeout_s);
        let mut script = Script::connect(ConnectionConfig { user_timeout, ..config() });
        script.expect("S 0 mpc");
        script.inject("SA 0 ack 1 mss 1000 sackok mpc");
        script.expect("A 1 ack 1 mpc");
        script.inject("A 1 ack 1 dack 1");
        script.send(500);
        script.run_until(user_timeout_s * 1000);
        let timed_out = |event: &Event| matches!(event, Event::SubflowClosed { reason: CloseReason::TimedOut, .. });
        assert!(script.events.iter().any(timed_out), "{user_timeout_s} s");
        let wait_s = user_timeout_s.min(60);
        script.run_until((user_timeout_s + wait_s) * 1000 - 1);
        assert_eq!(script.closed(), None, "{user_timeout_s} s");
        script.run_for(1);
        assert_eq!(script.closed(), Some(CloseReason::TimedOut), "{user_timeout_s} s");
    }
}

/// Decision 0017: data have the user time-out again once another subflow has joined, and a data-level time-out soon
/// after that ends nothing; nor does the wait of a closed connection, which began earlier.
#[test]
fn data_have_their_time_again_on_a_subflow_that_joined_late() {
    for is_given_up in [false, true] {
        let user_timeout = Duration::from_secs(25);
        let config = ConnectionConfig { user_timeout, path_manager: "full-mesh".into(), ..config() };
        let mut script = Script::connect(config);
        script.expect("S 0 mpc");
        script.inject("SA 0 ack 1 mss 1000 sackok mpc");
        script.expect("A 1 ack 1 mpc");
        script.inject("A 1 ack 1 dack 1");
        script.send(500);
        script.run_until(3_000);
        if is_given_up {
            script.close();
        }
        script.run_until(27_500);
        let join = script.drain().into_iter().rev().find(|sent| sent.contains("join")).expect("a join");
        let port = join.split(':').next().unwrap().to_owned();
        script.inject(&format!("{port}: SA 0 ack 1 mss 1000 sackok join"));
        script.inject(&format!("{port}: A 1 ack 1 dack 1"));
        assert!(script.drain().iter().any(|sent| sent.contains("1+500")));
        script.run_until(40_000);
        assert_eq!(script.closed(), None, "closed by its owner: {is_given_up}");
        script.run_until(27_500 + 2 * 25_000);
        assert_eq!(script.closed(), Some(CloseReason::TimedOut), "closed by its owner: {is_given_up}");
    }
}

/// The stream ends while there is no subflow. Its end leaves with the next one, not with a time-out that has doubled
/// meanwhile, and is repeated as soon as on any new subflow.
#[test]
fn the_end_of_the_stream_leaves_with_the_next_subflow() {
    let mut script = Script::accepted();
    script.inject("R 1");
    script.shutdown();
    script.run_for(16_000);
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect(&format!("{flow}: SA 0 ack 1 join"));
    script.inject(&format!("{flow}: A 1 ack 1 join"));
    script.expect(&format!("{flow}: A 1 ack 1 dack 1 dfin 1"));
    script.run_for(2000);
    assert_eq!(script.drain().first(), Some(&format!("{flow}: A 1 ack 1 dack 1 dfin 1")));
    script.inject(&format!("{flow}: A 1 ack 1 dack 2"));
    assert!(script.events.iter().any(|event| matches!(event, Event::AllAcknowledged(_))));
}

/// A subflow that is reset takes the end of the stream with it; another one carries it at once.
#[test]
fn the_end_of_the_stream_leaves_a_reset_subflow() {
    let mut script = Script::accepted();
    join(&mut script, 1);
    script.inject("2: A 1 ack 1 dack 1");
    script.shutdown();
    let [first] = &script.drain()[..] else { panic!("one segment") };
    let (used, other) = if first.starts_with("2: ") { ("2: ", "") } else { ("", "2: ") };
    assert_eq!(*first, format!("{used}A 1 ack 1 dack 1 dfin 1"));
    script.inject(&format!("{used}R 1"));
    script.expect(&format!("{other}A 1 ack 1 dack 1 dfin 1"));
}

/// The side that opened the connection opens the first pair of addresses again, ever more slowly while refused.
#[test]
fn an_initiator_opens_the_first_path_again() {
    let mut script = opened("full-mesh");
    script.send(500);
    script.expect("A 1+500 ack 1 dack 1 map 1");
    script.inject("R 1");
    script.expect_at(1000, "2: S 0 join");
    script.inject("2: RA 0 ack 1");
    script.expect_at(3000, "3: S 0 join");
    script.inject("3: RA 0 ack 1");
    script.expect_at(7000, "4: S 0 join");
    script.inject("4: SA 0 ack 1 mss 1000 sackok join");
    script.expect("4: A 1 ack 1 join");
    script.inject("4: A 1 ack 1 dack 1");
    script.expect("4: A 1+500 ack 1 dack 1 map 1");
    script.inject("4: A 1 ack 501 dack 501");
    script.run_for(10 * WAIT_MS);
    assert_eq!(script.closed(), None);
}

/// Failed attempts do not lengthen the wait.
#[test]
fn attempts_do_not_keep_a_connection() {
    let mut script = opened("full-mesh");
    script.inject("R 1");
    for flow in 2..=5 {
        script.run_for(1 << (flow + 8));
        let tries = script.drain();
        if tries.contains(&format!("{flow}: S 0 join")) {
            script.inject(&format!("{flow}: RA 0 ack 1"));
        }
    }
    script.run_until(WAIT_MS - 1);
    assert_eq!(script.closed(), None);
    script.run_for(1);
    assert_eq!(script.closed(), Some(CloseReason::Reset));
}

/// A join is in progress when the last subflow is reset.
#[test]
fn a_join_on_its_way_takes_over() {
    let mut script = Script::accepted();
    script.send(500);
    script.expect("A 1+500 ack 1 dack 1 map 1");
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect("2: SA 0 ack 1 join");
    script.inject("R 1");
    script.run_for(1000);
    script.drain();
    script.inject("2: A 1 ack 1 join");
    script.expect("2: A 1 ack 1 dack 1");
    script.expect("2: A 1+500 ack 1 dack 1 map 1");
    script.inject("2: A 1 ack 501 dack 501");
    script.run_for(10 * WAIT_MS);
    assert_eq!(script.closed(), None);
}

/// Each of several subflows is reset: the wait starts with the last.
#[test]
fn the_wait_starts_with_the_last_reset() {
    let mut script = Script::accepted();
    join(&mut script, 1);
    script.inject("R 1");
    script.run_for(100_000);
    assert_eq!(script.closed(), None);
    script.inject("2: R 1");
    script.run_for(WAIT_MS - 1);
    assert_eq!(script.closed(), None);
    script.run_for(1);
    assert_eq!(script.closed(), Some(CloseReason::Reset));
    script.assert_nothing_left(1);
}

/// A subflow that this side resets because of a breach of the rules ends alone.
#[test]
fn a_violation_has_the_scope_of_its_subflow() {
    let mut script = Script::accepted();
    script.inject("A 1+500 ack 1 dack 1 map 1");
    script.inject("A 1001+500 ack 1 dack 1 map 1001");
    script.inject("A 1251+500 ack 1 dack 1 map 1252");
    let sent = script.drain();
    let is_reset = |line: &String| line.starts_with("RA 1 ack 501 ") && line.ends_with(" tcprst");
    assert!(sent.iter().any(is_reset), "{sent:?}");
    assert_eq!(script.recv(1000), Some(500));
    join(&mut script, 501);
    script.inject("2: A 1+500 ack 1 dack 1 map 501");
    assert_eq!((script.recv(1000), script.closed()), (Some(500), None));
}

/// The path begins to strip options, and both directions have carried data: fallback is impossible (section 3.7). The
/// subflow is reset, and the rest comes on the next one.
#[test]
fn stripped_options_cost_the_subflow_alone() {
    let mut script = Script::accepted();
    join(&mut script, 1);
    script.inject("2: R 1");
    script.send(500);
    script.expect("A 1+500 ack 1 dack 1 map 1");
    script.inject("A 1+300 ack 501");
    let sent = script.drain();
    assert!(sent.contains(&"RA 501 ack 301 tcprst".to_string()), "{sent:?}");
    script.run_for(WAIT_MS / 2);
    assert_eq!(script.closed(), None);
    join(&mut script, 1);
    script.expect("3: A 1+500 ack 1 dack 1 map 1");
}

/// Waiting is pointless: neither side has anything left except our bare DATA_FIN.
#[test]
fn a_reset_ends_a_connection_that_has_nothing_left_to_carry() {
    let mut script = Script::accepted();
    script.inject("A 1 ack 1 dack 1 dfin 1");
    script.drain();
    script.send(500);
    script.inject("A 1 ack 501 dack 501");
    script.close();
    script.drain();
    script.inject("R 1");
    assert_eq!(script.closed(), Some(CloseReason::Reset));
    script.assert_nothing_left(1);
}

/// The same if the application has closed and its data are acknowledged: no application reads the peer's remaining
/// data.
#[test]
fn a_reset_ends_a_connection_that_nobody_reads() {
    let mut script = Script::accepted();
    script.close();
    script.drain();
    script.inject("A 1 ack 1 dack 2");
    script.inject("R 1");
    assert_eq!(script.closed(), Some(CloseReason::Reset));
    script.assert_nothing_left(1);
}

/// Data written before `close` must still be delivered.
#[test]
fn data_of_a_closed_connection_wait_for_the_next_subflow() {
    let mut script = Script::accepted();
    script.send(500);
    script.close();
    script.drain();
    script.inject("R 1");
    assert_eq!(script.closed(), None);
    join(&mut script, 1);
    script.expect("2: A 1+500 ack 1 dack 1 map 1 dfin");
}

/// A connection in plain TCP or fallback, or not fully established, cannot be joined: it ends at once.
#[test]
fn a_connection_that_nobody_can_join_ends_at_once() {
    let mut plain = Script::listen(config());
    plain.inject("S 0 mss 1000 sackok");
    plain.inject("A 1 ack 1");
    let mut fallen_back = Script::accepted();
    fallen_back.send(500);
    fallen_back.inject("A 1 ack 501");
    let mut unconfirmed = Script::connect(config());
    unconfirmed.inject("SA 0 ack 1 mss 1000 sackok mpc");
    for (name, mut script) in [("plain", plain), ("fallen back", fallen_back), ("unconfirmed", unconfirmed)] {
        script.inject("R 1");
        assert_eq!(script.closed(), Some(CloseReason::Reset), "{name}");
        script.assert_nothing_left(1);
    }
}

/// MP_FASTCLOSE on the RST ends the whole connection; with a wrong key it is ignored (section 3.5).
#[test]
fn fastclose_ends_all_at_once() {
    for is_ours in [true, false] {
        let mut script = Script::accepted();
        let receiver_key = if is_ours { script.known.key.unwrap() } else { script::mptcp::PEER_KEY };
        let option = MptcpOption::Fastclose(MpFastclose { receiver_key });
        script.inject_with("RA 1 ack 1", |segment| segment.options.mptcp.push(option));
        assert_eq!(script.closed(), is_ours.then_some(CloseReason::Fastclose));
    }
}

/// What else a segment with MP_FASTCLOSE carries counts for nothing: the end of the connection is the last event.
#[test]
fn nothing_follows_the_end_of_a_connection() {
    for with_data in [false, true] {
        let mut script = Script::accepted();
        let receiver_key = script.known.key.unwrap();
        script.events.clear();
        let text = if with_data { "A 1+500 ack 1 dack 1 map 1 dfin" } else { "A 1 ack 1 dack 1 dfin 1" };
        script.inject_with(text, |segment| {
            segment.options.mptcp.insert(0, MptcpOption::Fastclose(MpFastclose { receiver_key }));
        });
        assert_eq!(script.closed(), Some(CloseReason::Fastclose));
        let is_of_subflow = |event: &Event| matches!(event, Event::SubflowClosed { .. });
        let after: Vec<_> = script.events.iter().filter(|event| !is_of_subflow(event)).skip(1).collect();
        assert!(after.is_empty(), "{after:?}");
        let received = script.command(|endpoint, id, now| endpoint.recv(id, 1000, now));
        assert_eq!(received, Err(ConnectionError::Closed(CloseReason::Fastclose)));
    }
}

/// Nor does a fallback follow the ends of both streams, whatever the peer says.
#[test]
fn a_connection_that_has_ended_does_not_fall_back() {
    let claims: [fn(&mut Segment); 2] = [
        |ack| ack.options.mptcp.push(MptcpOption::Fail(MpFail { dsn: Dsn(1) })),
        |ack| script::mptcp::signal(ack).mapping = Some(script::mptcp::mapping(2, 1, 0)),
    ];
    for add in claims {
        let mut script = Script::accepted();
        script.shutdown();
        script.inject("A 1 ack 1 dack 2 dfin 1");
        assert_eq!(script.closed(), Some(CloseReason::Finished));
        script.events.clear();
        script.inject_with("A 1 ack 1 dack 2", add);
        assert_eq!(script.events, []);
        let stats = script.command(|endpoint, id, _| endpoint.stats(id)).unwrap();
        assert_eq!((stats.mptcp, stats.fell_back), (true, false));
    }
}
