//! What was written reads the same, wherever it is cut and whatever way its data go.

use std::collections::VecDeque;

use cooperation::forwarding::channel::codec::{CONTROL_BYTES_MAX, DATA_BYTES_MAX, Frame};
use cooperation::forwarding::channel::to_destination::ToDestination;
use cooperation::forwarding::channel::to_relay::ToRelay;
use cooperation::forwarding::channel::{Decoder, Encoder};
use proptest::prelude::*;
use units::Dsn;
use wire::{Pattern, Payload};

use super::strategies::{to_destination, to_relay};
use super::{decoded, encoded, octets};

/// Frames with data as octets: one for every run of adjacent data.
trait Joined: Frame + Clone + core::fmt::Debug + PartialEq {
    fn as_data(&self) -> Option<(Dsn, &Payload)>;
}

impl Joined for ToDestination {
    fn as_data(&self) -> Option<(Dsn, &Payload)> {
        if let Self::Data { dsn, payload } = self { Some((*dsn, payload)) } else { None }
    }
}

impl Joined for ToRelay {
    fn as_data(&self) -> Option<(Dsn, &Payload)> {
        if let Self::Data { dsn, payload } = self { Some((*dsn, payload)) } else { None }
    }
}

fn joined<F: Joined>(frames: &[F]) -> Vec<F> {
    let mut out: Vec<F> = Vec::new();
    for frame in frames {
        let Some((dsn, payload)) = frame.as_data() else {
            out.push(frame.clone());
            continue;
        };
        let mut octets = payload.to_bytes().to_vec();
        let mut first = dsn;
        if let Some((last_dsn, last)) = out.last().and_then(Joined::as_data) {
            if last_dsn + last.len() as u64 == dsn {
                octets = [&last.to_bytes(), octets.as_slice()].concat();
                first = last_dsn;
                out.pop();
            }
        }
        out.push(F::data(first, octets.into()));
    }
    out
}

fn survives<F: Joined>(frames: &[F], cuts: &[usize]) {
    let mut pieces = VecDeque::new();
    let mut encoder = Encoder::default();
    frames.iter().for_each(|frame| encoder.encode(frame.clone(), &mut pieces));
    assert_eq!(joined(&decoded::<F>(&octets(&pieces), cuts).unwrap()), joined(frames));

    // Piece by piece as it was written, patterns are patterns still.
    let mut decoder = Decoder::default();
    let mut read = Vec::new();
    for mut piece in pieces {
        while let Some(frame) = decoder.decode(&mut piece).unwrap() {
            read.push(frame);
        }
    }
    let same = |one: &F, other: &F| match (one.as_data(), other.as_data()) {
        (Some((_, Payload::Pattern(_))), Some((_, other))) => matches!(other, Payload::Pattern(_)),
        _ => one == other,
    };
    assert!(frames.iter().all(|frame| read.iter().any(|other| same(frame, other))));
    assert_eq!(joined(&read), joined(frames));
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1..4_usize, 1..200_usize, Just(1400), Just(100_000)], 1..10)
}

proptest! {
    #[test]
    fn frames_to_the_destination(frames in prop::collection::vec(to_destination(), 1..20), cuts in cuts()) {
        survives(&frames, &cuts);
    }

    #[test]
    fn frames_to_a_relay(frames in prop::collection::vec(to_relay(), 1..20), cuts in cuts()) {
        survives(&frames, &cuts);
    }

    #[test]
    fn control_frames_fit_what_a_decoder_keeps(down in to_relay(), up in to_destination()) {
        prop_assert!(down.as_data().is_some() || encoded(down).len() <= CONTROL_BYTES_MAX);
        prop_assert!(up.as_data().is_some() || encoded(up).len() <= CONTROL_BYTES_MAX);
    }
}

#[test]
fn long_data_take_several_frames_and_no_data_take_none() {
    let payload = Payload::Pattern(Pattern { stream: 1, offset: 0, len: 70_000 });
    let mut pieces = VecDeque::new();
    Encoder::default().encode(ToRelay::Data { dsn: Dsn(5), payload }, &mut pieces);
    let lens: Vec<_> = pieces.iter().map(Payload::len).collect();
    assert_eq!((lens, DATA_BYTES_MAX), (vec![12, 65_527, 12, 4_473], 65_527));
    pieces.clear();
    Encoder::default().encode(ToRelay::Data { dsn: Dsn(5), payload: Payload::Empty }, &mut pieces);
    assert!(pieces.is_empty());
}

#[test]
fn data_are_not_copied() {
    let octets = bytes::Bytes::from(vec![7; 1400]);
    let mut pieces = VecDeque::new();
    Encoder::default().encode(ToDestination::Data { dsn: Dsn(0), payload: octets.clone().into() }, &mut pieces);
    let mut decoder = Decoder::default();
    assert_eq!(decoder.decode(&mut pieces[0]), Ok(None));
    let Ok(Some(ToDestination::Data { payload: Payload::Bytes(read), .. })) = decoder.decode(&mut pieces[1]) else {
        panic!("the data come out");
    };
    assert_eq!((read.as_ptr(), read.len()), (octets.as_ptr(), 1400));
}
