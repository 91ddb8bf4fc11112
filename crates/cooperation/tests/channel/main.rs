//! The channel between relay and destination: frames, records, and what happens to hostile ones.

mod attacks;
mod authenticated;
mod frames;
mod hostile;
mod strategies;

use bytes::BytesMut;
use cooperation::channel::codec::{Frame, encode};

fn encoded<F: Frame>(frame: &F) -> Vec<u8> {
    let mut out = BytesMut::new();
    encode(frame, &mut out);
    out.to_vec()
}
