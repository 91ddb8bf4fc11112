//! Flow control: shut windows, small windows, silly windows (RFC 9293 section 3.8.6), and Nagle (section 3.7.4).

use transport::ConnectionConfig;
use transport::error::CloseReason;

use crate::script::{Script, config};

/// Section 3.8.6.1: a shut window is probed after a time-out (100 + 200 ms), then ever more rarely, and without end if
/// the peer answers. When it opens, data flow at once.
#[test]
fn a_shut_window_is_probed() {
    let mut script = Script::ready();
    script.send(2000);
    script.drain();
    script.run_until(200);
    script.inject("A 1 ack 2001 win 0");
    script.send(1000);
    script.expect_nothing();
    let mut at = 500;
    for wait in [600, 1200, 2400, 4800, 9600, 19_200, 38_400, 60_000, 60_000, 60_000, 60_000, 60_000, 60_000] {
        script.expect_at(at, "A 2000 ack 1");
        script.inject("A 1 ack 2001 win 0");
        at += wait;
    }
    assert!(at > 300_000, "longer than the user time-out");
    script.inject("A 1 ack 2001 win 1000");
    script.expect("A 2001+1000 ack 1");
    assert_eq!(script.stats().timeouts, 0);
}

/// Section 3.8.3: a peer that does not even answer probes is gone after the user time-out.
#[test]
fn a_silent_peer_with_a_shut_window_is_gone() {
    let mut script = Script::ready();
    script.inject("A 1 ack 1 win 0");
    script.send(1000);
    script.run_until(500_000);
    let sent = script.drain();
    assert_eq!(sent.last().unwrap(), "RA 1 ack 1");
}

/// Nobody is left to read what a peer sends that never ends its stream: the connection lingers as after `close`.
#[test]
fn a_connection_released_after_shutdown_lingers_no_longer_than_a_closed_one() {
    for is_acknowledged_first in [false, true] {
        let mut script = Script::ready();
        let id = script.id();
        script.shutdown();
        script.expect("FA 1 ack 1");
        if is_acknowledged_first {
            script.inject("A 1 ack 2");
        }
        script.endpoint.release(id);
        if !is_acknowledged_first {
            script.inject("A 1 ack 2");
        }
        script.inject("A 1+1000 ack 2");
        script.run_for(59_000);
        assert_eq!(script.closed(), None);
        script.run_for(2_000);
        assert_eq!(script.closed(), Some(CloseReason::TimedOut));
    }
}

/// Deviation from the same section: a peer that answers probes and takes nothing does not keep a connection that its
/// owner has given up, by `close` or by `shutdown` and `release`, for longer than the user time-out (300 s). Progress
/// begins it anew.
#[test]
fn a_shut_window_does_not_hold_a_connection_that_was_given_up() {
    for release in [false, true] {
        let mut script = Script::ready();
        script.inject("A 1 ack 1 win 0");
        script.send(5000);
        let id = script.id();
        if release {
            script.shutdown();
            script.endpoint.release(id);
        } else {
            script.close();
        }
        let hold_off = |script: &mut Script, acked: u32, s: u32| {
            for _ in 0..s / 10 {
                script.run_for(10_000);
                script.drain();
                script.inject(&format!("A 1 ack {acked} win 0"));
            }
        };
        for acked in [1, 1001, 2001] {
            script.inject(&format!("A 1 ack {acked} win 0"));
            hold_off(&mut script, acked, 290);
            assert_eq!(script.closed(), None);
            script.inject(&format!("A 1 ack {acked} win 1000"));
            script.expect(&format!("A {acked}+1000 ack 1"));
        }
        script.inject("A 1 ack 3001 win 0");
        hold_off(&mut script, 3001, 290);
        script.run_for(10_000);
        assert_eq!(script.drain().last().unwrap(), "RA 3001 ack 1");
        assert_eq!(script.closed(), Some(CloseReason::TimedOut));
        script.assert_nothing_left(0);
    }
}

/// A FIN needs no window, but its acknowledgement may be withheld just as well.
#[test]
fn a_fin_that_is_not_acknowledged_does_not_hold_a_closed_connection() {
    let mut script = Script::ready();
    script.inject("A 1 ack 1 win 0");
    script.close();
    for _ in 0..29 {
        script.run_for(10_000);
        script.inject("A 1 ack 1 win 0");
        assert_eq!(script.closed(), None);
    }
    script.run_for(10_000);
    assert_eq!(script.closed(), Some(CloseReason::TimedOut));
}

/// An owner that has only ended its stream waits for the peer, and decides by itself for how long.
#[test]
fn a_shut_window_holds_a_half_closed_connection() {
    let mut script = Script::ready();
    script.inject("A 1 ack 1 win 0");
    script.send(1000);
    script.shutdown();
    for _ in 0..90 {
        script.run_for(10_000);
        script.inject("A 1 ack 1 win 0");
    }
    script.drain();
    script.inject("A 1 ack 1 win 1000");
    script.expect("A 1+1000 ack 1");
    assert_eq!(script.closed(), None);
}

/// Section 3.8.6.2.1: less than a segment and less than half the largest window is not worth sending, except after a
/// time-out.
#[test]
fn a_window_that_stays_small_is_used_in_the_end() {
    let mut script = Script::ready();
    script.inject("A 1 ack 1 win 300");
    script.send(1000);
    script.expect_nothing();
    script.expect_at(400, "A 1+300 ack 1");
    script.run_until(500);
    script.inject("A 1 ack 301 win 300");
    script.expect_nothing();
    script.run_until(900);
    assert_eq!(script.drain(), ["A 301+300 ack 1"]);
}

/// The same section: half the largest window is worth a segment even if it is small.
#[test]
fn half_of_a_small_window_is_worth_it() {
    let mut script = Script::established(config(), "mss 1000 sackok win 600");
    script.send(2000);
    script.expect("A 1+600 ack 1");
    script.inject("A 1 ack 601 win 300");
    script.expect("A 601+300 ack 1");
    script.inject("A 1 ack 901 win 299");
    script.expect_nothing();
}

/// Section 3.8.6.2.2: the window does not open by small pieces. The buffer takes 4000 octets, a step is half of it or a
/// packet, here 1040 octets; an update leaves by itself from 2920 octets on.
#[test]
fn a_receiver_does_not_offer_small_pieces() {
    let config = ConnectionConfig { receive_buffer_bytes: 4000, ..config() };
    let mut script = Script::established(config, "mss 1000 sackok");
    for n in 0..4 {
        script.inject(&format!("A {}+1000 ack 1", 1 + n * 1000));
    }
    assert_eq!(script.drain().last().unwrap(), "A 1 ack 4001");
    script.recv(500);
    script.run_until(1000);
    script.inject("A 4000 ack 1");
    assert_eq!(script.expect("A 1 ack 4001").window, 0);
    script.recv(700);
    script.run_until(2000);
    script.inject("A 4000 ack 1");
    assert_eq!(script.expect("A 1 ack 4001").window, 1200);
    script.recv(2800);
    script.run_until(3000);
    script.inject("A 4000 ack 1");
    assert_eq!(script.drain().last().unwrap(), "A 1 ack 4001");
}

/// Section 3.10.7.4, first step: a shut window takes no data, but ACKs still count, and a probe is answered.
#[test]
fn acks_count_even_when_the_window_is_shut() {
    let config = ConnectionConfig { receive_buffer_bytes: 1000, ..config() };
    let mut script = Script::established(config, "mss 1000 sackok");
    script.inject("A 1+1000 ack 1");
    assert_eq!(script.expect("A 1 ack 1001").window, 0);
    script.send(1000);
    script.expect("A 1+1000 ack 1001");
    script.inject("A 1001+1 ack 1001");
    script.expect("A 1001 ack 1001");
    assert_eq!(script.stats().acked_bytes, 1000);
    assert_eq!(script.recv(5000), Some(1000));
    script.expect("A 1001 ack 1001");
}

/// A peer whose data have filled the window, and are late, acknowledges from the window's right edge, where its next
/// octet lies. ACKs there are valid.
#[test]
fn acks_count_at_the_right_edge_of_the_window() {
    let config = ConnectionConfig { receive_buffer_bytes: 1000, ..config() };
    let mut script = Script::established(config, "mss 1000 sackok");
    script.send(2000);
    script.expect("A 1+1000 ack 1");
    script.expect("A 1001+1000 ack 1");
    script.inject("A 1001 ack 1001");
    script.expect_nothing();
    assert_eq!(script.stats().acked_bytes, 1000);
    script.inject("A 1002 ack 2001");
    script.expect("A 2001 ack 1");
    assert_eq!(script.stats().acked_bytes, 1000, "beyond the edge nothing counts");
}

/// A window that shrinks below the flight (section 3.8.6, RFC 7323 section 2.4) stops only new data.
#[test]
fn a_shrinking_window_is_survived() {
    let mut script = Script::ready();
    script.send(8000);
    assert_eq!(script.drain().len(), 8);
    script.run_until(200);
    script.inject("A 1 ack 1001 win 2000");
    script.send(5000);
    script.expect_nothing();
    script.inject("A 1 ack 8001 win 2000");
    assert_eq!(script.drain(), ["A 8001+1000 ack 1", "A 9001+1000 ack 1"]);
}

/// A retransmission of the peer may bring a new ACK. Its window counts from there; the old one must not.
#[test]
fn a_window_never_reaches_beyond_what_was_allowed() {
    let mut script = Script::ready();
    script.inject("A 1+100 ack 1");
    script.inject("A 101+100 ack 1 win 3000");
    script.drain();
    script.send(9000);
    assert_eq!(script.drain().len(), 3);
    script.inject("A 151+100 ack 1 win 3000");
    script.inject("A 101+200 ack 3001 win 1000");
    script.drain();
    script.run_for(200);
    assert_eq!(script.stats().sent_bytes, 4000, "3001 + 1000");
}

/// Section 3.7.4: a small segment waits while another is in flight.
#[test]
fn nagle() {
    let mut script = Script::ready();
    script.send(100);
    script.expect("A 1+100 ack 1");
    script.send(100);
    script.send(100);
    script.expect_nothing();
    script.inject("A 1 ack 101");
    script.expect("A 101+200 ack 1");
    script.send(1000);
    script.expect("A 301+1000 ack 1");

    let mut script = Script::established(ConnectionConfig { nagle: false, ..config() }, "mss 1000");
    script.send(100);
    script.send(100);
    assert_eq!(script.drain(), ["A 1+100 ack 1", "A 101+100 ack 1"]);
}

/// Appendix A.3: a small segment waits for small ones only, so that the end of an answer leaves with the answer.
#[test]
fn nagle_as_minshall_changed_it() {
    let mut script = Script::ready();
    script.send(2100);
    assert_eq!(script.drain(), ["A 1+1000 ack 1", "A 1001+1000 ack 1", "A 2001+100 ack 1"]);
    script.send(1200);
    script.expect("A 2101+1000 ack 1");
    script.expect_nothing();
    script.inject("A 1 ack 2001");
    script.expect_nothing();
    script.inject("A 1 ack 2101");
    script.expect("A 3101+200 ack 1");
    script.send(300);
    script.shutdown();
    script.expect("FA 3301+300 ack 1");
}

/// A super-segment is cut if its last part has to wait.
#[test]
fn nagle_cuts_super_segments() {
    let mut script = Script::established(ConnectionConfig { offload_max_bytes: 65_535, ..config() }, "mss 1000");
    script.send(2100);
    script.expect("A 1+2100 ack 1");
    script.send(2200);
    script.expect("A 2101+2000 ack 1");
    script.inject("A 1 ack 2101");
    script.expect("A 4101+200 ack 1");
}

/// RFC 6928: ten segments at first, fewer octets if segments are large; RFC 5681 section 3.1: slow start.
#[test]
fn the_initial_window() {
    let mut script = Script::ready();
    script.send(100_000);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    script.inject("A 1 ack 1001");
    assert_eq!(script.drain().len(), 2);

    let jumbo = ConnectionConfig { mtu: 9000, ..config() };
    let mut script = Script::established(jumbo, "mss 8960");
    script.send(100_000);
    assert_eq!(script.drain().len(), 2, "max(2 * 8960, 14600) octets");
}
