//! Closing a connection, in all the ways of RFC 9293 section 3.6.

use crate::script::{Script, config};

/// RFC 9293 figure 12, and section 3.10.7.4, eighth step: a repeated FIN restarts the 2 MSL (60 s here).
#[test]
fn the_active_side_waits() {
    let mut script = Script::ready();
    script.shutdown();
    script.expect("FA 1 ack 1");
    assert_eq!(script.state(), "FIN-WAIT-1");
    script.inject("A 1 ack 2");
    assert_eq!(script.state(), "FIN-WAIT-2");
    script.inject("FA 1 ack 2");
    script.expect("A 2 ack 2");
    assert_eq!(script.state(), "TIME-WAIT");
    script.silent_until(30_000);
    script.inject("FA 1 ack 2");
    script.expect("A 2 ack 2");
    script.silent_until(89_999);
    assert_eq!(script.state(), "TIME-WAIT");
    script.silent_until(90_000);
    assert_eq!(script.state(), "CLOSED");
}

/// The peer's FIN acknowledges ours: FIN-WAIT-1 to TIME-WAIT in one segment.
#[test]
fn a_fin_may_acknowledge_a_fin() {
    let mut script = Script::ready();
    script.shutdown();
    script.expect("FA 1 ack 1");
    script.inject("FA 1+500 ack 2");
    script.expect("A 2 ack 502");
    assert_eq!(script.state(), "TIME-WAIT");
    assert_eq!(script.recv(1000), Some(500));
}

/// RFC 9293 figure 13.
#[test]
fn both_sides_may_close_at_once() {
    let mut script = Script::ready();
    script.shutdown();
    script.expect("FA 1 ack 1");
    script.inject("FA 1 ack 1");
    script.expect("A 2 ack 2");
    assert_eq!(script.state(), "CLOSING");
    script.inject("A 2 ack 2");
    assert_eq!(script.state(), "TIME-WAIT");
}

/// CLOSE-WAIT may send for any time; LAST-ACK ends without TIME-WAIT.
#[test]
fn the_passive_side_finishes_its_say() {
    let mut script = Script::ready();
    script.inject("FA 1 ack 1");
    script.expect("A 1 ack 2");
    assert_eq!(script.state(), "CLOSE-WAIT");
    script.run_until(900_000);
    script.send(500);
    script.expect("A 1+500 ack 2");
    script.shutdown();
    script.expect("FA 501 ack 2");
    assert_eq!(script.state(), "LAST-ACK");
    script.inject("A 2 ack 501");
    assert_eq!(script.state(), "LAST-ACK");
    script.inject("A 2 ack 502");
    assert_eq!(script.state(), "CLOSED");
}

/// RFC 9293 section 3.6: a side that has closed still receives as long as the peer sends, however long the peer is
/// silent.
#[test]
fn a_half_closed_connection_lives_on() {
    let mut script = Script::ready();
    script.shutdown();
    script.expect("FA 1 ack 1");
    script.inject("A 1 ack 2");
    script.silent_until(3_600_000);
    script.inject("A 1+1000 ack 2");
    script.expect("A 2 ack 1001");
    assert_eq!((script.state(), script.recv(2000)), ("FIN-WAIT-2", Some(1000)));
}

/// A FIN is repeated like data: as a tail loss probe, which replaces the first time-out (RFC 8985 section 7.3; PTO 2 *
/// 100 + 200 ms is bounded by RTO 300 ms), then by time-outs of 300 and 600 ms.
#[test]
fn a_lost_fin_is_repeated() {
    let mut script = Script::ready();
    script.shutdown();
    script.expect("FA 1 ack 1");
    script.expect_at(400, "FA 1 ack 1");
    assert_eq!(script.stats().timeouts, 0);
    script.expect_at(700, "FA 1 ack 1");
    script.expect_at(1300, "FA 1 ack 1");
    assert_eq!(script.stats().timeouts, 2);
}

/// A FIN beyond a hole waits for the hole to fill; SACK blocks do not cover it.
#[test]
fn a_fin_counts_in_its_turn() {
    let mut script = Script::ready();
    script.inject("FA 1001+1000 ack 1");
    script.expect("A 1 ack 1 sack 1001-2001");
    assert_eq!(script.state(), "ESTABLISHED");
    script.inject("A 1+1000 ack 1");
    script.expect("A 1 ack 2002");
    assert_eq!(script.state(), "CLOSE-WAIT");
}

/// RFC 9293 section 3.10.7.4, second step: a RST at RCV.NXT ends the connection in every state.
#[test]
fn a_reset_ends_every_state() {
    let scenes: [(&str, &[&str], bool, &str); 6] = [
        ("ESTABLISHED", &[], false, "R 1"),
        ("FIN-WAIT-1", &[], true, "R 1"),
        ("FIN-WAIT-2", &["A 1 ack 2"], true, "R 1"),
        ("CLOSING", &["FA 1 ack 1"], true, "R 2"),
        ("TIME-WAIT", &["FA 1 ack 2"], true, "R 2"),
        ("CLOSE-WAIT", &["FA 1 ack 1"], false, "R 2"),
    ];
    for (state, segments, shut, reset) in scenes {
        let mut script = Script::ready();
        if shut {
            script.shutdown();
        }
        segments.iter().for_each(|segment| script.inject(segment));
        script.drain();
        assert_eq!(script.state(), state);
        script.inject(reset);
        script.silent_until(100_000);
        assert_eq!(script.state(), "CLOSED", "after {state}");
    }
}

/// RFC 9293 section 3.10.5: ABORT sends a RST at SND.NXT; later segments belong to no connection.
#[test]
fn abort_resets() {
    let mut script = Script::ready();
    script.send(1000);
    script.expect("A 1+1000 ack 1");
    script.abort();
    script.expect("RA 1001 ack 1");
    script.silent_until(100_000);
    script.inject("A 1 ack 1001");
    script.expect("R 1001");
}

/// RFC 9293 section 3.6.1: a SYN in TIME-WAIT is challenged, and the peer's RST in reply frees the addresses.
#[test]
fn a_new_incarnation_ends_time_wait() {
    let mut script = Script::listen(config());
    script.inject("S 0 mss 1000");
    script.expect("SA 0 ack 1");
    script.inject("A 1 ack 1");
    script.shutdown();
    script.expect("FA 1 ack 1");
    script.inject("FA 1 ack 2");
    script.expect("A 2 ack 2");
    script.inject("S 100000 mss 1000");
    script.expect("A 2 ack 2");
    script.inject("R 2");
    script.inject("S 100000 mss 1000");
    script.expect("SA 0 ack 100001");
}
