//! The channel between relay and destination: frames, and what keeps them authentic.

mod authenticated;
mod hostile;
mod layout;
mod round_trip;
mod strategies;

use std::collections::VecDeque;

use bytes::Bytes;
use cooperation::forwarding::channel::codec::Frame;
use cooperation::forwarding::channel::{ChannelError, Decoder, Encoder};
use wire::Payload;

/// All octets of `pieces`.
fn octets(pieces: &VecDeque<Payload>) -> Vec<u8> {
    let mut out = Vec::new();
    pieces.iter().for_each(|piece| piece.append_to(&mut out));
    out
}

fn encoded<F: Frame>(frame: F) -> Vec<u8> {
    let mut pieces = VecDeque::new();
    Encoder::default().encode(frame, &mut pieces);
    octets(&pieces)
}

/// All frames of `octets`, which come as they are cut: `cuts` are the lengths, again and again.
fn decoded<F: Frame>(octets: &[u8], cuts: &[usize]) -> Result<Vec<F>, ChannelError> {
    let mut decoder = Decoder::default();
    let (mut frames, mut rest) = (Vec::new(), Bytes::copy_from_slice(octets));
    for &cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let mut input = Payload::from(rest.split_to(cut.clamp(1, rest.len())));
        while let Some(frame) = decoder.decode(&mut input)? {
            frames.push(frame);
        }
        assert!(input.is_empty(), "the decoder leaves octets behind");
    }
    Ok(frames)
}
