//! Arbitrary octets through the channel between relay and destination: nothing panics, what was read writes the same
//! octets again, cuts change nothing, and no record passes that nobody sealed.
//!
//! Input: the length of the cuts, then the octets.

#![no_main]

use std::collections::VecDeque;

use bytes::Bytes;
use cooperation::forwarding::channel::authenticated::{AuthenticatedChannel, Role, Secret};
use cooperation::forwarding::channel::codec::Frame;
use cooperation::forwarding::channel::to_destination::ToDestination;
use cooperation::forwarding::channel::to_relay::ToRelay;
use cooperation::forwarding::channel::{Decoder, Encoder, Fault};
use libfuzzer_sys::fuzz_target;
use wire::Payload;

fuzz_target!(|input: &[u8]| {
    let Some((&cut, octets)) = input.split_first() else { return };
    assert_survives::<ToDestination>(octets, cut);
    assert_survives::<ToRelay>(octets, cut);
    assert_nothing_is_forged(octets, cut);
});

fn assert_survives<F: Frame>(octets: &[u8], cut: u8) {
    let (frames, fault) = read::<F>(octets, octets.len());
    let (pieces, fault_in_pieces) = read::<F>(octets, usize::from(cut));
    assert_eq!(fault, fault_in_pieces);
    let mut encoder = Encoder::default();
    let written: Vec<u8> = frames.into_iter().flat_map(|frame| encoded(&mut encoder, frame).concat()).collect();
    let (again, fault_again) = read::<F>(&written, usize::from(cut));
    assert_eq!(fault_again, None);
    assert_eq!(contents(again), contents(pieces));
}

/// The octets of a frame, head and data apart.
fn encoded<F: Frame>(encoder: &mut Encoder, frame: F) -> Vec<Vec<u8>> {
    let mut out = VecDeque::new();
    encoder.encode(frame, &mut out);
    out.iter().map(|piece| piece.to_bytes().to_vec()).collect()
}

/// What frames say, however their data are cut: frames without data, and each octet of data with its DSN.
fn contents<F: Frame>(frames: Vec<F>) -> Vec<(u64, Vec<u8>)> {
    let (mut encoder, mut contents) = (Encoder::default(), Vec::new());
    for frame in frames {
        match encoded(&mut encoder, frame).as_slice() {
            [head, data] => {
                let first = u64::from_be_bytes(*head.last_chunk().expect("a head of data ends with a DSN"));
                let octet = |(place, octet): (usize, &u8)| (first.wrapping_add(place as u64), vec![*octet]);
                contents.extend(data.iter().enumerate().map(octet));
            }
            [control] => contents.push((0, control.clone())),
            _ => unreachable!("a frame is one piece or two"),
        }
    }
    contents
}

/// Octets after a greeting: records that nobody wrote.
fn assert_nothing_is_forged(octets: &[u8], cut: u8) {
    let end = |role, nonce| AuthenticatedChannel::new(role, Secret::new([7; 32]), [nonce; 16]);
    let mut destination = end(Role::Destination, 1);
    assert_eq!(destination.open(&mut end(Role::Relay, 2).greeting()), Ok(None));
    for chunk in octets.chunks(usize::from(cut).max(1)) {
        let mut input = Payload::from(Bytes::copy_from_slice(chunk));
        match destination.open(&mut input) {
            Ok(body) => assert_eq!(body, None),
            Err(_) => return,
        }
    }
}

fn read<F: Frame>(octets: &[u8], cut: usize) -> (Vec<F>, Option<Fault>) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for chunk in octets.chunks(cut.max(1)) {
        let mut input = Payload::from(Bytes::copy_from_slice(chunk));
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error.fault)),
            }
        }
    }
    (frames, None)
}
