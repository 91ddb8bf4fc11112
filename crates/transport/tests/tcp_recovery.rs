//! Loss recovery with SACK: RACK-TLP (RFC 8985) and proportional rate reduction (RFC 6937).
//!
//! Segments of 1000 octets, ten of which leave at 100 ms; the round-trip time is 100 ms.

use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use transport::era::{Binding, Era};
use units::Instant;

use crate::script::{Script, config};

/// Writes `bytes` octets at 100 ms; ten segments are sent.
fn sending(bytes: u32) -> Script {
    let config = ConnectionConfig { congestion: ControllerSpec::named("newreno"), ..config() };
    let mut script = Script::established(config, "mss 1000 sackok");
    script.send(bytes);
    assert_eq!(script.drain().len(), 10);
    script
}

/// RFC 8985 section 6.2 step 4: with three SACKed segments and no reordering so far, the reordering window is zero. RFC
/// 6937: ten segments in flight, ssthresh five. Of ten delivered segments five may be answered: after three, ceil(3 * 5
/// / 10) is one and a half, which is one segment, the retransmission; after four, two are.
#[test]
fn three_sacked_segments_prove_a_loss() {
    let mut script = sending(30_000);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-4001");
    script.expect("A 1+1000 ack 1");
    script.expect_nothing();
    assert_eq!((script.stats().ssthresh_bytes, script.stats().congestion_events), (5000, 1));
    script.inject("A 1 ack 1 sack 1001-5001");
    script.expect("A 10001+1000 ack 1");
    script.inject("A 1 ack 1 sack 1001-6001");
    script.expect_nothing();
}

/// Limited transmit (RFC 3042): new data leave for the first two SACKs. The segment that one SACK overtook counts as
/// lost a quarter of the round-trip time later (RFC 8985 section 6.2 steps 4 and 5).
#[test]
fn one_sacked_segment_waits_for_reordering() {
    let mut script = sending(30_000);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-2001");
    script.expect("A 10001+1000 ack 1");
    script.silent_until(224);
    script.expect_at(225, "A 1+1000 ack 1");
}

/// Steps 3 and 4: data covered by a cumulative ACK arrived in order, so the reordering window stays zero. A hole that
/// an original fills proves reordering; from then on three SACKs are not enough.
#[test]
fn only_reordering_widens_the_window() {
    let mut script = sending(30_000);
    script.run_until(200);
    script.inject("A 1 ack 2001");
    script.drain();
    script.inject("A 1 ack 2001 sack 3001-6001");
    script.expect("A 2001+1000 ack 1");

    let mut script = sending(30_000);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-2001");
    script.inject("A 1 ack 2001");
    script.drain();
    script.inject("A 1 ack 2001 sack 3001-6001");
    assert!(!script.drain().contains(&"A 2001+1000 ack 1".into()));
    script.run_until(225);
    assert!(script.drain().contains(&"A 2001+1000 ack 1".into()));
}

/// Step 5 also finds a lost retransmission: it was sent at 200 ms, and data sent at 210 ms have arrived.
#[test]
fn a_lost_retransmission_is_found() {
    let mut script = sending(30_000);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-4001");
    script.expect("A 1+1000 ack 1");
    script.run_until(210);
    script.inject("A 1 ack 1 sack 1001-5001");
    script.expect("A 10001+1000 ack 1");
    script.run_until(310);
    script.inject("A 1 ack 1 sack 1001-11001");
    script.expect("A 1+1000 ack 1");
    assert_eq!(script.stats().congestion_events, 1);
}

/// Recovery ends when all data sent before it are acknowledged, and the window is at most the threshold.
#[test]
fn recovery_ends_at_its_point() {
    let mut script = sending(10_000);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-10001");
    script.expect("A 1+1000 ack 1");
    assert_eq!((script.stats().in_flight_bytes, script.stats().held_bytes), (1000, 10_000), "nine have arrived");
    script.run_until(300);
    script.inject("A 1 ack 10001");
    assert_eq!((script.stats().in_flight_bytes, script.stats().retransmitted_segments), (0, 1));
    assert_eq!(script.stats().held_bytes, 0);
    assert!(script.stats().cwnd_bytes <= 5000);
    script.silent_until(60_000);
}

/// RFC 8985 section 7.2: after twice the round-trip time a probe repeats the last segment. Section 7.3: this restarts
/// the time-out, of 300 ms.
#[test]
fn a_tail_loss_probe_comes_before_the_time_out() {
    let mut script = sending(10_000);
    script.expect_at(300, "A 9001+1000 ack 1");
    assert_eq!(script.stats().timeouts, 0);
    script.expect_at(600, "A 1+1000 ack 1");
    assert_eq!(script.stats().timeouts, 1);
}

/// Section 7.3: a probe of new data, which the subflow has been given already, likewise restarts the time-out and no
/// other probe.
#[test]
fn a_tail_loss_probe_of_new_data_is_the_only_one() {
    let era = Era { binding: Binding::Early { buffer_bytes: 20_000 }, ..Era::default() };
    let mut script = Script::established(ConnectionConfig { era, ..config() }, "mss 1000 sackok");
    script.send(20_000);
    assert_eq!(script.drain().len(), 10);
    script.expect_at(300, "A 10001+1000 ack 1");
    script.expect_at(600, "A 1+1000 ack 1");
    assert_eq!(script.stats().timeouts, 1);
}

/// Section 7.2: for a single segment, which the peer may acknowledge late, the wait is 200 ms longer, bounded by RTO.
/// Section 7.4.2: the probe repaired an otherwise unnoticed loss, which reduces the window.
#[test]
fn a_repaired_tail_is_a_congestion_event() {
    let mut script = Script::ready();
    script.send(1000);
    script.expect("A 1+1000 ack 1");
    script.expect_at(400, "A 1+1000 ack 1");
    script.run_until(500);
    script.inject("A 1 ack 1001");
    assert_eq!(script.stats().congestion_events, 0, "it may have been the original");
    script.send(1000);
    script.expect("A 1001+1000 ack 1");
    script.run_until(600);
    script.inject("A 1 ack 2001");
    assert_eq!(script.stats().congestion_events, 1);
}

/// Section 7.4.2: a DSACK, or a second ACK without SACK, shows that the original had arrived.
#[test]
fn a_needless_probe_is_none() {
    for duplicate in ["A 1 ack 1001 sack 1-1001", "A 1 ack 1001"] {
        let mut script = Script::ready();
        script.send(1000);
        script.expect("A 1+1000 ack 1");
        script.expect_at(400, "A 1+1000 ack 1");
        script.inject("A 1 ack 1001");
        script.inject(duplicate);
        script.send(1000);
        script.expect("A 1001+1000 ack 1");
        script.inject("A 1 ack 2001");
        assert_eq!(script.stats().congestion_events, 0, "after {duplicate}");
    }
}

/// RFC 6298 section 5.4: a time-out repeats the first segment, whatever the window. RFC 2018 section 8: the second in a
/// row discards the SACKs, because the peer may have reneged.
#[test]
fn a_time_out_repeats_the_first_segment() {
    let mut script = sending(10_000);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-10001");
    script.expect("A 1+1000 ack 1");
    let first = script.drain();
    assert!(first.is_empty());
    // The sample of 100 ms makes RTO 300 ms, from the repair on; doubled, 600 ms later.
    script.expect_at(500, "A 1+1000 ack 1");
    script.expect_at(1100, "A 1+1000 ack 1");
    script.run_until(1200);
    script.inject("A 1 ack 1001");
    assert_eq!(script.drain(), ["A 1001+1000 ack 1", "A 2001+1000 ack 1"]);
}

/// The loss of the last three of ten segments is one congestion event: the probe's repair (RFC 8985 section 7.4.2)
/// belongs to the recovery that its ACK begins (section 7.1).
#[test]
fn a_tail_is_paid_for_once() {
    let mut script = sending(10_000);
    script.run_until(200);
    script.inject("A 1 ack 7001");
    script.expect_at(400, "A 9001+1000 ack 1");
    script.run_until(500);
    script.inject("A 1 ack 7001 sack 9001-10001");
    script.run_until(600);
    script.drain();
    script.inject("A 1 ack 10001");
    assert_eq!(script.stats().congestion_events, 1);
    let ssthresh = script.stats().ssthresh_bytes;
    script.send(1000);
    script.expect("A 10001+1000 ack 1");
    script.run_until(700);
    script.inject("A 1 ack 11001");
    assert_eq!((script.stats().congestion_events, script.stats().ssthresh_bytes), (1, ssthresh));
}

/// Data behind a hole were not in transit all that time. This holds even if their SACKs have been discarded, after two
/// time-outs in a row.
#[test]
fn a_hole_is_no_round_trip() {
    let mut script = sending(10_000);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-10001");
    script.run_until(1200);
    script.drain();
    let before = script.stats().srtt;
    script.inject("A 1 ack 10001");
    assert_eq!((script.stats().timeouts, script.stats().srtt), (2, before));
}

/// RFC 8985 section 6.2 step 3: only newly delivered data can show reordering. What was SACKed before two time-outs in
/// a row had arrived long ago, so three SACKs are still enough.
#[test]
fn discarded_sacks_show_no_reordering() {
    let config =
        ConnectionConfig { congestion: ControllerSpec::named("newreno"), initial_window_segments: 50, ..config() };
    let mut script = Script::established(config, "mss 1000 sackok");
    script.send(50_000);
    assert_eq!(script.drain().len(), 50);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-50001");
    script.run_until(1200);
    assert_eq!((script.drain().len(), script.stats().timeouts), (3, 2));
    script.send(50_000);
    script.inject("A 1 ack 50001");
    assert_eq!(script.drain(), ["A 50001+1000 ack 1", "A 51001+1000 ack 1"]);
    script.run_until(1300);
    script.inject("A 1 ack 52001");
    assert_eq!(script.drain().len(), 4);
    script.run_until(1400);
    script.inject("A 1 ack 52001 sack 53001-56001");
    script.expect("A 52001+1000 ack 1");
}

/// RFC 5681 section 3.1: a window that limits retransmissions grows like one that limits new data, even if the original
/// transmission had not filled it. Of 20 segments the last three arrive, the data sent in recovery are lost, and the
/// time-out halves the remaining window.
#[test]
fn the_window_grows_while_much_is_repaired_after_a_time_out() {
    let config =
        ConnectionConfig { congestion: ControllerSpec::named("newreno"), initial_window_segments: 30, ..config() };
    let mut script = Script::established(config, "mss 1000 sackok");
    script.send(20_000);
    assert_eq!(script.drain().len(), 20);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 17001-20001");
    assert_eq!(script.drain().len(), 3);
    script.run_until(500);
    assert_eq!((script.drain().len(), script.stats().ssthresh_bytes), (1, 2000));
    let (mut acked, mut in_round) = (0, vec![1]);
    for round in 1..=5 {
        script.run_until(500 + 100 * round);
        for _ in 0..*in_round.last().unwrap() {
            acked += 1000;
            script.inject(&format!("A 1 ack {} sack 17001-20001", acked + 1));
        }
        in_round.push(script.drain().len());
    }
    assert_eq!(in_round, [1, 2, 3, 4, 5, 2]);
}

/// RFC 3465 section 2.3: after a time-out an ACK opens the window by one segment, however much it covers. Of 50 segments
/// the first was lost twice; the ACK of its last repair covers all of them, and 49 had been SACKed long before.
#[test]
fn the_ack_that_ends_the_repair_after_a_time_out_causes_no_burst() {
    let config =
        ConnectionConfig { congestion: ControllerSpec::named("newreno"), initial_window_segments: 50, ..config() };
    let mut script = Script::established(config, "mss 1000 sackok");
    script.send(50_000);
    assert_eq!(script.drain().len(), 50);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-50001");
    script.expect("A 1+1000 ack 1");
    script.expect_at(500, "A 1+1000 ack 1");
    script.send(50_000);
    script.expect_nothing();
    assert_eq!((script.stats().cwnd_bytes, script.stats().timeouts), (1000, 1));
    assert!(script.stats().ssthresh_bytes >= 10_000);
    script.run_until(600);
    script.inject("A 1 ack 50001");
    assert_eq!(script.drain(), ["A 50001+1000 ack 1", "A 51001+1000 ack 1"]);
    script.run_until(700);
    script.inject("A 1 ack 52001");
    assert_eq!(script.drain().len(), 4, "slow start");
}

/// RFC 9293 section 3.9.1.2: the last segment of a write is pushed, and so is its retransmission, which may be all that
/// the receiver sees.
#[test]
fn a_retransmission_is_pushed_like_the_original() {
    let config = ConnectionConfig { nagle: false, ..config() };
    let mut script = Script::established(config, "win 65535 mss 1000 sackok");
    script.send(2500);
    let pushed = |segment: wire::Segment| segment.flags.contains(wire::Flags::PSH);
    assert!(!pushed(script.expect("A 1+1000 ack 1")));
    assert!(!pushed(script.expect("A 1001+1000 ack 1")));
    assert!(pushed(script.expect("A 2001+500 ack 1")));
    assert!(pushed(script.expect_at(300, "A 2001+500 ack 1")), "the tail loss probe");
    assert!(!pushed(script.expect_at(600, "A 1+1000 ack 1")), "after the time-out");
    script.run_until(700);
    script.inject("A 1 ack 1001");
    assert!(!pushed(script.expect("A 1001+1000 ack 1")));
    assert!(pushed(script.expect("A 2001+500 ack 1")));
}

/// A probe fell due just before the ACK of everything was read. There is nothing left to probe, and what waits in the
/// subflow leaves at once: no timer would send it later.
#[test]
fn a_needless_probe_delays_no_data() {
    let era = Era { binding: Binding::Early { buffer_bytes: 65_536 }, ..Era::default() };
    let mut script = Script::established(ConnectionConfig { era, ..config() }, "mss 1000 sackok");
    script.send(30_000);
    assert_eq!(script.drain().len(), 10);
    script.now = Instant::from_millis(300);
    script.endpoint.handle_timeout(script.now);
    script.inject("A 1 ack 10001");
    assert!(script.drain().contains(&"A 10001+1000 ack 1".to_owned()));
}
