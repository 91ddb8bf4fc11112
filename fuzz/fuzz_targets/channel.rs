//! Arbitrary octets through the channel between relay and destination: nothing panics, what was read writes the same
//! octets again, and no record passes that nobody sealed.
//!
//! Input: the length of the cuts, then the octets.

#![no_main]

use bytes::{Bytes, BytesMut};
use cooperation::channel::codec::{Frame, decode, encode};
use cooperation::channel::to_destination::ToDestination;
use cooperation::channel::to_relay::ToRelay;
use cooperation::channel::{DestinationEnd, RelayEnd, Secret};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&cut, octets)) = input.split_first() else { return };
    assert_survives::<ToDestination>(octets);
    assert_survives::<ToRelay>(octets);
    assert_nothing_is_forged(octets, cut);
});

fn assert_survives<F: Frame>(octets: &[u8]) {
    if let Ok(frame) = decode::<F>(octets) {
        let mut written = BytesMut::new();
        encode(&frame, &mut written);
        assert_eq!(written, octets);
    }
}

/// Octets after a greeting: records that nobody wrote.
fn assert_nothing_is_forged(octets: &[u8], cut: u8) {
    let mut destination = DestinationEnd::new(Secret::new([7; 32]), [1; 16]);
    let mut greeting = RelayEnd::new(Secret::new([7; 32]), [2; 16]).take_octets();
    assert_eq!(destination.receive(&mut greeting), Ok(None));
    for chunk in octets.chunks(usize::from(cut).max(1)) {
        match destination.receive(&mut Bytes::copy_from_slice(chunk)) {
            Ok(frame) => assert_eq!(frame, None),
            Err(_) => return,
        }
    }
}
