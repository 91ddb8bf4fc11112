//! Opening a connection, against a hand-played peer.

use transport::error::CloseReason;
use transport::{ConnectionConfig, Endpoint, EndpointConfig, Event};
use units::{Instant, SeqNr};

use crate::script::{Script, config, ms};

fn close_reason(script: &Script) -> Option<CloseReason> {
    script.events.iter().find_map(|event| match event {
        Event::Closed { reason, .. } => Some(*reason),
        _ => None,
    })
}

/// RFC 9293 section 3.5, figure 6, and the MSS option of section 3.7.1: the MTU of 1040 less 40 octets of headers.
#[test]
fn three_segments_open_a_connection() {
    let mut script = Script::connect(config());
    let syn = script.expect("S 0");
    assert_eq!((syn.options.mss, syn.options.window_scale, syn.window), (Some(1000), Some(7), 65535));
    assert!(syn.options.sack_permitted);
    script.run_until(100);
    script.inject("SA 0 ack 1 mss 1000 sackok");
    script.expect("A 1 ack 1");
    assert_eq!(script.state(), "ESTABLISHED");

    let mut server = Script::listen(config());
    server.inject("S 0 mss 1000");
    let answer = server.expect("SA 0 ack 1");
    assert!(!answer.options.sack_permitted && answer.options.window_scale.is_none(), "only what was offered");
    server.inject("A 1 ack 1");
    assert_eq!(server.state(), "ESTABLISHED");
}

/// RFC 6298 section 2.1 (initially 1 s) and 5.5 (doubled, up to 60 s); RFC 9293 MUST-23: at least three minutes.
#[test]
fn a_syn_is_repeated_for_three_minutes() {
    let mut script = Script::connect(config());
    script.expect("S 0");
    for second in [1, 3, 7, 15, 31, 63, 123] {
        script.expect_at(second * 1000, "S 0");
    }
    script.silent_until(182_999);
    assert_eq!(close_reason(&script), None);
    script.silent_until(183_000);
    assert_eq!(close_reason(&script), Some(CloseReason::TimedOut));
}

/// RFC 5681 section 3.1: after a lost SYN the initial window is one segment. RFC 6298 section 5.7: the first time-out
/// is 3 s, because Karn's algorithm leaves no sample.
#[test]
fn a_lost_syn_makes_for_a_careful_start() {
    let mut script = Script::connect(config());
    script.expect("S 0");
    script.expect_at(1000, "S 0");
    script.run_until(1100);
    script.inject("SA 0 ack 1 mss 1000 sackok");
    script.expect("A 1 ack 1");
    script.send(3000);
    script.expect("A 1+1000 ack 1");
    script.expect_at(4100, "A 1+1000 ack 1");
}

/// RFC 9293 section 3.10.7.3: an ACK of data never sent is answered with a RST, and the SYN stands.
#[test]
fn syn_sent_believes_no_foreign_ack() {
    let mut script = Script::connect(config());
    script.expect("S 0");
    script.inject("SA 0 ack 5 mss 1000");
    script.expect("R 5");
    script.expect("S 0");
    script.inject("A 0 ack 0");
    script.expect("R 0");
    script.inject("RA 0 ack 5");
    script.inject("R 0");
    script.silent_until(900);
    assert_eq!(script.state(), "SYN-SENT");
    script.inject("RA 0 ack 1");
    assert_eq!(close_reason(&script), Some(CloseReason::Refused));
}

/// The peer remembers a former connection from our port (TIME-WAIT) and challenges the SYN (RFC 5961 section 4). Our
/// RST ends that connection, and the SYN is repeated at once. The repeated SYN has its own answer, so the round-trip
/// time is known: 100 ms, with a time-out of 300 ms.
#[test]
fn a_syn_that_met_an_old_connection_is_repeated_at_once() {
    let mut script = Script::connect(config());
    script.expect("S 0");
    script.run_until(600);
    script.inject("A 7000 ack 9000");
    script.expect("R 9000");
    script.expect("S 0");
    script.silent_until(700);
    script.inject("SA 0 ack 1 mss 1000 sackok");
    script.expect("A 1 ack 1");
    script.send(3000);
    assert_eq!(script.drain(), ["A 1+1000 ack 1", "A 1001+1000 ack 1", "A 2001+1000 ack 1"], "no SYN was lost");
    assert_eq!(script.stats().srtt, Some(ms(100)));
}

/// The SYN's timer restarts with the repetition.
#[test]
fn a_syn_repeated_at_once_has_its_whole_time() {
    let mut script = Script::connect(config());
    script.expect("S 0");
    script.run_until(600);
    script.inject("A 7000 ack 9000");
    script.expect("R 9000");
    script.expect("S 0");
    script.expect_at(1600, "S 0");
    script.expect_at(3600, "S 0");
}

/// A peer challenges every SYN, and our RSTs are lost: the peer gets one more SYN per time-out, and no faster.
#[test]
fn a_peer_that_challenges_every_syn_makes_no_loop() {
    let mut script = Script::connect(config());
    let mut syns = 0;
    for _ in 0..1800 {
        for sent in script.drain() {
            if sent == "S 0" {
                syns += 1;
            }
        }
        script.run_for(100);
        script.inject("A 7000 ack 9000");
    }
    assert!((8..=16).contains(&syns), "{syns} SYNs in three minutes");
    script.run_for(60_000);
    assert_eq!(close_reason(&script), Some(CloseReason::TimedOut));
}

/// RFC 9293 section 3.5, figure 8. The window of the SYN/ACK is not scaled (RFC 7323 section 2.2): 3000 octets.
#[test]
fn both_sides_may_open_at_once() {
    let mut script = Script::connect(config());
    script.expect("S 0");
    script.run_until(10);
    script.inject("S 0 mss 1000 sackok wscale 7");
    script.expect("SA 0 ack 1");
    assert_eq!(script.state(), "SYN-RECEIVED");
    script.inject("SA 0 ack 1 mss 1000 sackok wscale 7 win 3000");
    script.expect("A 1 ack 1");
    assert_eq!(script.state(), "ESTABLISHED");
    script.send(5000);
    assert_eq!(script.drain(), ["A 1+1000 ack 1", "A 1001+1000 ack 1", "A 2001+1000 ack 1"]);
}

/// The same, if an ACK instead of the SYN/ACK comes first.
#[test]
fn an_ack_completes_a_simultaneous_open_too() {
    let mut script = Script::connect(config());
    script.expect("S 0");
    script.inject("S 0 mss 1000 sackok");
    script.expect("SA 0 ack 1");
    script.expect_at(1000, "SA 0 ack 1");
    script.inject("A 1 ack 1");
    assert_eq!(script.state(), "ESTABLISHED");
    script.run_until(1200);
    script.inject("SA 0 ack 1 mss 1000 sackok");
    script.expect("A 1 ack 1");
}

/// RFC 9293 section 3.10.7.4 in SYN-RECEIVED: a repeated SYN, an impossible ACK, a guessed RST (RFC 5961 section 3),
/// another SYN, and the RST of the peer.
#[test]
fn syn_received_stands_its_ground() {
    let mut script = Script::listen(config());
    script.inject("S 0 mss 1000 sackok");
    script.expect("SA 0 ack 1");
    script.inject("S 0 mss 1000 sackok");
    script.expect("SA 0 ack 1");
    script.inject("A 1 ack 9");
    script.expect("R 9");
    script.inject("R 400");
    script.expect("A 1 ack 1");
    script.run_until(100);
    script.inject("S 7000 mss 1000");
    script.expect("A 1 ack 1");
    script.inject("R 1");
    script.silent_until(5000);
    script.inject("S 0 mss 1000");
    script.expect("SA 0 ack 1");
}

/// RFC 9293 section 3.5: the third segment may carry data, and a FIN.
#[test]
fn the_third_segment_may_say_everything() {
    let mut script = Script::listen(config());
    script.inject("S 0 mss 1000 sackok");
    script.expect("SA 0 ack 1");
    script.inject("FA 1+700 ack 1");
    script.expect("A 1 ack 702");
    assert_eq!(script.state(), "CLOSE-WAIT");
    assert_eq!(script.recv(10_000), Some(700));
    assert_eq!(script.recv(10_000), None);
}

/// RFC 9293 section 3.10.7.2: a SYN with data counts as a SYN. Its data are not taken and come again.
#[test]
fn data_on_a_syn_wait() {
    let mut script = Script::listen(config());
    script.inject("S 0+300 mss 1000");
    script.expect("SA 0 ack 1");
    script.inject("A 1+300 ack 1");
    script.expect("A 1 ack 301");
}

/// RFC 7323 section 2.2: the window of a SYN/ACK counts octets, later ones units of 2^7.
#[test]
fn windows_are_scaled_after_the_handshake_only() {
    let mut script = Script::established(config(), "mss 1000 wscale 7 win 2000");
    script.send(6000);
    assert_eq!(script.drain(), ["A 1+1000 ack 1", "A 1001+1000 ack 1"]);
    script.inject("A 1 ack 2001 win 16");
    assert_eq!(script.drain(), ["A 2001+1000 ack 1", "A 3001+1000 ack 1"], "16 * 128 octets");

    let mut script = Script::established(config(), "mss 1000 win 2000");
    script.send(6000);
    script.drain();
    script.inject("A 1 ack 2001 win 1000");
    assert_eq!(script.drain(), ["A 2001+1000 ack 1"], "no option, no scale");
    script.inject("A 1+10 ack 2001 win 1000");
    assert_eq!(script.expect("A 3001 ack 11").window, 65535);
}

/// RFC 9293 section 3.7.1: 536 octets without the option, and never more than our own path carries.
#[test]
fn the_smaller_mss_counts() {
    let mut script = Script::established(config(), "win 65535");
    script.send(1000);
    script.expect("A 1+536 ack 1");
    let mut script = Script::established(config(), "mss 1460");
    script.send(1500);
    script.expect("A 1+1000 ack 1");
}

/// RFC 6528 section 3: a keyed function of the addresses plus a clock with a tick of 4 microseconds.
#[test]
fn initial_sequence_numbers_move_with_the_clock() {
    let iss = |seed, port: u16, ms| -> SeqNr {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), seed);
        let (local, remote) = (([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 80).into());
        let now = Instant::from_millis(ms);
        endpoint.connect(local, remote, ConnectionConfig { mptcp: false, ..config() }, now).unwrap();
        endpoint.poll_transmit(now).unwrap().seq
    };
    assert_eq!(iss(1, 4000, 8).since(iss(1, 4000, 4)), 1000);
    assert_ne!(iss(1, 4001, 4).since(iss(1, 4000, 4)), 0);
    assert_ne!(iss(2, 4000, 4), iss(1, 4000, 4));
}
