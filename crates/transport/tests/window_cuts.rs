//! Cuts of congestion windows by a connection's owner, and the statistics that they rest on.

use transport::congestion::{ControllerSpec, WindowSet};
use transport::{ConnectionConfig, SubflowId};
use units::Duration;

use crate::script::{Script, config};

fn sending(bytes: u32) -> Script {
    let config = ConnectionConfig { congestion: ControllerSpec::named("newreno"), ..config() };
    let mut script = Script::established(config, "mss 1000");
    script.send(bytes);
    assert_eq!(script.drain().len(), 10);
    script
}

fn cut(script: &mut Script, cwnd: u64, ssthresh: u64) -> bool {
    let id = script.id();
    script.endpoint.cut_window(id, SubflowId(0), WindowSet { cwnd, ssthresh }, script.now).unwrap()
}

/// Ten segments in flight and a window cut to five: nothing new leaves until six are acknowledged.
#[test]
fn a_cut_window_sends_no_more_than_it_holds() {
    let mut script = sending(30_000);
    script.run_until(200);
    assert!(cut(&mut script, 5_000, 5_000));
    script.inject("A 1 ack 4001");
    script.expect_nothing();
    script.inject("A 1 ack 6001");
    // 4/5 and 2/5.8 of a segment were gained: a window of 6.1 segments, 4 in flight.
    script.expect("A 10001+1000 ack 1");
    script.expect("A 11001+1000 ack 1");
    script.expect_nothing();
    assert_eq!(script.stats().ssthresh_bytes, 5_000);
}

#[test]
fn a_loss_under_repair_is_left_alone() {
    let mut script = sending(30_000);
    script.run_until(200);
    (0..3).for_each(|_| script.inject("A 1 ack 1"));
    let before = script.stats();
    assert!(before.in_recovery);
    assert!(!cut(&mut script, 2_000, 2_000));
    assert_eq!((script.stats().cwnd_bytes, script.stats().ssthresh_bytes), (before.cwnd_bytes, before.ssthresh_bytes));
}

/// The window falls for the mark, and a cut would be lost in that: it is refused, and the statistics say so beforehand.
#[test]
fn a_mark_that_is_being_answered_is_left_alone() {
    let mut script = Script::connect(ConnectionConfig { ecn: true, ..config() });
    script.expect("SEC 0");
    script.inject("SAE 0 ack 1 mss 1000 sackok");
    script.send(30_000);
    assert!(!script.stats().answers_mark);
    script.inject("AE 1 ack 1001");
    assert!(script.stats().answers_mark && !script.stats().in_recovery);
    assert!(!cut(&mut script, 2_000, 2_000));
    script.inject("A 1 ack 10001");
    assert!(!script.stats().answers_mark);
    assert!(cut(&mut script, 2_000, 2_000));
}

#[test]
fn round_trips_can_be_averaged_over_any_span() {
    let mut script = sending(30_000);
    let before = script.stats();
    assert_eq!((before.mss_bytes, before.in_recovery), (1000, false));
    script.run_until(180);
    script.inject("A 1 ack 5001");
    script.run_until(220);
    script.inject("A 1 ack 10001");
    let after = script.stats();
    assert_eq!(after.rtt_samples - before.rtt_samples, 2);
    let sum = after.rtt_sum.saturating_sub(before.rtt_sum);
    // They were sent at 100 ms.
    assert_eq!(sum, Duration::from_millis(80 + 120));
}

/// RFC 9438 section 5.8. The burst fills the window to its end, so no ACK says that the application is the limit. With a
/// minute counted, the target would be half a window away.
#[test]
fn cubic_does_not_grow_for_the_time_between_bursts() {
    let config = ConnectionConfig { congestion: ControllerSpec::named("cubic"), ..config() };
    let mut script = Script::established(config, "mss 1000");
    script.send(10_000);
    assert_eq!(script.drain().len(), 10);
    assert!(cut(&mut script, 5_000, 5_000));
    script.run_until(200);
    script.inject("A 1 ack 10001");
    let before = script.stats().cwnd_bytes;
    script.run_until(60_200);
    script.send(before as u32);
    assert_eq!(script.drain().len(), 6);
    script.run_until(60_300);
    script.inject(&format!("A 1 ack {}", 10_001 + before));
    let grown = script.stats().cwnd_bytes - before;
    assert!((900..1_100).contains(&grown), "{grown} octets in a round trip");
}
