//! Subflows that acknowledge octets which never arrive: a relay acknowledged them in the peer's name and lost them. The
//! data level times out (RFC 8684 section 3.3.6), and other subflows carry the missing and the new data. On a
//! connection that never had another subflow, this looks like a peer that has fallen back (section 3.7).

use transport::Event;

use crate::script::{Script, mptcp_config};

/// Two subflows; the first has the shorter round-trip time.
fn two_subflows() -> Script {
    let mut script = Script::listen(mptcp_config());
    script.inject("S 0 mss 1000 sackok mpc");
    script.expect("SA 0 ack 1 mpc");
    script.run_for(10);
    script.inject("A 1 ack 1 mpc");
    script.expect("A 1 ack 1 dack 1");
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect("2: SA 0 ack 1 join");
    script.run_for(50);
    script.inject("2: A 1 ack 1 join");
    script.drain();
    script
}

/// Asserts that one segment of new data leaves on this flow.
#[track_caller]
fn sends_on(script: &mut Script, line: &str) {
    script.send(980);
    script.expect(line);
}

#[test]
fn who_swallowed_octets_does_not_carry_them_again() {
    let mut script = two_subflows();
    sends_on(&mut script, "A 1+980 ack 1 dack 1 map 1");
    script.run_for(10);
    script.inject("A 1 ack 981 dack 1");
    script.run_for(989);
    script.expect_nothing();
    script.run_for(1);
    script.expect("2: A 1+980 ack 1 dack 1 map 1");
    script.run_for(50);
    script.inject("2: A 1 ack 981 dack 981");
    // As many octets as were missing at the discovery go to the other subflow.
    sends_on(&mut script, "2: A 981+980 ack 1 dack 1 map 981");
    script.run_for(50);
    script.inject("2: A 1 ack 1961 dack 1961");
    sends_on(&mut script, "A 981+980 ack 1 dack 1 map 1961");
}

/// After two failures in a row the subflow is suspended for twice as long. After the same time without a failure it is
/// as good as any.
#[test]
fn tries_become_rare_as_they_fail() {
    let mut script = two_subflows();
    let mut on_the_first = Vec::new();
    let (mut first, mut second) = (1, 1);
    for k in 0..40 {
        let number = 1 + 980 * k;
        script.send(980);
        let line = script.drain().pop().unwrap();
        if line.starts_with("A ") {
            on_the_first.push(k);
            first += 980;
            script.run_for(10);
            script.inject(&format!("A 1 ack {first} dack {number}"));
            script.run_for(990);
            let again = script.drain();
            assert!(again.iter().all(|line| line.starts_with("2: ")) && again.len() == 1, "{again:?}");
        }
        second += 980;
        script.run_for(50);
        script.inject(&format!("2: A 1 ack {second} dack {}", number + 980));
    }
    assert_eq!(on_the_first, [0, 2, 5, 10, 19, 36]);
}

/// The first octets sent again show whether the rest is missing too: a relay may only be slow. Data that the other
/// subflow delivered wait at the peer for the missing data, and are not sent again.
#[test]
fn only_what_was_swallowed_is_sent_again() {
    let mut script = two_subflows();
    script.send(12 * 980);
    assert_eq!(script.drain().iter().filter(|line| line.starts_with("2: ")).count(), 2);
    script.run_for(10);
    script.inject("A 1 ack 9801 dack 1");
    script.run_for(40);
    script.inject("2: A 1 ack 1961 dack 1");
    script.run_for(950);
    script.expect("2: A 1961+980 ack 1 dack 1 map 1");
    script.run_for(50);
    script.inject("2: A 1 ack 2941 dack 981");
    script.run_for(990);
    script.expect_nothing();
    script.run_for(10);
    let (mut acked, mut again) = (2941, Vec::new());
    loop {
        let sent = script.drain();
        if sent.is_empty() {
            break;
        }
        again.extend(sent.iter().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()));
        assert!(sent.iter().all(|line| line.starts_with("2: ")), "{sent:?}");
        acked += 980 * sent.len() as u64;
        script.run_for(50);
        script.inject(&format!("2: A 1 ack {acked} dack {}", 981 + 980 * again.len()));
    }
    assert_eq!(again, (1..10).map(|k| 1 + 980 * k).collect::<Vec<u64>>());
}

/// If all subflows have swallowed data, those that failed less come first.
#[test]
fn who_swallowed_less_is_tried_first() {
    let mut script = two_subflows();
    let mut carriers = Vec::new();
    let (mut first, mut second) = (1, 1);
    script.send(980);
    for _ in 0..8 {
        let mut sent = script.drain();
        while sent.is_empty() {
            script.run_for(10);
            sent = script.drain();
        }
        assert!(sent.len() == 1 && sent[0].ends_with("map 1"), "{sent:?}");
        let on_the_second = sent[0].starts_with("2: ");
        carriers.push(on_the_second);
        let acked = if on_the_second { &mut second } else { &mut first };
        *acked += 980;
        let (flow, acked) = (if on_the_second { "2: " } else { "" }, *acked);
        script.inject(&format!("{flow}A 1 ack {acked} dack 1"));
    }
    let on_the_second = carriers.iter().filter(|second| **second).count();
    assert!((3..=5).contains(&on_the_second), "{carriers:?}");
}

/// A swallowing subflow is better than one without signs of life.
#[test]
fn who_swallows_is_better_than_nobody() {
    let mut script = two_subflows();
    sends_on(&mut script, "A 1+980 ack 1 dack 1 map 1");
    script.run_for(10);
    script.inject("A 1 ack 981 dack 1");
    script.run_for(1000);
    script.expect("2: A 1+980 ack 1 dack 1 map 1");
    script.inject("2: R 1");
    script.expect("A 981+980 ack 1 dack 1 map 1");
    script.inject("A 1 ack 1961 dack 981");
    assert_eq!(script.closed(), None);
}

/// A silent subflow does not delay the repairs of the others.
#[test]
fn a_silent_subflow_does_not_stretch_the_time_out() {
    let mut script = two_subflows();
    script.send(12 * 980);
    assert_eq!(script.drain().iter().filter(|line| line.starts_with("2: ")).count(), 2);
    script.run_for(10);
    script.inject("A 1 ack 9801 dack 9801");
    script.run_for(400);
    assert!(script.drain().iter().any(|line| line.starts_with("A 9801+980")), "the first takes over");
    script.inject("A 1 ack 11761 dack 11761");
    script.run_for(60_000);
    script.drain();
    sends_on(&mut script, "A 11761+980 ack 1 dack 1 map 11761");
    script.inject("A 1 ack 12741 dack 11761");
    script.run_for(1000);
    script.expect("A 12741+980 ack 1 dack 1 map 11761");
}

/// Nor does one that alternates between silence and life.
#[test]
fn a_subflow_that_comes_and_goes_does_not_put_off_the_time_out() {
    let mut script = two_subflows();
    script.send(12 * 980);
    assert_eq!(script.drain().iter().filter(|line| line.starts_with("2: ")).count(), 2);
    script.run_for(10);
    script.inject("A 1 ack 9801 dack 9801");
    script.run_for(40);
    // The second subflow swallowed its part.
    script.inject("2: A 1 ack 1961 dack 9801");
    let (mut acked, mut waited_ms) = (9801, 0);
    loop {
        script.send(980);
        script.run_for(800);
        let sent = script.drain();
        if sent.iter().any(|line| line.ends_with("map 9801")) {
            break;
        }
        acked += 980;
        script.inject(&format!("A 1 ack {acked} dack 9801"));
        waited_ms += 800;
        assert!(waited_ms < 3_000, "what was swallowed is not missed");
    }
}

/// A lone DATA_FIN: no ACK of TCP shows whether it has arrived, so the subflows take turns.
#[test]
fn a_data_fin_on_its_own_takes_turns() {
    let mut script = two_subflows();
    script.shutdown();
    script.expect("A 1 ack 1 dack 1 dfin 1");
    script.run_for(1000);
    script.expect("2: A 1 ack 1 dack 1 dfin 1");
    script.inject("2: A 1 ack 1 dack 2 dfin 1");
    // It has arrived, so the subflows close.
    script.expect("FA 1 ack 1 dack 2");
    script.expect("2: FA 1 ack 1 dack 2");
}

/// The only subflow acknowledges 980 octets without a DATA_ACK, after earlier ACKs with one.
fn in_doubt() -> Script {
    let mut script = Script::accepted();
    sends_on(&mut script, "A 1+980 ack 1 dack 1 map 1");
    script.inject("A 1 ack 981 dack 981");
    sends_on(&mut script, "A 981+980 ack 1 dack 1 map 981");
    script.inject("A 1 ack 1961");
    script
}

fn has_fallen_back(script: &Script) -> bool {
    script.events.iter().any(|event| matches!(event, Event::FellBack(_)))
}

/// A peer that has fallen back would not join, so octets acknowledged in its name are sent again.
#[test]
fn who_joins_has_not_fallen_back() {
    let mut script = in_doubt();
    script.run_for(2000);
    script.expect_nothing();
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect("2: SA 0 ack 1 join");
    script.inject("2: A 1 ack 1 join");
    script.run_for(2000);
    let sent = script.drain();
    assert!(sent.contains(&"2: A 1+980 ack 1 dack 1 map 981".to_string()), "{sent:?}");
    assert!(!has_fallen_back(&script));
}

/// Nothing is sent again on the same subflow: a peer that has fallen back would add it to the stream.
#[test]
fn where_nobody_joins_the_peer_has_fallen_back() {
    let mut script = in_doubt();
    script.run_for(6900);
    script.expect_nothing();
    assert!(!has_fallen_back(&script));
    script.run_for(200);
    assert!(has_fallen_back(&script));
    script.send(500);
    let sent = script.drain();
    assert!(sent.last().is_some_and(|line| line.starts_with("A 1961+500 ack 1")), "{sent:?}");
}

/// A new DATA_ACK ends the doubt.
#[test]
fn a_data_ack_ends_the_doubt() {
    let mut script = in_doubt();
    script.run_for(500);
    script.inject("A 1 ack 1961 dack 1961");
    sends_on(&mut script, "A 1961+980 ack 1 dack 1 map 1961");
    script.inject("A 1 ack 2941 dack 1961");
    script.run_for(20_000);
    assert!(!has_fallen_back(&script));
}

/// A relay that swallows from the start lets no DATA_ACK through. The first octets are acknowledged without one while a
/// join waits for its third ACK.
fn in_doubt_from_the_start() -> Script {
    let mut script = Script::accepted();
    sends_on(&mut script, "A 1+980 ack 1 dack 1 map 1");
    let flow = script.new_flow();
    script.inject(&format!("{flow}: S 0 mss 1000 sackok join"));
    script.expect("2: SA 0 ack 1 join");
    script.inject("A 1 ack 981");
    assert!(!has_fallen_back(&script));
    script
}

/// A join that succeeds shows that the peer speaks MPTCP: the first subflow strips or forges, and ends at the next such
/// answer.
#[test]
fn who_is_joining_has_not_fallen_back() {
    let mut script = in_doubt_from_the_start();
    script.expect_nothing();
    script.inject("2: A 1 ack 1 join");
    script.drain();
    sends_on(&mut script, "A 981+980 ack 1 dack 1 map 981");
    script.inject("A 1 ack 1961");
    let sent = script.drain();
    assert_eq!(sent[0], "RA 1961 ack 1 tcprst", "{sent:?}");
    script.run_for(1000);
    let sent = [sent, script.drain()].concat();
    for number in [1, 981] {
        let again = format!("2: A {number}+980 ack 1 dack 1 map {number}");
        assert!(sent.contains(&again), "{sent:?}");
    }
    assert!(!has_fallen_back(&script));
}

/// Without another answer on the first subflow, the data-level time-out detects it.
#[test]
fn who_has_joined_gets_what_was_swallowed_at_the_start() {
    let mut script = in_doubt_from_the_start();
    script.inject("2: A 1 ack 1 join");
    script.drain();
    script.run_for(1000);
    script.expect("2: A 1+980 ack 1 dack 1 map 1");
    assert!(!has_fallen_back(&script));
}

/// Section 3.7: without a join, the first answer without a DATA_ACK ends MPTCP. With a join in progress the next one
/// does, if the peer refuses that join, as a peer that has fallen back in the meantime does.
#[test]
fn who_gives_up_its_join_has_fallen_back() {
    let mut script = Script::accepted();
    sends_on(&mut script, "A 1+980 ack 1 dack 1 map 1");
    script.inject("A 1 ack 981");
    assert!(has_fallen_back(&script));
    let mut script = in_doubt_from_the_start();
    script.inject("2: R 1");
    sends_on(&mut script, "A 981+980 ack 1 dack 1 map 981");
    script.inject("A 1 ack 1961");
    assert!(has_fallen_back(&script));
    script.send(500);
    let sent = script.drain();
    assert!(sent.last().is_some_and(|line| line.starts_with("A 1961+500 ack 1")), "{sent:?}");
}

/// Anyone who has seen the token can begin a join and never complete it. This delays fallback by three data-level
/// time-outs.
#[test]
fn a_join_that_is_not_completed_puts_fallback_off_only() {
    let mut script = in_doubt_from_the_start();
    script.run_for(6900);
    assert!(!has_fallen_back(&script));
    script.run_for(200);
    assert!(has_fallen_back(&script));
}
