//! Loss recovery without SACK (RFC 5681, RFC 6582).

use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;

use crate::script::{Script, config};

fn sending(bytes: u32) -> Script {
    let config = ConnectionConfig { congestion: ControllerSpec::named("newreno"), ..config() };
    let mut script = Script::established(config, "mss 1000");
    script.send(bytes);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    script
}

/// RFC 3042 for the first two duplicate ACKs, RFC 5681 section 3.2 for the third, RFC 6582 section 3.2 step 3 for a
/// partial ACK. Ten segments were in flight and two more: the threshold is half the window of ten.
#[test]
fn fast_retransmit_and_partial_acks() {
    let mut script = sending(30_000);
    script.inject("A 1 ack 1");
    script.expect("A 10001+1000 ack 1");
    script.inject("A 1 ack 1");
    script.expect("A 11001+1000 ack 1");
    script.inject("A 1 ack 1");
    script.expect("A 1+1000 ack 1");
    script.expect_nothing();
    assert_eq!((script.stats().ssthresh_bytes, script.stats().congestion_events), (5000, 1));
    script.run_until(300);
    script.inject("A 1 ack 3001");
    script.expect("A 3001+1000 ack 1");
    script.inject("A 1 ack 12001");
    assert_eq!(script.stats().congestion_events, 1);
    assert_eq!(script.stats().retransmitted_segments, 2);
}

/// Segments with data, or with another window, are not duplicate ACKs (RFC 5681 section 2).
#[test]
fn not_every_repeated_ack_is_a_duplicate() {
    let mut script = sending(10_000);
    for n in 0..5 {
        script.inject(&format!("A {}+10 ack 1", 1 + n * 10));
        script.inject(&format!("A 1 ack 1 win {}", 60_000 + n));
    }
    assert_eq!(script.stats().retransmitted_segments, 0);
}

/// Small segments count as segments: three duplicate ACKs for four of 100 octets (Nagle is off).
#[test]
fn small_segments_are_repaired_too() {
    let config = ConnectionConfig { nagle: false, ..config() };
    let mut script = Script::established(config, "mss 1000");
    for _ in 0..4 {
        script.send(100);
    }
    assert_eq!(script.drain().len(), 4);
    script.run_until(200);
    (0..3).for_each(|_| script.inject("A 1 ack 1"));
    script.expect("A 1+100 ack 1");
}

/// RFC 6582 section 3.2 step 1: duplicate ACKs caused by a time-out's needless retransmissions do not retransmit.
#[test]
fn a_time_out_is_followed_by_no_false_recovery() {
    let mut script = sending(30_000);
    script.run_until(400);
    script.expect("A 1+1000 ack 1");
    script.run_until(450);
    script.inject("A 1 ack 10001");
    assert_eq!(script.drain(), ["A 10001+1000 ack 1", "A 11001+1000 ack 1"], "the window was one segment");
    let before = script.stats().retransmitted_segments;
    (0..5).for_each(|_| script.inject("A 1 ack 10001"));
    assert_eq!(script.stats().retransmitted_segments, before);
}

/// RFC 6582 section 3.2 step 3, the first choice of a full acknowledgement: the smaller of the threshold and the
/// outstanding data plus a segment. Earlier duplicate ACKs say nothing about data sent in recovery.
#[test]
fn recovery_ends_with_what_is_outstanding() {
    let mut script = sending(30_000);
    (0..11).for_each(|_| script.inject("A 1 ack 1"));
    let sent = script.drain();
    assert_eq!(sent[..3], ["A 10001+1000 ack 1", "A 11001+1000 ack 1", "A 1+1000 ack 1"]);
    let in_recovery = sent.len() as u64 - 3;
    assert!(in_recovery >= 2, "{sent:?}");
    script.run_until(300);
    script.inject("A 1 ack 12001");
    assert_eq!(script.stats().ssthresh_bytes, 5000);
    let window = ((in_recovery + 1) * 1000).min(5000);
    assert_eq!(script.stats().cwnd_bytes, window, "{sent:?}");
}

/// RFC 5681 section 3.1: after a time-out only one segment leaves, then only what its ACK allows. If duplicate ACKs of
/// earlier data released more, a full queue would stay full and lose the important segment again and again.
#[test]
fn after_a_time_out_duplicate_acks_clock_out_nothing() {
    let mut script = sending(30_000);
    script.run_until(400);
    script.expect("A 1+1000 ack 1");
    script.run_until(450);
    (0..9).for_each(|_| script.inject("A 1 ack 1"));
    script.expect_nothing();
    script.inject("A 1 ack 1001");
    script.expect("A 1001+1000 ack 1");
    script.expect("A 2001+1000 ack 1");
    script.expect_nothing();
}

/// A segment that waited behind a hole was not in transit until the hole was filled: its round-trip time was 200 ms,
/// not 500.
#[test]
fn what_waited_behind_a_hole_is_no_sample_of_the_round_trip_time() {
    let mut script = sending(10_000);
    script.inject("A 1 ack 1001");
    let samples = script.stats().rtt_samples;
    (0..3).for_each(|_| script.inject("A 1 ack 1001"));
    script.expect("A 1001+1000 ack 1");
    script.run_until(500);
    script.inject("A 1 ack 10001");
    assert_eq!(script.stats().rtt_samples, samples);
    assert_eq!(script.stats().srtt, script.stats().min_rtt);
}
