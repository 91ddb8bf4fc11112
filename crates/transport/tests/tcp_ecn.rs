//! Explicit congestion notification (RFC 3168).

use transport::ConnectionConfig;

use crate::script::{Script, config};

fn connect() -> Script {
    Script::connect(ConnectionConfig { ecn: true, ..config() })
}

fn capable() -> Script {
    let mut script = connect();
    script.expect("SEC 0");
    script.run_until(100);
    script.inject("SAE 0 ack 1 mss 1000 sackok");
    script.expect("A 1 ack 1");
    script
}

/// Section 6.1.1: ECE and CWR offer ECN, ECE alone accepts it; both on a SYN/ACK are a broken host's reflection.
#[test]
fn is_agreed_upon_in_the_handshake() {
    let mut script = capable();
    script.send(1000);
    script.expect("A 1+1000 ack 1 ect");
    for refusal in ["SA", "SAEC", "SAC"] {
        let mut script = connect();
        script.expect("SEC 0");
        script.inject(&format!("{refusal} 0 ack 1 mss 1000"));
        script.expect("A 1 ack 1");
        script.send(1000);
        script.expect("A 1+1000 ack 1");
    }
    let mut server = Script::listen(ConnectionConfig { ecn: true, ..config() });
    server.inject("SEC 0 mss 1000");
    server.expect("SAE 0 ack 1");
}

/// Section 6.1.3: the receiver echoes until it sees CWR, on every ACK.
#[test]
fn a_mark_is_echoed_until_cwr() {
    let mut script = capable();
    script.inject("A 1+1000 ack 1 ce");
    script.expect("AE 1 ack 1001");
    script.inject("A 1001+1000 ack 1");
    script.expect("AE 1 ack 2001");
    script.inject("AC 2001+1000 ack 1");
    script.expect("A 1 ack 3001");
    script.inject("AC 3001+1000 ack 1 ce");
    script.expect("AE 1 ack 4001");
}

/// Section 6.1.2: the sender reacts once per window of data, and signals this with CWR on the next new data.
#[test]
fn an_echo_counts_once_per_window() {
    let mut script = capable();
    script.send(30_000);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    for acked in 1..=10 {
        script.inject(&format!("AE 1 ack {}", acked * 1000 + 1));
    }
    let sent = script.drain();
    assert_eq!(script.stats().congestion_events, 1);
    assert!(sent[0].starts_with("AC 10001+1000"), "{sent:?}");
    assert!(sent[1..].iter().all(|text| text.starts_with("A ")), "{sent:?}");
    assert!(script.stats().cwnd_bytes <= 6000);
    script.inject("AE 1 ack 11001");
    assert_eq!(script.stats().congestion_events, 2, "a mark of the new window");
}

/// Section 6.1.5: retransmissions are not ECN-capable; section 6.1.2: after any reduction the next new data carry CWR.
#[test]
fn a_loss_is_told_like_a_mark() {
    let mut script = capable();
    script.send(11_000);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-4001");
    script.expect("A 1+1000 ack 1");
    script.run_until(300);
    script.inject("A 1 ack 10001");
    script.expect("AC 10001+1000 ack 1 ect");
}

/// Section 6.1.2: a mark is congestion, but nothing is lost. ACKs that advance behind it repeat nothing.
#[test]
fn an_echo_repeats_nothing() {
    let mut script = connect();
    script.expect("SEC 0");
    script.inject("SAE 0 ack 1 mss 1000");
    script.expect("A 1 ack 1");
    script.send(30_000);
    assert_eq!(script.drain().len(), 10);
    for text in ["AE 1 ack 1001", "A 1 ack 2001", "A 1 ack 3001"] {
        script.inject(text);
    }
    let stats = script.stats();
    assert_eq!((stats.congestion_events, stats.retransmitted_segments, stats.in_recovery), (1, 0, false));
    // Three duplicate ACKs show a loss, which belongs to the same window: it is repaired without another reduction.
    script.drain();
    for _ in 0..3 {
        script.inject("A 1 ack 3001");
    }
    assert_eq!(script.drain().iter().filter(|text| *text == "A 3001+1000 ack 1").count(), 1);
    let stats = script.stats();
    assert_eq!((stats.congestion_events, stats.retransmitted_segments, stats.in_recovery), (1, 1, true));
    script.inject("A 1 ack 10001");
    assert_eq!((script.stats().congestion_events, script.stats().in_recovery), (1, false));
}

/// RFC 8985 section 6.2 step 4: only a loss recovery shuts the reordering window. A loss is found all the same.
#[test]
fn a_segment_may_be_overtaken_behind_an_echo() {
    let mut script = capable();
    script.send(10_000);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    script.inject("AE 1 ack 1001");
    script.inject("A 1 ack 1001 sack 2001-3001");
    script.expect_nothing();
    script.inject("A 1 ack 3001");
    assert_eq!(script.stats().retransmitted_segments, 0);
    script.inject("A 1 ack 3001 sack 4001-7001");
    script.expect_at(225, "A 3001+1000 ack 1");
    let stats = script.stats();
    assert_eq!((stats.congestion_events, stats.in_recovery), (1, true));
}

/// RFC 8985 section 7.2: a tail loss probe is refused only during a loss recovery.
#[test]
fn a_tail_behind_an_echo_is_probed() {
    let mut script = capable();
    script.send(10_000);
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    script.inject("AE 1 ack 8001");
    script.expect_at(400, "A 9001+1000 ack 1");
    assert_eq!(script.stats().timeouts, 0);
}
