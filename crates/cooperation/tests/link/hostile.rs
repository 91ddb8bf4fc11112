use cooperation::channel::Identity;
use cooperation::link::{Caller, Caught, DATAGRAM_BYTES_MAX, Heard};
use proptest::prelude::*;
use units::{Duration, Instant};

use super::{Pair, SINCE_1970, destination, new_relay, relay};

fn room() -> Vec<u8> {
    vec![0; DATAGRAM_BYTES_MAX]
}

#[test]
fn what_was_heard_and_is_played_again_changes_nothing() {
    let mut pair = Pair::new();
    pair.run_for_millis(3_000);
    let stranger = "203.0.113.66:1".parse().unwrap();
    for (position, datagram) in pair.passed.clone().into_iter().enumerate() {
        let expected = if position == 0 { Caught::Again } else { Caught::Nothing };
        assert_eq!(pair.answerer.handle_datagram(stranger, &datagram, &mut room(), pair.now), expected);
    }
    assert_eq!(pair.answerer.poll_transmit(), None, "not even an answer");
    assert_eq!(pair.answerer.place(3), Some(pair.place));
    assert!(pair.carries());
    // A relay that has lost its memory answers an old first message, but does not treat its sender as the destination.
    let mut anew = new_relay(9);
    for (position, datagram) in pair.passed.iter().enumerate() {
        let mut room = room();
        let caught = anew.handle_datagram(stranger, datagram, &mut room, pair.now);
        assert_eq!(caught == Caught::Call, position == 0, "{caught:?}");
        assert!(matches!(caught, Caught::Call | Caught::Nothing));
    }
    assert!(anew.poll_transmit().is_some() && !anew.is_up(3, pair.now) && anew.place(3).is_none());
    assert_eq!(anew.seal(3, &[0x45; 100], &mut room(), pair.now), None);
}

/// An attacker replays a long-past call right after each call of the destination. The relay, which has forgotten the
/// old call, keeps the session of the true one.
#[test]
fn an_old_call_played_again_at_a_renewal_stops_nothing() {
    let mut pair = Pair::new();
    pair.run_for_millis(119_000);
    let before = session(&mut pair);
    pair.played_again = (0..20).map(|seed| call(seed, pair.now)).collect();
    for step in 0..20 {
        pair.run_for_millis(100);
        assert!(pair.caller.is_up(pair.now) && pair.carries(), "step {step}");
    }
    assert_eq!(pair.played_again.len(), 19, "it called once");
    assert_ne!(session(&mut pair), before);
}

/// While the relay is off, an eavesdropper records calls that nobody answers. When it runs, one of them follows each true
/// call, before the destination's first word.
#[test]
fn calls_recorded_while_the_relay_was_off_delay_no_link() {
    let mut pair = Pair::new();
    pair.is_cut = true;
    pair.run_for_millis(400_000);
    pair.played_again = core::mem::take(&mut pair.passed);
    assert!(pair.played_again.len() >= 100);
    pair.is_cut = false;
    let due = pair.caller.poll_timeout();
    pair.run_until(due);
    assert!(pair.caller.is_up(pair.now) && pair.carries(), "up with the first call that arrives");
}

/// The same after the destination's clock was set back and it has started again: the recorded calls look newer than its
/// own, and all of them are answered.
#[test]
fn a_clock_that_was_set_back_delays_no_link() {
    let mut pair = Pair::new();
    pair.run_for_millis(5_000);
    pair.is_cut = true;
    pair.passed.clear();
    pair.run_for_millis(40_000);
    pair.played_again = pair.passed.iter().filter(|datagram| datagram[0] == 1).cloned().collect();
    assert!(pair.played_again.len() >= 10);
    pair.is_cut = false;
    pair.caller = Caller::new(destination(), relay().public(), [7; 32], Duration::from_secs(9), pair.now);
    pair.run_for_millis(1);
    assert!(pair.caller.is_up(pair.now) && pair.carries());
    let before = session(&mut pair);
    // From then on its new clock counts.
    pair.run_for_millis(130_000);
    assert!(pair.carries() && session(&mut pair) != before);
}

/// While a destination is heard, its older calls are refused, also by a relay that does not remember them.
#[test]
fn calls_older_than_the_session_are_refused() {
    let mut pair = Pair::new();
    let old = (0..=20).map(|seed| call(seed, pair.now)).collect::<Vec<_>>();
    pair.run_for_millis(60_000);
    for datagram in &old[..20] {
        assert_eq!(pair.answerer.handle_datagram(pair.place, datagram, &mut room(), pair.now), Caught::Nothing);
        assert_eq!(pair.answerer.poll_transmit(), None);
    }
    // A destination that is silent may have a new clock.
    pair.is_cut = true;
    pair.run_for_millis(10_000);
    assert_eq!(pair.answerer.handle_datagram(pair.place, &old[20], &mut room(), pair.now), Caught::Call);
    assert!(pair.answerer.poll_transmit().is_some());
}

/// Returns the session in which the destination seals.
fn session(pair: &mut Pair) -> Vec<u8> {
    let mut sealed = room();
    pair.caller.seal(&[0x45; 100], &mut sealed).unwrap();
    sealed[1..5].to_vec()
}

/// Returns a call of the destination.
fn call(seed: u8, now: Instant) -> Vec<u8> {
    let mut caller = Caller::new(destination(), relay().public(), [100 + seed; 32], SINCE_1970, now);
    caller.handle_timeout(now);
    caller.poll_transmit().unwrap()
}

#[test]
fn who_is_not_paired_gets_no_answer() {
    let now = Instant::from_secs(1);
    let stranger = Identity::from_secret([66; 32]);
    let mut answerer = new_relay(6);
    let mut caller = Caller::new(stranger.clone(), relay().public(), [5; 32], SINCE_1970, now);
    caller.handle_timeout(now);
    let first = caller.poll_transmit().unwrap();
    let place = "203.0.113.66:1".parse().unwrap();
    assert_eq!(answerer.handle_datagram(place, &first, &mut room(), now), Caught::Unknown);
    assert_eq!(answerer.poll_transmit(), None);
    // Nor does a caller that does not know the relay's key.
    let mut caller = Caller::new(stranger, destination().public(), [5; 32], SINCE_1970, now);
    caller.handle_timeout(now);
    let first = caller.poll_transmit().unwrap();
    assert_eq!(answerer.handle_datagram(place, &first, &mut room(), now), Caught::Unknown);
    assert_eq!(answerer.poll_transmit(), None);
}

#[test]
fn a_relay_that_answers_for_another_is_not_believed() {
    let mut pair = Pair::new();
    pair.caller.handle_timeout(pair.now);
    let first = pair.caller.poll_transmit().unwrap();
    let mut other = cooperation::link::Answerer::new(Identity::from_secret([66; 32]), [1; 32]);
    other.set_peers(&[(1, destination().public())]);
    other.handle_datagram(pair.place, &first, &mut room(), pair.now);
    assert_eq!(other.poll_transmit(), None, "the call proves nothing to it");
    // The true answer counts after any number of wrong ones.
    pair.answerer.handle_datagram(pair.place, &first, &mut room(), pair.now);
    let (_, second) = pair.answerer.poll_transmit().unwrap();
    for at in 0..second.len() {
        let mut wrong = second.clone();
        wrong[at] ^= 0x40;
        if !(6..10).contains(&at) {
            assert_eq!(pair.caller.handle_datagram(&wrong, &mut room(), pair.now), Heard::Nothing, "octet {at}");
        }
    }
    assert_eq!(pair.caller.handle_datagram(&second, &mut room(), pair.now), Heard::Word);
}

#[test]
fn a_destination_whose_key_was_removed_is_cut_off_at_once() {
    let mut pair = Pair::new();
    pair.run_for_millis(3_000);
    pair.answerer.set_peers(&[(4, Identity::from_secret([3; 32]).public())]);
    assert!(!pair.carries());
    pair.run_for_millis(20_000);
    assert!(!pair.caller.is_up(pair.now));
    assert_eq!(pair.answerer.seal(3, &[0x45; 100], &mut room(), pair.now), None);
}

#[test]
fn a_flood_of_calls_costs_few_handshakes() {
    let now = Instant::from_secs(100);
    let mut answerer = new_relay(6);
    let place = "203.0.113.66:1".parse().unwrap();
    let mut answers = |from: u64, to: u64| {
        (from..to)
            .filter(|number| {
                let mut seed = [0; 32];
                seed[..8].copy_from_slice(&number.to_be_bytes());
                let mut caller = Caller::new(destination(), relay().public(), seed, SINCE_1970, now);
                caller.handle_timeout(now);
                let first = caller.poll_transmit().unwrap();
                answerer.handle_datagram(place, &first, &mut room(), now + Duration::from_millis(*number));
                answerer.poll_transmit().is_some()
            })
            .count()
    };
    // A second of a thousand calls: the burst, and one every 50 ms.
    let answered = answers(0, 1000);
    assert!((50..=53).contains(&answered), "{answered}");
    assert_eq!(answers(9_000, 9_010), 10, "after a rest");
}

/// A device that was once paired still knows the relay's key. It calls a thousand times a second, also in the name of the
/// destination's address.
#[test]
fn a_flood_of_calls_keeps_no_destination_from_renewing_its_session() {
    for from in [None, Some("203.0.113.66:1")] {
        let mut pair = Pair::new();
        // Between two milliseconds, so the stranger comes first whenever a handshake is allowed.
        pair.run_until(pair.now + Duration::from_micros(119_500_500));
        let before = session(&mut pair);
        let from = from.map_or(pair.place, |from| from.parse().unwrap());
        for number in 0..2_000_u32 {
            let mut seed = [0; 32];
            seed[..4].copy_from_slice(&number.to_be_bytes());
            let stranger = Identity::from_secret([66; 32]);
            let mut caller = Caller::new(stranger, relay().public(), seed, SINCE_1970, pair.now);
            caller.handle_timeout(pair.now);
            let first = caller.poll_transmit().unwrap();
            assert_eq!(pair.answerer.handle_datagram(from, &first, &mut room(), pair.now), Caught::Unknown);
            pair.run_for_millis(1);
            if number == 1_000 {
                assert_ne!(session(&mut pair), before, "it was answered at its first call");
            }
        }
        assert!(pair.carries());
    }
}

/// An eavesdropper replays more recorded calls than the relay remembers, again and again, in the order that suits it
/// best. They use up nothing that the destination's own calls need, also if the relay has started anew.
#[test]
fn a_flood_of_recorded_calls_keeps_no_destination_out() {
    let mut pair = Pair::new();
    pair.is_cut = true;
    // Between two milliseconds, so a recorded call comes first whenever a handshake is allowed.
    pair.run_until(pair.now + Duration::from_micros(2_000_000_500));
    let recorded = core::mem::take(&mut pair.passed);
    assert!(recorded.len() > 400);
    pair.is_cut = false;
    let mut number = 0;
    let mut flood = |pair: &mut Pair, millis| {
        for _ in 0..millis {
            pair.answerer.handle_datagram(pair.place, &recorded[number % recorded.len()], &mut room(), pair.now);
            while pair.answerer.poll_transmit().is_some() {}
            number += 1;
            pair.run_for_millis(1);
        }
    };
    // It is heard with its second call at the latest.
    flood(&mut pair, 8_001);
    assert!(pair.caller.is_up(pair.now) && pair.carries());
    let before = session(&mut pair);
    pair.run_for_millis(110_000);
    flood(&mut pair, 12_000);
    assert!(pair.carries() && session(&mut pair) != before);
}

#[test]
fn each_datagram_counts_once_in_any_order() {
    let mut pair = Pair::new();
    pair.run_for_millis(1);
    let sealed: Vec<Vec<u8>> = (0..100)
        .map(|number| {
            let mut sealed = room();
            let len = pair.caller.seal(&[0x45, number], &mut sealed).unwrap();
            sealed[..len].to_vec()
        })
        .collect();
    for (number, datagram) in sealed.iter().enumerate().rev() {
        let mut content = room();
        let caught = pair.answerer.handle_datagram(pair.place, datagram, &mut content, pair.now);
        assert_eq!(caught, Caught::Packet(3, &[0x45, number as u8]));
        assert_eq!(pair.answerer.handle_datagram(pair.place, datagram, &mut room(), pair.now), Caught::Nothing);
    }
}

proptest! {
    #[test]
    fn arbitrary_octets_are_nothing(octets in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..5) {
        let mut pair = Pair::new();
        pair.run_for_millis(1);
        let octets = [&[kind], &octets[..]].concat();
        let mut content = room();
        let caught = pair.answerer.handle_datagram(pair.place, &octets, &mut content, pair.now);
        prop_assert!(matches!(caught, Caught::Nothing | Caught::Unknown));
        prop_assert_eq!(pair.caller.handle_datagram(&octets, &mut content, pair.now), Heard::Nothing);
        prop_assert!(pair.carries());
    }

    #[test]
    fn a_changed_datagram_is_nothing(at in 0_usize..300, bit in 0_u8..8) {
        let mut pair = Pair::new();
        pair.run_for_millis(1);
        let mut sealed = room();
        let len = pair.caller.seal(&[0x45; 300], &mut sealed).unwrap();
        sealed[at % len] ^= 1 << bit;
        let mut content = room();
        let caught = pair.answerer.handle_datagram(pair.place, &sealed[..len], &mut content, pair.now);
        prop_assert_eq!(caught, Caught::Nothing);
        prop_assert!(pair.carries());
    }
}
