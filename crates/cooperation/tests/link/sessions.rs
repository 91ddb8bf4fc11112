use cooperation::link::{Caught, DATAGRAM_BYTES_MAX, HEARTBEAT, Heard, INNER_MTU, Lends, Renewal, SILENCE_MAX, Terms};
use units::{Duration, Instant};

use super::{Pair, TERMS, new_relay};

#[test]
fn a_link_comes_up_at_once_and_tells_terms() {
    let mut pair = Pair::new();
    assert!(!pair.caller.is_up(pair.now) && !pair.carries());
    pair.run_for_millis(1);
    assert!(pair.caller.is_up(pair.now) && pair.answerer.is_up(3, pair.now));
    assert_eq!(pair.caller.terms(), Some(Terms { echo: Instant::from_secs(1), ..TERMS }));
    assert_eq!(pair.caller.round_trip(), Some(Duration::ZERO));
    assert_eq!(pair.answerer.place(3), Some(pair.place));
    assert!(pair.carries());
}

/// A destination calls every address at which the relay may be, and both addresses of one network may be the relay's.
#[test]
fn a_call_that_arrives_twice_is_no_strangers() {
    let mut pair = Pair::new();
    let mut room = [0; DATAGRAM_BYTES_MAX];
    pair.caller.handle_timeout(pair.now);
    let call = pair.caller.poll_transmit().unwrap();
    for expected in [Caught::Call, Caught::Again] {
        assert_eq!(pair.answerer.handle_datagram(pair.place, &call, &mut room, pair.now), expected);
    }
    let answer = pair.answerer.poll_transmit().unwrap().1;
    assert!(pair.answerer.poll_transmit().is_none());
    assert_eq!(pair.caller.handle_datagram(&answer, &mut room, pair.now), Heard::Word);
    pair.run_for_millis(1);
    assert!(pair.carries());
}

#[test]
fn the_largest_packet_fits_and_a_larger_one_does_not() {
    let mut pair = Pair::new();
    pair.run_for_millis(1);
    let mut room = [0; DATAGRAM_BYTES_MAX];
    let packet = [0x60; INNER_MTU as usize + 1];
    assert_eq!(pair.caller.seal(&packet[1..], &mut room), Some(DATAGRAM_BYTES_MAX));
    assert_eq!(pair.caller.seal(&packet, &mut room), None);
    // With the outer headers of IPv6 and UDP.
    const { assert!(DATAGRAM_BYTES_MAX + 48 <= 1500) };
}

#[test]
fn new_terms_are_told_at_once_or_with_the_next_word() {
    let mut pair = Pair::new();
    pair.run_for_millis(1);
    pair.answerer.set_terms(3, Terms { lends: Lends::NoVolume, ..TERMS });
    pair.answerer.say_terms(3);
    pair.run_for_millis(1);
    assert_eq!((pair.caller.terms().unwrap().lends, pair.caller.renewal()), (Lends::NoVolume, None));
    pair.answerer.set_renewal(3, Some(Renewal { day: 20_788 }));
    pair.run_for_millis(HEARTBEAT.as_millis());
    assert_eq!(pair.caller.renewal(), Some(Renewal { day: 20_788 }));
    pair.answerer.set_terms(3, TERMS);
    pair.run_for_millis(HEARTBEAT.as_millis());
    assert_eq!(pair.caller.terms().unwrap().lends, Lends::Fully);
}

#[test]
fn terms_that_answer_nothing_show_no_round_trip() {
    let mut pair = Pair::new();
    pair.run_for_millis(1);
    let (said, mut room) = (said(&mut pair, Lends::NoVolume), [0; DATAGRAM_BYTES_MAX]);
    pair.run_for_millis(700);
    pair.caller.handle_datagram(&said, &mut room, pair.now);
    assert_eq!(pair.caller.terms().unwrap().lends, Lends::NoVolume);
    assert_eq!(pair.caller.round_trip(), Some(Duration::ZERO), "the relay has said that unasked");
}

/// Datagrams overtake each other, and an attacker on the path may hold one back.
#[test]
fn older_words_do_not_count() {
    let mut pair = Pair::new();
    pair.run_for_millis(1);
    let [early, late] = [Lends::Fully, Lends::NoVolume].map(|lends| said(&mut pair, lends));
    let mut room = [0; DATAGRAM_BYTES_MAX];
    for datagram in [late, early] {
        assert_eq!(pair.caller.handle_datagram(&datagram, &mut room, pair.now), Heard::Word);
        assert_eq!(pair.caller.terms().unwrap().lends, Lends::NoVolume);
    }
    // Words of an older session do not count either, but those of a new one do.
    let held_back = said(&mut pair, Lends::AsBackup);
    pair.answerer.set_terms(3, TERMS);
    pair.run_for_millis(121_000);
    assert_eq!(pair.caller.terms().unwrap().lends, Lends::Fully);
    pair.caller.handle_datagram(&held_back, &mut room, pair.now);
    assert_eq!(pair.caller.terms().unwrap().lends, Lends::Fully);
}

/// Returns the relay's current terms, in a datagram that the destination has not received.
fn said(pair: &mut Pair, lends: Lends) -> Vec<u8> {
    pair.answerer.set_terms(3, Terms { lends, ..TERMS });
    pair.answerer.say_terms(3);
    pair.answerer.poll_transmit().unwrap().1
}

#[test]
fn silence_is_noticed_and_the_link_comes_back_by_itself() {
    let mut pair = Pair::new();
    pair.run_for_millis(10_000);
    pair.is_cut = true;
    let up_until = pair.caller.up_until().unwrap();
    pair.run_until(up_until - Duration::from_nanos(1));
    assert!(pair.caller.is_up(pair.now));
    pair.run_until(up_until);
    assert!(!pair.caller.is_up(pair.now) && up_until <= Instant::from_secs(11) + SILENCE_MAX + HEARTBEAT);
    pair.run_for_millis(100_000);
    assert!(!pair.answerer.is_up(3, pair.now) && !pair.caller.is_up(pair.now));
    pair.is_cut = false;
    // The destination calls every four seconds.
    pair.run_for_millis(4_001);
    assert!(pair.caller.is_up(pair.now) && pair.carries());
}

#[test]
fn a_relay_that_starts_anew_is_called_anew() {
    let mut pair = Pair::new();
    pair.run_for_millis(5_000);
    pair.answerer = new_relay(7);
    assert!(!pair.carries());
    pair.run_for_millis(4_000);
    assert!(pair.caller.is_up(pair.now) && pair.carries());
}

#[test]
fn the_destination_may_move() {
    let mut pair = Pair::new();
    pair.run_for_millis(5_000);
    pair.place = "198.51.100.9:5".parse().unwrap();
    assert!(pair.carries(), "its own packet shows where it is");
}

#[test]
fn keys_are_renewed_and_nothing_is_lost_meanwhile() {
    let mut pair = Pair::new();
    pair.run_for_millis(5_000);
    let (packet, mut early, mut late, mut room) =
        ([0x45; 100], [0; DATAGRAM_BYTES_MAX], [0; DATAGRAM_BYTES_MAX], [0; DATAGRAM_BYTES_MAX]);
    let from_relay = pair.answerer.seal(3, &packet, &mut early, pair.now).unwrap().1;
    let to_relay = pair.caller.seal(&packet, &mut late).unwrap();
    let before = session_of(&late);
    pair.run_for_millis(121_000);
    assert!(pair.carries());
    let mut now = [0; DATAGRAM_BYTES_MAX];
    pair.caller.seal(&packet, &mut now).unwrap();
    assert_ne!(before, session_of(&now), "another session");
    // Datagrams in flight with the old keys arrive.
    assert_eq!(pair.caller.handle_datagram(&early[..from_relay], &mut room, pair.now), Heard::Packet(&packet));
    let (place, now) = (pair.place, pair.now);
    let caught = pair.answerer.handle_datagram(place, &late[..to_relay], &mut room, now);
    assert_eq!(caught, cooperation::link::Caught::Packet(3, &packet));
    // Hours later, it still works.
    pair.run_for_millis(3_600_000);
    assert!(pair.carries());
}

fn session_of(datagram: &[u8]) -> [u8; 4] {
    datagram[1..5].try_into().unwrap()
}
