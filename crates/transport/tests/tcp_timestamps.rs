//! Timestamps (RFC 7323).

use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;

use crate::script::{Script, config};

fn stamped() -> Script {
    let config = ConnectionConfig { timestamps: true, ..config() };
    Script::established(config, "mss 1000 sackok ts 5000 0")
}

/// Section 5.3, R1: a timestamp older than TS.Recent is dropped and answered. A segment whose timestamps a network has
/// removed passes, and leaves TS.Recent as it is; a RST needs none.
#[test]
fn old_duplicates_are_kept_out() {
    let mut script = stamped();
    script.inject("A 1+100 ack 1 ts 5010 0");
    assert_eq!(script.expect("A 1 ack 101").options.timestamps.unwrap().echo, 5010);
    script.inject("A 101+100 ack 1 ts 5009 0");
    script.expect("A 1 ack 101");
    script.inject("A 101+100 ack 1");
    script.run_for(200);
    assert_eq!(script.expect("A 1 ack 201").options.timestamps.unwrap().echo, 5010);
    script.inject("A 201+100 ack 1 ts 5009 0");
    script.expect("A 1 ack 201");
    assert_eq!(script.recv(1000), Some(200));
    script.inject("R 201");
    assert_eq!(script.state(), "CLOSED");
}

/// Section 5.5: after 24 days TS.Recent proves nothing. The next timestamp replaces it and proves something again.
#[test]
fn timestamps_grow_stale() {
    let mut script = stamped();
    script.run_until(25 * 24 * 3_600_000);
    script.inject("A 1+100 ack 1 ts 4000 0");
    assert_eq!(script.expect("A 1 ack 101").options.timestamps.unwrap().echo, 4000);
    script.inject("A 101+100 ack 1 ts 3999 0");
    script.expect("A 1 ack 101");
    script.inject("A 101+100 ack 1 ts 4001 0");
    script.expect("A 1 ack 201");
}

/// Section 4.3: the echo is that of the segment that the last ACK waited for, so that holes do not shorten the
/// round-trip time: an out-of-order segment does not count, the one that fills the hole does.
#[test]
fn the_echo_is_that_of_the_next_in_order() {
    let mut script = stamped();
    script.inject("A 1+100 ack 1 ts 5010 0");
    script.expect("A 1 ack 101");
    script.inject("A 301+100 ack 1 ts 5030 0");
    assert_eq!(script.expect("A 1 ack 101 sack 301-401").options.timestamps.unwrap().echo, 5010);
    script.inject("A 101+200 ack 1 ts 5020 0");
    assert_eq!(script.expect("A 1 ack 401").options.timestamps.unwrap().echo, 5020);
}

/// Section 3.2: the option takes 12 octets of each data segment; a peer that offers none gets none.
#[test]
fn options_are_paid_for_by_data() {
    let mut script = stamped();
    script.send(1500);
    assert!(script.expect("A 1+988 ack 1").options.timestamps.is_some());
    let without = ConnectionConfig { timestamps: true, ..config() };
    let mut script = Script::established(without, "mss 1000");
    script.send(1500);
    assert!(script.expect("A 1+1000 ack 1").options.timestamps.is_none());
}

/// The network removes the timestamps of the SYN/ACK: the peer has not agreed to any, and sends none.
#[test]
fn a_peer_that_has_not_heard_of_them_is_served() {
    let mut script = Script::listen(ConnectionConfig { timestamps: true, ..config() });
    script.inject("S 0 mss 1000 ts 5000 0");
    assert!(script.expect("SA 0 ack 1").options.timestamps.is_some());
    script.inject("A 1 ack 1");
    assert_eq!(script.state(), "ESTABLISHED");
    script.inject("A 1+100 ack 1");
    assert!(script.expect("A 1 ack 101").options.timestamps.is_some(), "section 3.2: for the whole connection");
}

/// Section 4.3: a receiver echoes the segment that the ACK answers. If the network has removed the timestamps of our
/// data, it goes on echoing the SYN. This is no round-trip time, and does not show that the original has arrived.
#[test]
fn an_echo_from_before_the_data_tells_nothing() {
    let congestion = ControllerSpec::named("newreno");
    let config = ConnectionConfig { timestamps: true, mtu: 1052, congestion, ..config() };
    let mut script = Script::established(config, "mss 1012 sackok ts 5000 0");
    script.send(30_000);
    let data = script.expect("A 1+1000 ack 1").options.timestamps.unwrap().value;
    let hear = |script: &mut Script, text: &str| {
        script.inject_with(text, |ack| ack.options.timestamps.as_mut().unwrap().echo = data.wrapping_sub(100));
        script.drain()
    };
    script.run_until(200);
    hear(&mut script, "A 1 ack 2001 ts 5001 0");
    script.run_until(210);
    assert!(hear(&mut script, "A 1 ack 2001 ts 5001 0 sack 3001-6001").contains(&"A 2001+1000 ack 1".into()));
    let before = script.stats();
    assert!(before.ssthresh_bytes < 10_000 && before.in_recovery);
    script.run_until(310);
    hear(&mut script, "A 1 ack 6001 ts 5002 0");
    let after = script.stats();
    assert_eq!((after.ssthresh_bytes, after.srtt, after.in_recovery), (before.ssthresh_bytes, before.srtt, true));
}

/// RFC 3522: only the retransmission that began the recovery is judged. Here this was a tail loss probe, which repaired
/// a loss. A later retransmission in the same recovery was needless, which changes nothing about that loss.
#[test]
fn a_needless_retransmission_does_not_undo_the_loss_of_a_tail() {
    let config = ConnectionConfig { timestamps: true, mtu: 1052, ..config() };
    let mut script = Script::established(config, "mss 1012 sackok ts 5000 0");
    let stamp = |segment: wire::Segment| segment.options.timestamps.unwrap().value;
    let hear = |script: &mut Script, at, text: &str, echo| {
        script.run_until(at);
        script.inject_with(text, |ack| ack.options.timestamps.as_mut().unwrap().echo = echo);
    };
    script.send(1000);
    script.expect("A 1+1000 ack 1");
    let probe = stamp(script.expect_at(400, "A 1+1000 ack 1"));
    script.run_until(450);
    script.send(4000);
    let data = stamp(script.expect("A 1001+1000 ack 1"));
    assert_eq!(script.drain().len(), 3);
    hear(&mut script, 500, "A 1 ack 1001 ts 5001 0", probe);
    hear(&mut script, 550, "A 1 ack 2001 ts 5002 0", data);
    let ssthresh = script.stats().ssthresh_bytes;
    assert!(ssthresh < 10_000 && script.stats().congestion_events == 1, "{ssthresh}");
    hear(&mut script, 551, "A 1 ack 2001 ts 5003 0 sack 3001-4001", data);
    script.expect("A 2001+1000 ack 1");
    hear(&mut script, 552, "A 1 ack 4001 ts 5004 0", data);
    assert_eq!(script.stats().ssthresh_bytes, ssthresh);
}

/// Section 4: the echo shows which transmission is answered, so even a retransmission gives a sample, which ends the
/// back-off: SRTT 100, RTTVAR 3/4 * 50 = 37.5, so RTO is back at 100 + 200 ms.
#[test]
fn a_retransmission_can_be_measured() {
    let config = ConnectionConfig { timestamps: true, sack: false, ..config() };
    let mut script = Script::established(config, "mss 1012 ts 5000 0");
    script.send(988);
    script.expect("A 1+988 ack 1");
    script.expect_at(400, "A 1+988 ack 1");
    let stamp = script.expect_at(1000, "A 1+988 ack 1").options.timestamps.unwrap().value;
    script.run_until(1100);
    script.inject_with("A 1 ack 989 ts 5001 0", |ack| ack.options.timestamps.as_mut().unwrap().echo = stamp);
    script.send(988);
    script.expect("A 989+988 ack 1");
    script.expect_at(1400, "A 989+988 ack 1");
}

/// RFC 3522 and RFC 4015: the ACK after a time-out echoes the original. Nothing was lost; the window is restored.
#[test]
fn a_spurious_time_out_is_undone() {
    let mut script = stamped();
    script.send(9880);
    let original = script.expect("A 1+988 ack 1").options.timestamps.unwrap().value;
    assert_eq!(script.drain().len(), 9);
    script.expect_at(300, "A 8893+988 ack 1");
    script.expect_at(600, "A 1+988 ack 1");
    assert_eq!((script.stats().cwnd_bytes, script.stats().timeouts), (988, 1));
    script.run_until(650);
    script.inject_with("A 1 ack 989 ts 5001 0", |ack| ack.options.timestamps.as_mut().unwrap().echo = original);
    assert_eq!(script.stats().ssthresh_bytes, u64::MAX);
    assert!(script.stats().cwnd_bytes >= 9880);
    assert_eq!(script.stats().in_flight_bytes, 8892);
    script.expect_nothing();
}

/// RFC 3522 section 3.2: the second time-out in a row was needless, since the first retransmission was only slow. The
/// originals are lost all the same: the answer to that retransmission restores neither window nor threshold.
#[test]
fn a_needless_second_time_out_does_not_undo_the_first() {
    for sack in [true, false] {
        let config = ConnectionConfig { timestamps: true, sack, ..config() };
        let mut script = Script::established(config, "mss 1000 sackok ts 5000 0");
        script.send(9880);
        assert_eq!(script.drain().len(), 10);
        let mut repairs = Vec::new();
        while script.stats().timeouts < 2 {
            script.run_for(10);
            repairs.extend(script.drain_segments().into_iter().filter(|segment| segment.payload.len() == 988));
        }
        let ssthresh = script.stats().ssthresh_bytes;
        assert!(ssthresh < 9880, "{ssthresh}");
        let first = repairs[repairs.len() - 2].options.timestamps.unwrap().value;
        script.inject_with("A 1 ack 989 ts 5001 0", |ack| ack.options.timestamps.as_mut().unwrap().echo = first);
        assert_eq!((script.stats().ssthresh_bytes, script.stats().cwnd_bytes), (ssthresh, 2 * 988), "SACK: {sack}");
        assert_eq!(script.drain(), ["A 989+988 ack 1", "A 1977+988 ack 1"], "the lost ones are sent again");
    }
}

/// Both time-outs in a row were needless: the answer to the original undoes them.
#[test]
fn two_needless_time_outs_in_a_row_are_undone() {
    let mut script = stamped();
    script.send(9880);
    let original = script.expect("A 1+988 ack 1").options.timestamps.unwrap().value;
    while script.stats().timeouts < 2 {
        script.run_for(10);
    }
    script.drain();
    script.inject_with("A 1 ack 989 ts 5001 0", |ack| ack.options.timestamps.as_mut().unwrap().echo = original);
    assert_eq!(script.stats().ssthresh_bytes, u64::MAX);
    assert!(script.stats().cwnd_bytes >= 9880);
    script.expect_nothing();
}

/// The first segment had arrived, the second was lost. Without SACK, duplicate ACKs show that (RFC 6582): they are not held
/// back by the time-out, which was undone.
#[test]
fn after_an_undone_time_out_duplicate_acks_begin_a_repair() {
    let config = ConnectionConfig { timestamps: true, sack: false, ..config() };
    let mut script = Script::established(config, "mss 1000 ts 5000 0");
    script.send(30_000);
    let original = script.expect("A 1+988 ack 1").options.timestamps.unwrap().value;
    assert_eq!(script.drain().len(), 9);
    script.run_until(450);
    assert_eq!((script.drain().len(), script.stats().timeouts), (1, 1));
    let mut hear = |text: &str| {
        script.inject_with(text, |ack| ack.options.timestamps.as_mut().unwrap().echo = original);
        script.drain()
    };
    hear("A 1 ack 989 ts 5001 0");
    hear("A 1 ack 989 ts 5002 0");
    hear("A 1 ack 989 ts 5003 0");
    assert_eq!(hear("A 1 ack 989 ts 5004 0")[0], "A 989+988 ack 1");
}

/// RFC 3522 and RFC 8985 section 6.2: four segments are overtaken, and the originals arrive when only two of them have
/// been sent again. The ACK of the first original undoes the recovery, and does not begin another one for the others,
/// which may be as late.
#[test]
fn an_undone_recovery_stays_undone() {
    for late_by in [5, 40] {
        let (mut script, original) = overtaken("A 1 ack 1 sack 3953-6917 ts 5001 0");
        assert_eq!(script.drain(), ["A 1+988 ack 1", "A 989+988 ack 1"], "3 and 4 wait");
        assert_eq!((script.stats().congestion_events, script.stats().ssthresh_bytes), (1, 4940));
        script.run_until(200 + late_by);
        let mut hear =
            |text: &str| script.inject_with(text, |ack| ack.options.timestamps.as_mut().unwrap().echo = original);
        hear("A 1 ack 989 sack 3953-6917 ts 5002 0");
        hear("A 1 ack 3953 sack 3953-6917 ts 5003 0");
        let stats = script.stats();
        assert_eq!(
            (stats.congestion_events, stats.ssthresh_bytes, stats.in_recovery),
            (1, u64::MAX, false),
            "{late_by}"
        );
    }
}

/// Of three lost segments two have been sent again, and are slow. The time-out for the first was needless, the recovery
/// was not: it goes on, without a third reduction for the same window.
#[test]
fn a_needless_time_out_leads_back_to_its_recovery() {
    let (mut script, _) = overtaken("A 1 ack 1 sack 2965-6917 ts 5001 0");
    let repair = script.expect("A 1+988 ack 1").options.timestamps.unwrap().value;
    assert_eq!(script.drain(), ["A 989+988 ack 1"], "3 waits");
    while script.stats().timeouts == 0 {
        script.run_for(10);
    }
    assert_eq!(script.drain(), ["A 1+988 ack 1"]);
    let hear = |script: &mut Script, text: &str| {
        script.inject_with(text, |ack| ack.options.timestamps.as_mut().unwrap().echo = repair);
    };
    hear(&mut script, "A 1 ack 989 sack 2965-6917 ts 5002 0");
    let stats = script.stats();
    assert_eq!((stats.congestion_events, stats.ssthresh_bytes, stats.in_recovery), (2, 4940, true));
    assert!(script.drain().contains(&"A 1977+988 ack 1".into()), "3 is repaired");
    hear(&mut script, "A 1 ack 9881 ts 5003 0");
    let stats = script.stats();
    assert_eq!((stats.congestion_events, stats.ssthresh_bytes, stats.in_recovery), (2, 4940, false));
}

/// Sends ten segments, of which the peer answers some with `sacks` after 100 ms. Returns the originals' timestamp.
fn overtaken(sacks: &str) -> (Script, u32) {
    let config = ConnectionConfig { timestamps: true, congestion: ControllerSpec::named("newreno"), ..config() };
    let mut script = Script::established(config, "mss 1000 sackok ts 5000 0");
    script.send(30_000);
    let original = script.expect("A 1+988 ack 1").options.timestamps.unwrap().value;
    assert_eq!(script.drain().len(), 9);
    script.run_until(200);
    script.inject(sacks);
    (script, original)
}

/// RFC 4015 section 3.4: the ACK that shows it may cover a whole window, but releases no more than an initial one, and
/// as an ACK of slow start one segment more (RFC 3465 section 2.3). Slow start leads back to the window before.
#[test]
fn an_undone_time_out_causes_no_burst() {
    let mut script = stamped();
    script.send(60_000);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    script.inject("A 1 ack 9881 ts 5001 0");
    let sent = script.drain_segments();
    assert_eq!((sent.len(), script.stats().cwnd_bytes), (20, 20 * 988));
    script.run_until(700);
    assert_eq!(script.stats().timeouts, 1);
    script.drain();
    let (all, original) = (1 + 30 * 988, sent[0].options.timestamps.unwrap().value);
    let answer = format!("A 1 ack {all} ts 5002 0");
    script.inject_with(&answer, |ack| ack.options.timestamps.as_mut().unwrap().echo = original);
    assert_eq!(script.drain().len(), 11);
    assert_eq!((script.stats().cwnd_bytes, script.stats().ssthresh_bytes), (11 * 988, u64::MAX));
}

/// RFC 4015 section 3.4: nothing was lost, so nothing is repaired, but the echo of a mark keeps the window reduced.
#[test]
fn a_spurious_time_out_with_a_mark_stays_a_reduction() {
    let config = ConnectionConfig { timestamps: true, ecn: true, ..config() };
    let mut script = Script::connect(config);
    script.expect("SEC 0");
    script.run_until(100);
    script.inject("SAE 0 ack 1 mss 1000 sackok ts 5000 0");
    script.expect("A 1 ack 1");
    script.send(30_000);
    let original = script.expect("A 1+988 ack 1 ect").options.timestamps.unwrap().value;
    assert_eq!(script.drain().len(), 9);
    script.run_until(600);
    let ssthresh = script.stats().ssthresh_bytes;
    assert_eq!((script.stats().cwnd_bytes, script.stats().timeouts), (988, 1));
    assert!(ssthresh < 9880, "{ssthresh}");
    script.drain();
    script.run_until(650);
    script.inject_with("AE 1 ack 989 ts 5001 0", |ack| ack.options.timestamps.as_mut().unwrap().echo = original);
    assert_eq!(script.stats().ssthresh_bytes, ssthresh);
    assert!(script.stats().cwnd_bytes <= 2 * 988, "{}", script.stats().cwnd_bytes);
    let retransmitted = script.stats().retransmitted_segments;
    script.inject_with("A 1 ack 9881 ts 5002 0", |ack| ack.options.timestamps.as_mut().unwrap().echo = original);
    assert_eq!(script.stats().ssthresh_bytes, ssthresh);
    assert_eq!(script.stats().retransmitted_segments, retransmitted);
    assert!(script.drain()[0].starts_with("AC "), "CWR answers the mark");
}

/// Section 3.2: a RST of a connection with timestamps SHOULD carry them; one for a segment of no connection cannot.
#[test]
fn resets_carry_them() {
    let mut script = stamped();
    script.inject("A 1+100 ack 1 ts 5010 0");
    script.expect("A 1 ack 101");
    script.abort();
    let reset = script.expect("RA 1 ack 101");
    assert_eq!(reset.options.timestamps.unwrap().echo, 5010);
    script.inject("A 101+100 ack 1 ts 5011 0");
    assert!(script.expect("R 1").options.timestamps.is_none());

    let without = ConnectionConfig { timestamps: true, ..config() };
    let mut script = Script::established(without, "mss 1000");
    script.abort();
    assert!(script.expect("RA 1 ack 1").options.timestamps.is_none());
}
