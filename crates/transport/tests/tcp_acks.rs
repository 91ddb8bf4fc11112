//! Delayed acknowledgements (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).

use transport::ConnectionConfig;
use transport::era::{AckDelay, Era};
use units::{Duration, Instant};

use crate::script::{Script, config};

/// Creates a connection after its first 16 segments, which are acknowledged one by one.
fn warmed_up(config: ConnectionConfig) -> Script {
    let mut script = Script::established(config, "mss 1000 sackok");
    for n in 0..16 {
        script.inject(&format!("A {}+1000 ack 1", 1 + n * 1000));
        script.expect(&format!("A 1 ack {}", 1001 + n * 1000));
    }
    script.recv(100_000);
    script
}

/// Every second full segment is acknowledged at once, a single one after 40 ms.
#[test]
fn every_second_segment_or_after_a_while() {
    let mut script = warmed_up(config());
    script.inject("A 16001+1000 ack 1");
    script.silent_until(139);
    script.expect_at(140, "A 1 ack 17001");
    script.inject("A 17001+1000 ack 1");
    script.expect_nothing();
    script.inject("A 18001+1000 ack 1");
    script.expect("A 1 ack 19001");
    script.silent_until(1000);
}

/// A probe of a shut window takes the place of no ACK: the peer drops it unread (RFC 9293 section 3.10.7.4).
#[test]
fn a_probe_is_no_ack() {
    let mut script = warmed_up(config());
    script.inject("A 16001 ack 1 win 0");
    script.send(1000);
    script.run_until(390);
    script.inject("A 16001+100 ack 1 win 0");
    script.expect_at(400, "A 0 ack 16101");
    script.expect_at(430, "A 1 ack 16101");
}

/// Nor does it settle the timestamp that the next ACK owes: that of the earliest segment which it acknowledges
/// (RFC 7323 section 4.3).
#[test]
fn a_probe_echoes_for_no_ack() {
    let stamped = ConnectionConfig { timestamps: true, ..config() };
    let mut script = Script::established(stamped, "mss 1012 sackok ts 5000 0");
    for n in 0..16 {
        script.inject(&format!("A {}+1000 ack 1 ts 5001 0", 1 + n * 1000));
    }
    script.recv(100_000);
    script.inject("A 16001 ack 1 win 0 ts 5002 0");
    script.drain();
    script.send(988);
    script.run_until(390);
    script.drain();
    script.inject("A 16001+100 ack 1 win 0 ts 5100 0");
    script.expect_at(400, "A 0 ack 16101");
    script.run_until(410);
    script.inject("A 16101+100 ack 1 win 0 ts 5120 0");
    let ack = script.expect_at(430, "A 1 ack 16201");
    assert_eq!(ack.options.timestamps.map(|stamps| stamps.echo), Some(5100));
}

/// The peer's segments define a full segment: here 600 octets, as over a path with a smaller MTU.
#[test]
fn a_full_segment_is_the_peers() {
    let mut script = Script::established(config(), "mss 1000 sackok");
    for n in 0..16 {
        script.inject(&format!("A {}+600 ack 1", 1 + n * 600));
    }
    script.drain();
    script.inject("A 9601+600 ack 1");
    script.expect_nothing();
    script.inject("A 10201+600 ack 1");
    script.expect("A 1 ack 10801");
}

/// RFC 5681 section 4.2: segments out of order are acknowledged at once, as is one that fills a hole; so is a FIN.
#[test]
fn what_is_not_delayed() {
    let mut script = warmed_up(config());
    script.inject("A 17001+1000 ack 1");
    script.expect("A 1 ack 16001 sack 17001-18001");
    script.inject("A 16001+1000 ack 1");
    script.expect("A 1 ack 18001");
    script.inject("FA 18001 ack 1");
    script.expect("A 1 ack 18002");
}

fn now_ms(script: &Script) -> u64 {
    script.now.saturating_since(Instant::ZERO).as_millis()
}

/// One segment per round trip of 100 ms: the wait for a second one doubles until it is as long. After a pause in which
/// the peer may have timed out, and after duplicate data, 16 segments are acknowledged at once and the delay returns to
/// the minimum.
#[test]
fn an_adaptive_delay_grows_to_a_round_trip() {
    let era = Era { ack_delay: AckDelay::Adaptive, ..Era::default() };
    let mut script = warmed_up(ConnectionConfig { era, ..config() });
    let mut next = 16_001;
    let mut one = |script: &mut Script, waits_ms: u64| {
        let began_ms = now_ms(script);
        script.inject(&format!("A {next}+1000 ack 1"));
        next += 1000;
        let ack = format!("A 1 ack {next}");
        match waits_ms {
            0 => script.expect(&ack),
            _ => script.expect_at(began_ms + waits_ms, &ack),
        };
        script.recv(1000);
        script.run_for(100);
    };
    for waits_ms in [40, 80, 100, 100] {
        one(&mut script, waits_ms);
    }
    script.run_for(1000);
    (0..16).for_each(|_| one(&mut script, 0));
    one(&mut script, 40);
    one(&mut script, 80);
    script.inject("A 17001+1000 ack 1");
    script.drain();
    (0..16).for_each(|_| one(&mut script, 0));
    one(&mut script, 40);
}

/// Data carry the ACK, and the timer stops.
#[test]
fn data_carry_the_ack() {
    let mut script = warmed_up(config());
    script.inject("A 16001+100 ack 1");
    script.send(50);
    script.expect("A 1+50 ack 16101");
    script.inject("A 16101 ack 51");
    script.silent_until(10_000);
}

/// A delay of zero disables the delay.
#[test]
fn no_delay() {
    let mut script = warmed_up(ConnectionConfig { delayed_ack: Duration::ZERO, ..config() });
    script.inject("A 16001+100 ack 1");
    script.expect("A 1 ack 16101");
}

/// RFC 9293 section 3.9.1.2: PSH is set only on the segment that ends the available data.
#[test]
fn push_ends_what_there_is() {
    let mut script = warmed_up(config());
    script.send(2500);
    let pushed = |segment: wire::Segment| segment.flags.contains(wire::Flags::PSH);
    assert!(!pushed(script.expect("A 1+1000 ack 16001")));
    assert!(!pushed(script.expect("A 1001+1000 ack 16001")));
    script.inject("A 16001 ack 2001");
    assert!(pushed(script.expect("A 2001+500 ack 16001")));
}
