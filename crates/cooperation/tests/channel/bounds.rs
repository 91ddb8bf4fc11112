//! A peer can make an end keep only a bounded amount, whatever it sends and at any stage of the handshake.

use bytes::Bytes;
use cooperation::channel::codec::Frame;
use cooperation::channel::secure::KEPT_BYTES_MAX;
use cooperation::channel::{ChannelEnd, DestinationEnd, RelayEnd};
use proptest::prelude::*;

use super::support::{closed_ends, ends};

/// The stage of the handshake at which the hostile octets arrive.
#[derive(Clone, Copy, Debug)]
enum Before {
    Prefix,
    Message,
    Confirmation,
    Records,
}

/// Returns ends whose peers have sent as much as `before` allows.
fn ends_before(before: Before) -> (DestinationEnd, RelayEnd) {
    let (mut destination, mut relay) = closed_ends(1);
    match before {
        Before::Prefix => {}
        Before::Message => {
            let (mut to_relay, mut to_destination) = (destination.take_octets(), relay.take_octets());
            relay.receive(&mut to_relay.split_to(6)).unwrap();
            destination.receive(&mut to_destination.split_to(6)).unwrap();
        }
        Before::Confirmation => {
            relay.receive(&mut destination.take_octets()).unwrap();
        }
        Before::Records => return ends(1),
    }
    (destination, relay)
}

/// Asserts limits on what is kept, and on what is answered, while `octets` arrive in pieces.
fn assert_bounded<A: Frame, B: Frame>(end: &mut ChannelEnd<A, B>, octets: &[u8], piece: usize) {
    let mut answered = 0;
    for piece in octets.chunks(piece) {
        let mut input = Bytes::copy_from_slice(piece);
        while let Ok(Some(_)) = end.receive(&mut input) {}
        assert!(end.kept_bytes() <= KEPT_BYTES_MAX, "{} octets kept", end.kept_bytes());
        answered += end.take_octets().len();
    }
    // Prefix, longest message of the handshake, confirmation.
    assert!(answered <= 6 + 96 + 18, "{answered} octets answered");
}

proptest! {
    #[test]
    fn a_peer_is_remembered_up_to_a_record(
        before in prop::sample::select(vec![Before::Prefix, Before::Message, Before::Confirmation, Before::Records]),
        looks_right: bool,
        octets in prop::collection::vec(any::<u8>(), 0..2000),
        piece in 1..400_usize,
    ) {
        let (mut destination, mut relay) = ends_before(before);
        // A valid length, without a valid record after it.
        let head: &[u8] = if looks_right { &[1, 0] } else { &[] };
        let octets = [head, &octets].concat();
        assert_bounded(&mut destination, &octets, piece);
        assert_bounded(&mut relay, &octets, piece);
    }
}

#[test]
fn an_end_has_room_for_what_it_keeps_and_no_more() {
    // Nothing on the heap grows with the input: the start of a record is part of the end itself.
    assert!(size_of::<DestinationEnd>() <= KEPT_BYTES_MAX + 300, "{}", size_of::<DestinationEnd>());
}
