//! Segments of an attacker who guesses (RFC 5961), and plain garbage.

use crate::script::Script;

/// RFC 5961 section 3.2: only an exact match resets; a RST elsewhere in the window is challenged; others are ignored.
/// The window announced is 65535 octets from 1.
#[test]
fn a_guessed_reset_is_challenged() {
    let mut script = Script::ready();
    script.inject("R 2");
    script.expect("A 1 ack 1");
    script.run_for(100);
    script.inject("R 65535");
    script.expect("A 1 ack 1");
    script.run_for(100);
    script.inject("R 65536");
    script.inject("R 0");
    script.expect_nothing();
    assert_eq!(script.state(), "ESTABLISHED");
    script.inject("R 1");
    assert_eq!(script.state(), "CLOSED");
}

/// RFC 5961 section 4.2: a SYN is challenged whatever its sequence number.
#[test]
fn a_syn_inside_a_connection_is_challenged() {
    for seq in [-5000, 0, 1, 30_000, 100_000] {
        let mut script = Script::ready();
        script.inject(&format!("S {seq} mss 1000"));
        script.expect("A 1 ack 1");
        assert_eq!(script.state(), "ESTABLISHED");
    }
}

/// RFC 5961 section 5.2: unless SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT, the data are not taken. Here 1 - 65535.
#[test]
fn data_with_an_impossible_ack_are_refused() {
    let mut script = Script::ready();
    script.inject("A 1+100 ack 2");
    script.expect("A 1 ack 1");
    script.run_for(100);
    script.inject("A 1+100 ack -65535");
    script.expect("A 1 ack 1");
    assert_eq!(script.recv(1000), Some(0));
    script.inject("A 1+100 ack -65534");
    script.expect("A 1 ack 101");
    assert_eq!(script.recv(1000), Some(100));
}

/// RFC 5961 section 7: challenges are limited, here to one in 50 ms.
#[test]
fn challenges_are_limited() {
    let mut script = Script::ready();
    for _ in 0..100 {
        script.inject("R 500");
        script.inject("S 500");
        script.inject("A 1 ack 77");
    }
    script.expect("A 1 ack 1");
    script.silent_until(149);
    script.run_until(150);
    script.inject("R 500");
    script.expect("A 1 ack 1");
}

/// RFC 9293 section 3.10.7.4, fifth step: without ACK a segment is dropped; data beyond the window are answered.
#[test]
fn what_makes_no_sense_is_dropped() {
    let mut script = Script::ready();
    script.inject("P 1+100");
    script.expect_nothing();
    script.inject("A 65536+100 ack 1");
    script.expect("A 1 ack 1");
    assert_eq!(script.recv(1000), Some(0));
}

/// RFC 9293 section 3.8.6: an old ACK does not change the window.
#[test]
fn an_old_ack_says_nothing_about_the_window() {
    let mut script = Script::ready();
    script.send(3000);
    script.drain();
    script.inject("A 1 ack 3001 win 2000");
    script.inject("A 1+10 ack 1001 win 60000");
    script.expect("A 3001 ack 11");
    script.send(5000);
    assert_eq!(script.drain(), ["A 3001+1000 ack 11", "A 4001+1000 ack 11"]);
}

/// SACK blocks of data never sent, backwards, or below the window do no harm (RFC 2018 section 4).
#[test]
fn lying_sacks_are_ignored() {
    let mut script = Script::ready();
    script.send(5000);
    script.drain();
    for lie in ["sack 4001-9001", "sack 3001-2001", "sack 1001-1001", "sack 1-4294960001"] {
        script.inject(&format!("A 1 ack 1 {lie}"));
    }
    script.expect_nothing();
    assert_eq!(script.stats().in_flight_bytes, 5000);
}
