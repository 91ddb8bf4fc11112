//! The retransmission time-out (RFC 6298), without SACK and therefore without tail loss probes.

use transport::error::CloseReason;
use transport::{ConnectionConfig, Event, SettingsChange};
use units::{Duration, Instant};

use crate::script::{Script, config};

fn plain() -> Script {
    Script::established(config(), "mss 1000")
}

/// Sections 5.4 to 5.6, and 5.7 with Karn's algorithm: the back-off stays until data sent only once are acknowledged.
/// RTO is 300 ms at first. The sample of 100 ms makes it 100 + max(200, 4 * 37.5).
#[test]
fn backs_off_until_there_is_a_sample() {
    let mut script = plain();
    script.send(1000);
    script.expect("A 1+1000 ack 1");
    script.expect_at(400, "A 1+1000 ack 1");
    script.expect_at(1000, "A 1+1000 ack 1");
    script.run_until(2000);
    script.inject("A 1 ack 1001");
    script.send(1000);
    script.expect("A 1001+1000 ack 1");
    script.run_until(2100);
    script.inject("A 1 ack 2001");
    script.send(1000);
    script.expect("A 2001+1000 ack 1");
    script.expect_at(2400, "A 2001+1000 ack 1");

    let mut again = plain();
    again.send(1000);
    again.expect("A 1+1000 ack 1");
    again.expect_at(400, "A 1+1000 ack 1");
    again.expect_at(1000, "A 1+1000 ack 1");
    again.run_until(2000);
    again.inject("A 1 ack 1001");
    again.send(1000);
    again.expect("A 1001+1000 ack 1");
    again.expect_at(3200, "A 1001+1000 ack 1");
}

/// Section 3, Karn's algorithm: without SACK, data that arrived beyond a hole are acknowledged when the hole is filled,
/// which says nothing about the path.
#[test]
fn what_waited_for_a_repair_is_no_sample() {
    let mut script = plain();
    script.send(3000);
    assert_eq!(script.drain().len(), 3);
    script.expect_at(400, "A 1+1000 ack 1");
    script.run_until(9000);
    script.drain();
    script.inject("A 1 ack 3001");
    assert_eq!((script.stats().rtt_samples, script.stats().srtt), (1, Some(Duration::from_millis(100))));
}

/// Section 5.3: every ACK of new data restarts the timer. Section 5.2: without outstanding data the timer stops.
#[test]
fn progress_restarts_the_timer() {
    let mut script = plain();
    script.send(3000);
    script.drain();
    script.run_until(300);
    script.inject("A 1 ack 1001");
    // The sample of 200 ms: SRTT 112.5, RTTVAR 62.5 and so RTO 362.5 ms.
    script.silent_until(662);
    script.run_until(663);
    script.expect("A 1001+1000 ack 1");
    script.inject("A 1 ack 3001");
    script.silent_until(100_000);
}

/// RFC 5681 section 3.1: after a time-out one segment, then slow start by one segment per ACK (RFC 3465 section 2.3).
#[test]
fn slow_start_after_a_time_out() {
    let mut script = plain();
    script.send(30_000);
    assert_eq!(script.drain().len(), 10);
    script.expect_at(400, "A 1+1000 ack 1");
    script.expect_nothing();
    assert!(script.stats().ssthresh_bytes >= 5000);
    script.run_until(500);
    script.inject("A 1 ack 1001");
    assert_eq!(script.drain(), ["A 1001+1000 ack 1", "A 2001+1000 ack 1"]);
    script.run_until(600);
    script.inject("A 1 ack 3001");
    assert_eq!(script.drain(), ["A 3001+1000 ack 1", "A 4001+1000 ack 1", "A 5001+1000 ack 1"]);
    // The other four of the ten had arrived: this ACK covers seven, and also opens the window by one segment.
    script.run_until(700);
    script.inject("A 1 ack 10001");
    let four = [10_001, 11_001, 12_001, 13_001].map(|seq| format!("A {seq}+1000 ack 1"));
    assert_eq!(script.drain(), four);
}

/// RFC 9293 section 3.8.3: the user time-out ends the connection.
#[test]
fn gives_up_after_the_user_time_out() {
    let config = ConnectionConfig { user_timeout: Duration::from_secs(5), ..config() };
    let mut script = Script::established(config, "mss 1000");
    script.send(1000);
    script.drain();
    for at in [400, 1000, 2200, 3450, 4700] {
        script.expect_at(at, "A 1+1000 ack 1");
    }
    script.expect_at(5100, "RA 1001 ack 1");
    assert!(script.events.iter().any(|event| matches!(event, Event::Closed { reason: CloseReason::TimedOut, .. })));
}

/// RFC 9293 section 3.8.3 (SHLD-10): three retransmissions at the current RTO before giving up. Karn's rule keeps the
/// back-off of one loss for the next if only retransmissions are acknowledged.
#[test]
fn three_retransmissions_fit_into_the_user_time_out() {
    let config = ConnectionConfig { user_timeout: Duration::from_secs(8), ..config() };
    let mut script = Script::established(config, "mss 1000");
    script.send(2000);
    assert_eq!(script.drain().len(), 2);
    for at in [400, 1000, 2200, 4200] {
        script.expect_at(at, "A 1+1000 ack 1");
    }
    script.run_until(5000);
    script.inject("A 1 ack 1001");
    script.expect("A 1001+1000 ack 1");
    for at in [7000, 9000, 11_000] {
        script.expect_at(at, "A 1001+1000 ack 1");
    }
    script.expect_at(13_000, "RA 2001 ack 1");
}

/// Section 5.7: the limit of the back-off does not shorten the time-out below what the round-trip time requires.
#[test]
fn a_user_time_out_shorter_than_the_round_trips_leaves_the_time_out() {
    let mut script = plain();
    script.send(1000);
    script.expect("A 1+1000 ack 1");
    script.expect_at(400, "A 1+1000 ack 1");
    script.run_until(500);
    script.inject("A 1 ack 1001");
    let change = SettingsChange { user_timeout: Some(Duration::from_secs(1)), ..SettingsChange::default() };
    script.command(|endpoint, id, now| endpoint.change(id, &change, now)).unwrap();
    script.send(1000);
    script.expect("A 1001+1000 ack 1");
    script.expect_at(800, "A 1001+1000 ack 1");
}

/// RFC 5681 section 4.1: after idling longer than RTO the window restarts from the initial one.
#[test]
fn an_idle_connection_starts_anew() {
    let mut script = plain();
    script.send(20_000);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    script.inject("A 1 ack 10001");
    assert_eq!(script.drain().len(), 10);
    script.run_until(300);
    script.inject("A 1 ack 20001");
    script.run_until(5000);
    script.send(40_000);
    assert_eq!(script.drain().len(), 10);
}

/// RFC 9293 section 3.8.4: an idle connection is probed, and ends after nine probes without an answer.
#[test]
fn keep_alive_probes() {
    let config = ConnectionConfig { keep_alive: Some(Duration::from_secs(10)), ..config() };
    let mut script = Script::established(config, "mss 1000");
    script.expect_at(10_100, "A 0 ack 1");
    script.inject("A 1 ack 1");
    for probe in 2..=10 {
        script.expect_at(probe * 10_000 + 100, "A 0 ack 1");
    }
    script.expect_at(110_100, "RA 1 ack 1");
}

/// RFC 3522: the time-out fired while the ACK waited to be read. Before any repetition has left, an ACK can only answer
/// the original, whether or not there are timestamps: nothing was lost, and the reduction is undone.
#[test]
fn an_ack_before_any_repetition_undoes_the_time_out() {
    let mut script = plain();
    script.send(10_000);
    assert_eq!(script.drain().len(), 10);
    script.now = Instant::from_millis(400);
    script.endpoint.handle_timeout(script.now);
    let stats = script.stats();
    assert_eq!((stats.timeouts, stats.cwnd_bytes), (1, 1000));
    script.inject("A 1 ack 3001");
    script.expect_nothing();
    let stats = script.stats();
    assert_eq!((stats.ssthresh_bytes, stats.in_recovery), (u64::MAX, false));
    script.inject("A 1 ack 10001");
    assert_eq!(script.stats().retransmitted_segments, 0);
}

/// Without timestamps nobody knows which transmission an ACK answers once a repetition has left.
#[test]
fn an_ack_behind_a_repetition_undoes_nothing() {
    let mut script = plain();
    script.send(10_000);
    assert_eq!(script.drain().len(), 10);
    script.expect_at(400, "A 1+1000 ack 1");
    script.inject("A 1 ack 10001");
    assert_eq!(script.stats().ssthresh_bytes, 5000);
}
