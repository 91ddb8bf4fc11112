//! Octets that are not frames: each fault has its name and place, and nothing is kept or read after it.

use cooperation::forwarding::channel::to_destination::ToDestination;
use cooperation::forwarding::channel::to_relay::ToRelay;
use cooperation::forwarding::channel::{ChannelError, Decoder, Fault};
use proptest::prelude::*;
use wire::Payload;

use super::decoded;

fn fault_to_destination(octets: &[u8]) -> Fault {
    decoded::<ToDestination>(octets, &[1]).unwrap_err().fault
}

fn fault_to_relay(octets: &[u8]) -> Fault {
    decoded::<ToRelay>(octets, &[1000]).unwrap_err().fault
}

#[test]
fn heads() {
    assert_eq!(fault_to_destination(b"GET / HTTP/1.1"), Fault::Version { version: b'G' });
    assert_eq!(fault_to_destination(&[1, 0x3f, 0, 0]), Fault::UnknownKind { kind: 0x3f });
    assert_eq!(fault_to_relay(&[1, 0x7f, 0, 0]), Fault::UnknownKind { kind: 0x7f });
    assert_eq!(fault_to_destination(&[1, 0x50, 0, 9]), Fault::WrongWay { kind: 0x50 });
    assert_eq!(fault_to_relay(&[1, 0x10, 0, 9]), Fault::WrongWay { kind: 0x10 });
    assert_eq!(fault_to_relay(&[1, 0xc1, 0, 0]), Fault::UnknownKind { kind: 0xc1 });
}

#[test]
fn lengths() {
    // Known from the head alone: no body is waited for.
    let too_long = Fault::Length { kind: 0x01, len: 125, min: 0, max: 124 };
    assert_eq!(fault_to_destination(&[1, 0x01, 0, 125]), too_long);
    let no_data = Fault::Length { kind: 0x50, len: 8, min: 9, max: u16::MAX };
    assert_eq!(fault_to_relay(&[1, 0x50, 0, 8]), no_data);
    let short = Fault::Truncated { frame: "Hello", field: "nonce" };
    assert_eq!(fault_to_destination(&[1, 0x01, 0, 3, 0, 1, 9]), short);
    let long = Fault::Trailing { frame: "JoinDone", octets: 1 };
    assert_eq!(fault_to_destination(&[1, 0x05, 0, 3, 0, 1, 9]), long);
    let empty = Fault::Truncated { frame: "Reset", field: "body" };
    assert_eq!(fault_to_relay(&[1, 0x54, 0, 0]), empty);
}

#[test]
fn values() {
    let flag = Fault::Value { frame: "Leave", field: "flush", value: 2 };
    assert_eq!(fault_to_destination(&[1, 0x13, 0, 1, 2]), flag);
    let reason = Fault::Value { frame: "JoinFailed", field: "reason", value: 0 };
    assert_eq!(fault_to_destination(&[1, 0x06, 0, 3, 0, 1, 0]), reason);
    let mut handle = vec![1, 0x41, 0, 25];
    handle.extend([0; 24]);
    handle.push(5);
    assert_eq!(fault_to_relay(&handle), Fault::Value { frame: "Handle", field: "source", value: 5 });
}

#[test]
fn ranges_without_octets_and_windows_beyond_sense() {
    let frame = |kind: u8, numbers: &[u64]| {
        let mut octets = vec![1, kind, 0, numbers.len() as u8 * 8];
        numbers.iter().for_each(|number| octets.extend(number.to_be_bytes()));
        octets
    };
    let empty = frame(0x47, &[1, 1000, 999, 0, 0, 0]);
    assert_eq!(fault_to_relay(&empty), Fault::Value { frame: "Range", field: "max", value: 999 });
    let wide = frame(0x48, &[0, 1 << 63, 0]);
    assert_eq!(fault_to_relay(&wide), Fault::Value { frame: "CumAck", field: "window_bytes", value: 1 << 63 });
    let widened = frame(0x48, &[0, 100, 101]);
    assert_eq!(fault_to_relay(&widened), Fault::Value { frame: "CumAck", field: "widened_bytes", value: 101 });
}

#[test]
fn numbers_that_are_none() {
    for rho in [f64::NAN, f64::INFINITY, -1.0] {
        let mut advert = vec![1, 0x02, 0, 69, 0, 1, 4, 10, 0, 0, 1, 0, 80];
        advert.extend([0; 20]);
        advert.extend(rho.to_be_bytes());
        advert.extend([0; 32]);
        let value = rho.to_bits();
        assert_eq!(fault_to_destination(&advert), Fault::Value { frame: "Advert", field: "rho", value });
    }
}

#[test]
fn a_fault_says_where_and_stays() {
    let mut decoder = Decoder::<ToRelay>::default();
    // Reset(1), data of 100 octets, then nonsense.
    let mut octets = vec![1, 0x54, 0, 2, 0, 1, 1, 0x50, 0, 108];
    octets.extend([0; 108]);
    octets.extend([2, 0, 0, 0]);
    let mut input = Payload::from(octets);
    assert!(matches!(decoder.decode(&mut input), Ok(Some(ToRelay::Reset(_)))));
    assert!(matches!(decoder.decode(&mut input), Ok(Some(ToRelay::Data { .. }))));
    let error = ChannelError { frame_start: 6 + 112, fault: Fault::Version { version: 2 } };
    assert_eq!(decoder.decode(&mut input), Err(error));
    let mut good = Payload::from(vec![1, 0x54, 0, 2, 0, 1]);
    assert_eq!((decoder.decode(&mut good), good.len()), (Err(error), 6));
    assert_eq!(
        error.to_string(),
        "in the frame at octet 118 of the channel: version 2 instead of 1: run the same release at both ends"
    );
}

proptest! {
    #[test]
    fn any_octets_read_the_same_however_they_are_cut(
        octets in prop::collection::vec(prop_oneof![0..4_u8, Just(0x10), Just(0x50), any::<u8>()], 0..300),
        cuts in prop::collection::vec(1..40_usize, 1..6),
    ) {
        let whole = decoded::<ToDestination>(&octets, &[1000]).map_err(|error| error.to_string());
        let cut = decoded::<ToDestination>(&octets, &cuts).map_err(|error| error.to_string());
        prop_assert_eq!(whole.is_ok(), cut.is_ok());
        prop_assert_eq!(whole.err(), cut.err());
        let _ = decoded::<ToRelay>(&octets, &cuts);
    }

    #[test]
    fn a_damaged_head_never_panics(kind: u8, body in prop::collection::vec(any::<u8>(), 0..140)) {
        let [high, low] = (body.len() as u16).to_be_bytes();
        let octets = [&[1, kind, high, low], body.as_slice()].concat();
        let _ = decoded::<ToDestination>(&octets, &[7]);
        let _ = decoded::<ToRelay>(&octets, &[7]);
    }
}
