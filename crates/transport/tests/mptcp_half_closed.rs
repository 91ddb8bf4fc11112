//! FINs of subflows on which this side still has data to send (RFC 8684 section 3.3.3). A FIN is answered only if
//! another subflow can carry the rest, or if our DATA_FIN is acknowledged and nothing is left.

use transport::Event;
use transport::error::CloseReason;

use crate::script::Script;

/// The peer joins with another subflow.
fn join(script: &mut Script) {
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect(&format!("{flow}: SA 0 ack 1 join"));
    script.inject(&format!("{flow}: A 1 ack 1 join"));
}

/// The peer ends its stream and closes the only subflow, as section 3.3.3 requires. Data written later arrive, and so
/// does the end of our stream; only then does our half end.
#[test]
fn data_written_after_the_fin_leave_on_its_subflow() {
    let mut script = Script::accepted();
    script.inject("A 1 ack 1 dack 1 dfin 1");
    script.expect("A 1 ack 1 dack 2");
    script.inject("FA 1 ack 1 dack 1");
    script.expect("A 1 ack 2 dack 2");
    script.run_for(600_000);
    script.expect_nothing();
    assert_eq!(script.closed(), None, "as long as the application likes");
    script.send(500);
    script.expect("A 1+500 ack 2 dack 2 map 1");
    script.inject("A 2 ack 501 dack 501");
    script.shutdown();
    script.expect("A 501 ack 2 dack 2 dfin 501");
    script.inject("A 2 ack 501 dack 502");
    script.expect("FA 501 ack 2 dack 2");
    script.inject("A 2 ack 502 dack 502");
    assert_eq!((script.state(), script.closed()), ("CLOSED", Some(CloseReason::Finished)));
    script.assert_nothing_left(100_000);
}

/// FIN and DATA_FIN come in one segment while most of the written data wait for the congestion window.
#[test]
fn data_in_the_buffer_leave_on_a_half_closed_subflow() {
    let mut script = Script::accepted();
    script.send(20_000);
    let sent = script.drain().len() as u64 * 980;
    assert!(sent < 20_000, "some of it waits");
    script.inject("FA 1 ack 1 dack 1 dfin 1");
    script.expect("A 9801 ack 2 dack 2");
    let mut acked = 1;
    while acked < 20_001 {
        acked = (acked + 980).min(20_001);
        script.inject(&format!("A 2 ack {acked} dack {acked}"));
    }
    let sent = script.drain();
    assert!(sent.last().unwrap().starts_with("A 19601+400 ack 2 dack 2 map 19601"), "{sent:?}");
    assert_eq!(script.endpoint.stats(script.id()).unwrap().acked_bytes, 20_000);
    script.close();
    script.expect("A 20001 ack 2 dack 2 dfin 20001");
    script.inject("A 2 ack 20001 dack 20002");
    script.expect("FA 20001 ack 2 dack 2");
    script.inject("A 2 ack 20002 dack 20002");
    assert_eq!(script.closed(), Some(CloseReason::Finished));
    script.assert_nothing_left(100_000);
}

/// Losses on a half-closed subflow are repaired, including that of the DATA_FIN.
#[test]
fn losses_on_a_half_closed_subflow_are_repaired() {
    let mut script = Script::accepted();
    script.inject("FA 1 ack 1 dack 1 dfin 1");
    script.expect("A 1 ack 2 dack 2");
    script.send(1960);
    script.expect("A 1+980 ack 2 dack 2 map 1");
    script.expect("A 981+980 ack 2 dack 2 map 981");
    script.inject("A 2 ack 1 sack 981-1961 dack 1");
    script.run_for(1000);
    let again = script.drain();
    assert!(again.contains(&"A 1+980 ack 2 dack 2 map 1".to_string()), "{again:?}");
    script.inject("A 2 ack 1961 dack 1961");
    script.shutdown();
    script.expect("A 1961 ack 2 dack 2 dfin 1961");
    script.run_for(10_000);
    let again = script.drain();
    assert!(!again.is_empty() && again.iter().all(|line| line == "A 1961 ack 2 dack 2 dfin 1961"), "{again:?}");
    script.inject("A 2 ack 1961 dack 1962");
    script.expect("FA 1961 ack 2 dack 2");
    script.inject("A 2 ack 1962 dack 1962");
    assert_eq!(script.closed(), Some(CloseReason::Finished));
}

/// Our DATA_FIN is in flight when the FIN arrives.
#[test]
fn a_data_fin_that_is_not_acknowledged_keeps_the_subflow() {
    let mut script = Script::accepted();
    script.shutdown();
    script.expect("A 1 ack 1 dack 1 dfin 1");
    script.inject("FA 1 ack 1 dack 1 dfin 1");
    script.expect("A 1 ack 2 dack 2");
    script.run_for(2000);
    script.expect("A 1 ack 2 dack 2 dfin 1");
    script.inject("A 2 ack 1 dack 2");
    script.expect("FA 1 ack 2 dack 2");
    script.inject("A 2 ack 2 dack 2");
    assert_eq!(script.closed(), Some(CloseReason::Finished));
    script.assert_nothing_left(100_000);
}

/// Our DATA_FIN is acknowledged, and the peer's has not arrived: the subflow is no longer needed. The peer has a minute
/// to return with the rest of its stream.
#[test]
fn a_fin_after_our_acknowledged_data_fin_is_answered() {
    let mut script = Script::accepted();
    script.shutdown();
    script.expect("A 1 ack 1 dack 1 dfin 1");
    script.inject("A 1 ack 1 dack 2");
    script.inject("FA 1 ack 1 dack 2");
    script.expect("FA 1 ack 2 dack 1");
    script.inject("A 2 ack 2 dack 2");
    assert_eq!(script.state(), "CLOSED");
    join(&mut script);
    script.drain();
    script.inject("2: A 1+500 ack 1 dack 2 map 1 dfin");
    assert_eq!(script.recv(1000), Some(500));
    assert_eq!((script.recv(1000), script.closed()), (None, Some(CloseReason::Finished)));
}

/// Break before make: the peer closes its only subflow and intends to return. Until then, written data leave on the
/// open half. That half ends when the peer returns, and new data take the new subflow.
#[test]
fn a_half_closed_subflow_carries_until_the_peer_is_back() {
    let mut script = Script::accepted();
    script.inject("FA 1 ack 1 dack 1");
    script.expect("A 1 ack 2 dack 1");
    script.send(500);
    script.expect("A 1+500 ack 2 dack 1 map 1");
    script.run_for(10);
    join(&mut script);
    script.expect("FA 501 ack 2 dack 1");
    script.expect("2: A 1 ack 1 dack 1");
    script.inject("A 2 ack 502 dack 501");
    script.send(500);
    script.expect("2: A 1+500 ack 1 dack 1 map 501");
    script.inject("2: A 1+300 ack 501 dack 1001 map 1");
    assert_eq!(script.recv(1000), Some(300));
    assert_eq!(script.closed(), None);
}

/// A peer that has closed its only subflow, has not ended its stream and does not return is waited for a minute after
/// its last acknowledgement.
#[test]
fn a_peer_that_left_is_waited_for_a_minute() {
    let mut script = Script::accepted();
    script.inject("FA 1 ack 1 dack 1");
    script.expect("A 1 ack 2 dack 1");
    script.run_for(50_000);
    script.send(500);
    script.expect("A 1+500 ack 2 dack 1 map 1");
    script.run_for(50);
    script.inject("A 2 ack 501 dack 501");
    script.run_for(59_000);
    assert_eq!(script.closed(), None);
    script.expect_nothing();
    script.run_for(2000);
    assert_eq!(script.closed(), Some(CloseReason::TimedOut));
    script.expect("RA 501 ack 2 fastclose");
    script.assert_nothing_left(100_000);
}

/// Data that such a peer does not acknowledge are retransmitted exactly until the user time-out.
#[test]
fn a_peer_that_left_and_is_gone_is_given_up_at_the_user_timeout() {
    let mut script = Script::accepted();
    script.inject("FA 1 ack 1 dack 1");
    script.send(500);
    script.run_for(200_000);
    assert_eq!(script.closed(), None);
    script.run_for(200_000);
    assert_eq!(script.closed(), Some(CloseReason::TimedOut));
    script.assert_nothing_left(100_000);
}

/// The first of two subflows that the peer closes ends at once; the second stays for our data.
#[test]
fn the_last_of_several_fins_is_not_answered() {
    let mut script = Script::accepted();
    join(&mut script);
    script.drain();
    script.inject("FA 1 ack 1 dack 1 dfin 1");
    script.expect("FA 1 ack 2 dack 2");
    script.inject("A 2 ack 2 dack 1");
    script.inject("2: FA 1 ack 1 dack 1");
    script.expect("2: A 1 ack 2 dack 2");
    script.send(500);
    script.expect("2: A 1+500 ack 2 dack 2 map 1");
    script.inject("2: A 2 ack 501 dack 501");
    script.close();
    script.expect("2: A 501 ack 2 dack 2 dfin 501");
    script.inject("2: A 2 ack 501 dack 502");
    script.expect("2: FA 501 ack 2 dack 2");
    script.inject("2: A 2 ack 502 dack 502");
    assert_eq!(script.closed(), Some(CloseReason::Finished));
    script.assert_nothing_left(100_000);
}

/// Another subflow without a sign of life cannot carry the rest. Once it shows one, the half-closed subflow may end.
#[test]
fn a_dead_sibling_does_not_let_a_half_closed_subflow_go() {
    let mut script = Script::accepted();
    join(&mut script);
    script.drain();
    script.send(1960);
    let sent = script.drain();
    assert!(sent.iter().all(|line| !line.starts_with("2: ")), "{sent:?}");
    script.inject("A 1 ack 1961 dack 1961");
    let id = script.id();
    let first = script.endpoint.stats(id).unwrap().subflows[0].id;
    script.endpoint.set_priority(id, first, true, script.now).unwrap();
    script.send(500);
    let sent = script.drain();
    assert!(sent.contains(&"2: A 1+500 ack 1 dack 1 map 1961".to_string()), "{sent:?}");
    script.run_for(1500);
    let sent = script.drain();
    assert!(sent.iter().any(|line| line.starts_with("A 1961+500")), "the first takes over: {sent:?}");
    script.inject("FA 1 ack 2461 dack 2461");
    script.expect("A 2461 ack 2 dack 1");
    script.send(100);
    script.expect("A 2461+100 ack 2 dack 1 map 2461");
    script.inject("A 2 ack 2561 dack 2561");
    script.drain();
    script.inject("2: A 1 ack 501 dack 2561");
    script.expect("FA 2561 ack 2 dack 1");
}

/// A backup counts as another subflow.
#[test]
fn a_backup_lets_a_half_closed_subflow_go() {
    let mut script = Script::accepted();
    join(&mut script);
    script.drain();
    let id = script.id();
    let second = script.endpoint.stats(id).unwrap().subflows[1].id;
    script.endpoint.set_priority(id, second, true, script.now).unwrap();
    script.inject("FA 1 ack 1 dack 1 dfin 1");
    let sent = script.drain();
    assert!(sent.iter().any(|line| line.starts_with("FA 1 ack 2")), "{sent:?}");
    script.send(500);
    script.expect("2: A 1+500 ack 1 dack 2 map 1");
}

/// The application may remove the half-closed subflow itself, and then has a minute to open another.
#[test]
fn the_application_may_remove_a_half_closed_subflow() {
    let mut script = Script::accepted();
    script.inject("FA 1 ack 1 dack 1 dfin 1");
    script.expect("A 1 ack 2 dack 2");
    let id = script.id();
    let first = script.endpoint.stats(id).unwrap().subflows[0].id;
    script.endpoint.remove_subflow(id, first, script.now).unwrap();
    script.run_for(1);
    script.expect("FA 1 ack 2 dack 2");
    script.inject("A 2 ack 2 dack 1");
    script.send(500);
    script.expect_nothing();
    join(&mut script);
    let sent = script.drain();
    assert!(sent.contains(&"2: A 1+500 ack 1 dack 2 map 1".to_string()), "{sent:?}");
}

/// A FIN without DATA_FIN did not end the stream. If the connection then falls back, it does.
#[test]
fn a_fallback_makes_a_subflows_fin_the_end_of_the_stream() {
    let mut script = Script::accepted();
    script.inject("A 1+300 ack 1 dack 1 map 1");
    script.inject("FA 301 ack 1 dack 1");
    script.drain();
    assert_eq!(script.recv(1000), Some(300));
    script.send(500);
    script.expect("A 1+500 ack 302 dack 301 map 1");
    // The path has begun to strip options: ACKs of our data have no DSS (section 3.7).
    script.inject("A 302 ack 501");
    script.run_for(10_000);
    assert!(script.events.iter().any(|event| matches!(event, Event::FellBack(_))));
    assert_eq!(script.recv(1000), None, "the stream has ended");
    script.shutdown();
    let sent = script.drain();
    assert!(sent.iter().any(|line| line.starts_with("FA 501 ack 302")), "{sent:?}");
    script.inject("A 302 ack 502");
    assert_eq!(script.closed(), Some(CloseReason::Finished));
    script.assert_nothing_left(100_000);
}

/// After `abort` the half-closed subflow is reset like any other.
#[test]
fn a_half_closed_subflow_is_reset_by_an_abort() {
    let mut script = Script::accepted();
    script.inject("FA 1 ack 1 dack 1 dfin 1");
    script.drain();
    script.abort();
    script.expect("RA 1 ack 2 fastclose");
    assert_eq!(script.closed(), Some(CloseReason::Aborted));
    script.assert_nothing_left(100_000);
}
