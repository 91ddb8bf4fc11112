use cooperation::channel::Identity;
use cooperation::link::pairing::{Borrower, Code, Destination, Lender, Pairing, PairingError, Relay};
use proptest::prelude::*;

use super::{destination, relay};

fn code(text: &str) -> Code {
    text.parse().unwrap()
}

fn lender() -> Lender {
    Lender { name: "annas-phone".parse().unwrap() }
}

fn ends(shown: &str, typed: &str) -> (Pairing<Lender>, Pairing<Borrower>) {
    let relay = Pairing::relay(relay(), lender(), code(shown), [1; 32]);
    (relay, Pairing::destination(destination(), "laptop".parse().unwrap(), code(typed), [2; 32]))
}

/// The way of octets between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToRelay,
    ToDestination,
}

type Ends = (Result<Option<Destination>, PairingError>, Result<Option<Relay>, PairingError>);

/// Exchanges octets in pieces of this size; returns the result at each end.
fn exchange(relay: &mut Pairing<Lender>, borrower: &mut Pairing<Borrower>, piece: usize) -> Ends {
    exchange_past(relay, borrower, piece, |_, octets| octets)
}

/// The same with somebody in between, who gets all that is under way one way and returns what arrives.
fn exchange_past(
    relay: &mut Pairing<Lender>,
    borrower: &mut Pairing<Borrower>,
    piece: usize,
    mut between: impl FnMut(Way, Vec<u8>) -> Vec<u8>,
) -> Ends {
    let (mut at_relay, mut at_destination) = (Ok(None), Ok(None));
    loop {
        let to_relay = between(Way::ToRelay, borrower.take_octets().to_vec());
        let to_destination = between(Way::ToDestination, relay.take_octets().to_vec());
        if to_relay.is_empty() && to_destination.is_empty() {
            return (at_relay, at_destination);
        }
        for octets in to_relay.chunks(piece) {
            match at_relay {
                Ok(None) => at_relay = relay.handle_octets(octets),
                _ => break,
            }
        }
        if matches!(at_relay, Ok(Some(_))) {
            relay.confirm(3);
        }
        for octets in to_destination.chunks(piece) {
            match at_destination {
                Ok(None) => at_destination = borrower.handle_octets(octets),
                _ => break,
            }
        }
    }
}

#[test]
fn both_learn_each_others_keys_and_names() {
    for piece in [1, 7, 1000] {
        let (mut lends, mut borrows) = ends("042 117", "042117");
        let (at_relay, at_destination) = exchange(&mut lends, &mut borrows, piece);
        let known = Destination { key: destination().public(), name: "laptop".parse().unwrap() };
        assert_eq!(at_relay, Ok(Some(known)));
        let known = Relay { key: relay().public(), name: lender().name, slot: 3 };
        assert_eq!(at_destination, Ok(Some(known)));
    }
}

#[test]
fn a_wrong_code_is_one_try_and_shows_nothing() {
    let (mut lends, mut borrows) = ends("042 117", "042 118");
    let (at_relay, at_destination) = exchange(&mut lends, &mut borrows, 1000);
    assert_eq!(at_relay, Err(PairingError::WrongCode));
    assert_eq!(at_destination, Err(PairingError::WrongCode));
    // This pairing is over.
    assert!(lends.handle_octets(&[0, 1, 1]).is_err());
}

#[test]
fn nobody_is_paired_with_itself() {
    let (mut lends, _) = ends("042 117", "042 117");
    let mut borrows = Pairing::destination(relay(), "laptop".parse().unwrap(), code("042 117"), [2; 32]);
    let (at_relay, at_destination) = exchange(&mut lends, &mut borrows, 1000);
    assert_eq!((at_relay, at_destination), (Ok(None), Err(PairingError::Itself)), "the code is still good");
}

#[test]
fn who_only_listens_cannot_try_codes_afterwards() {
    // The octets of two runs with the same code have only their heads in common.
    let octets = |seed: u8| Pairing::relay(relay(), lender(), code("042 117"), [seed; 32]).take_octets();
    let (one, other) = (octets(1), octets(2));
    assert_eq!(one[..7], other[..7]);
    let same = one[8..].iter().zip(&other[8..]).filter(|(a, b)| a == b).count();
    assert!(same < 8, "{same} octets");
}

#[test]
fn a_destination_stays_unpaired_until_the_relay_has_written_it_down() {
    let (mut lends, mut borrows) = ends("1 2 3 4 5 6", "123-456");
    lends.handle_octets(&borrows.take_octets()).unwrap();
    borrows.handle_octets(&lends.take_octets()).unwrap();
    lends.handle_octets(&borrows.take_octets()).unwrap();
    assert_eq!(borrows.handle_octets(&lends.take_octets()), Ok(None));
    assert!(lends.handle_octets(&borrows.take_octets()).unwrap().is_some());
    assert!(lends.take_octets().is_empty());
    lends.confirm(3);
    assert!(borrows.handle_octets(&lends.take_octets()).unwrap().is_some());
}

/// The octets that pass one way if nobody touches them, and how many of them are the last message.
fn untouched(way: Way) -> (usize, usize) {
    let (mut lends, mut borrows) = ends("042 117", "042 117");
    let mut parts = Vec::new();
    let done = exchange_past(&mut lends, &mut borrows, 1000, |this, octets| {
        if this == way && !octets.is_empty() {
            parts.push(octets.len());
        }
        octets
    });
    assert!(matches!(done, (Ok(Some(_)), Ok(Some(_)))), "{done:?}");
    (parts.iter().sum(), *parts.last().unwrap())
}

/// No end is paired if an octet is changed before it has finished. The only one that can have finished is the relay,
/// when its last message, the confirmation, is changed: it has saved the destination by then.
#[test]
fn somebody_in_between_breaks_it() {
    for way in [Way::ToRelay, Way::ToDestination] {
        let (count, last) = untouched(way);
        assert!(count > 100 && last > 2, "{way:?}: {count} octets, the last message {last}");
        for (at, change) in (0..count).flat_map(|at| [(at, 1), (at, 0x80)]) {
            let (mut lends, mut borrows) = ends("042 117", "042 117");
            let mut passed = 0;
            let (at_relay, at_destination) = exchange_past(&mut lends, &mut borrows, 1000, |this, mut octets| {
                if this == way {
                    if let Some(octet) = at.checked_sub(passed).and_then(|index| octets.get_mut(index)) {
                        *octet ^= change;
                    }
                    passed += octets.len();
                }
                octets
            });
            let case = format!("{way:?}, octet {at} of {count}, {change:#x}: {at_relay:?}, {at_destination:?}");
            assert!(passed > at, "{case}: the octet was sent");
            assert!(!matches!(at_destination, Ok(Some(_))), "{case}");
            let is_confirmation = way == Way::ToDestination && at >= count - last;
            assert_eq!(matches!(at_relay, Ok(Some(_))), is_confirmation, "{case}");
        }
    }
}

#[test]
fn other_services_and_other_releases_are_named() {
    let error = |octets: &[u8]| ends("042 117", "042 117").1.handle_octets(octets).unwrap_err();
    assert_eq!(error(b"SSH-2.0-OpenSSH_9.2\r\n"), PairingError::OtherService);
    assert_eq!(error(b"\0\x05hello"), PairingError::OtherService);
    assert_eq!(error(b"\0\x05ABPR\x01"), PairingError::Version(1));
    assert_eq!(error(b"\0\x08ABPR\x02123"), PairingError::Broken);
    assert_eq!(error(&[0; 2]), PairingError::WrongCode);
}

#[test]
fn codes_are_read_as_people_type_them() {
    assert_eq!(code("042 117").to_string(), "042 117");
    assert_eq!(code(" 04-21-17").to_string(), "042 117");
    for text in ["", "12345", "1234567", "12a456", "12345٣"] {
        assert!(text.parse::<Code>().is_err(), "{text}");
    }
    let drawn: std::collections::BTreeSet<String> = (0..50).map(|seed| Code::draw([seed; 32]).to_string()).collect();
    assert_eq!(drawn.len(), 50);
    assert!(!format!("{:?}", code("042 117")).contains("42"));
}

proptest! {
    #[test]
    fn arbitrary_octets_pair_nobody(octets in prop::collection::vec(any::<u8>(), 0..400), piece in 1_usize..50) {
        let (mut lends, mut borrows) = ends("042 117", "042 117");
        for octets in octets.chunks(piece) {
            prop_assert!(!matches!(lends.handle_octets(octets), Ok(Some(_))));
            prop_assert!(!matches!(borrows.handle_octets(octets), Ok(Some(_))));
        }
    }

    #[test]
    fn two_strangers_with_the_same_code_have_other_keys(secret in any::<[u8; 32]>()) {
        let stranger = Identity::from_secret(secret);
        let mut lends = Pairing::relay(stranger.clone(), lender(), code("000 000"), [1; 32]);
        let mut borrows = Pairing::destination(destination(), "laptop".parse().unwrap(), code("000 000"), [2; 32]);
        let (_, at_destination) = exchange(&mut lends, &mut borrows, 1000);
        prop_assert_eq!(at_destination.unwrap().unwrap().key, stranger.public());
    }
}
