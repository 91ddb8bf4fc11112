//! Frames <-> octets.
//!
//! ```text
//!  0       1       2       3       4
//! +-------+-------+-------+-------+----- - - - ----+
//! |version| kind  | octets of body| body           |
//! +-------+-------+-------+-------+----- - - - ----+
//! ```

use core::marker::PhantomData;
use std::collections::VecDeque;

use arrayvec::ArrayVec;
use bytes::{Buf, BytesMut};
use units::Dsn;
use wire::Payload;

use super::VERSION;
use super::fault::{ChannelError, Fault};
use super::field::{Field, Octets};
use super::scratch::Scratch;

const HEAD_BYTES: usize = 4;
const DSN_BYTES: usize = 8;

/// Octets of data in one frame at most.
pub const DATA_BYTES_MAX: usize = u16::MAX as usize - DSN_BYTES;

/// Octets of the largest frame without data, its head included.
pub const CONTROL_BYTES_MAX: usize = 128;

/// The kind of a data frame, to the destination; and what a kind to a relay has set besides.
const DATA: u8 = 0x10;
const DIRECTION_MASK: u8 = 0x40;

/// The frames of one direction.
pub trait Frame: Sized {
    /// What is set in the kinds of this direction.
    const DIRECTION: u8;

    /// A data frame.
    fn data(dsn: Dsn, payload: Payload) -> Self;

    /// Reads the body of a frame that is not a data frame.
    ///
    /// # Errors
    /// What is wrong with it.
    fn take(kind: u8, body: &[u8]) -> Result<Self, Fault>;

    /// Writes the frame, or gives back what a data frame carries.
    fn put(self, out: &mut BytesMut) -> Option<(Dsn, Payload)>;
}

/// Reads a body, which must be exactly as long as its fields.
pub(super) fn take_body<T: Field>(frame: &'static str, body: &[u8]) -> Result<T, Fault> {
    let mut octets = Octets(body);
    let value = T::take(&mut octets).map_err(|unread| unread.of_frame(frame))?;
    match octets.0.len() {
        0 => Ok(value),
        octets => Err(Fault::Trailing { frame, octets }),
    }
}

/// Writes head and body.
pub(super) fn put_frame(kind: u8, body: &impl Field, out: &mut BytesMut) {
    let start = out.len();
    put_head(kind, 0, out);
    body.put(out);
    let len = (out.len() - start - HEAD_BYTES) as u16;
    out[start + 2..start + HEAD_BYTES].copy_from_slice(&len.to_be_bytes());
}

fn put_head(kind: u8, len: u16, out: &mut BytesMut) {
    let [high, low] = len.to_be_bytes();
    out.extend_from_slice(&[VERSION, kind, high, low]);
}

/// Frames to octets.
#[derive(Debug, Default)]
pub struct Encoder {
    scratch: Scratch,
}

impl Encoder {
    /// Appends a frame to `out`, as pieces to be sent one after the other. Data are handed on as they are, in several
    /// frames if they do not fit into one; no data, no frame.
    pub fn encode<F: Frame>(&mut self, frame: F, out: &mut VecDeque<Payload>) {
        let (octets, data) = self.scratch.cut(|out| frame.put(out));
        let Some((mut dsn, mut payload)) = data else { return out.push_back(octets) };
        while !payload.is_empty() {
            let len = payload.len().min(DATA_BYTES_MAX);
            let (head, ()) = self.scratch.cut(|out| {
                put_head(DATA | F::DIRECTION, (DSN_BYTES + len) as u16, out);
                dsn.put(out);
            });
            out.push_back(head);
            out.push_back(payload.split_to(len));
            dsn += len as u64;
        }
    }
}

/// Octets to frames of one direction, wherever the octets are cut.
#[derive(Debug)]
pub struct Decoder<F> {
    /// The start of a frame, as far as it is not data.
    partial: ArrayVec<u8, CONTROL_BYTES_MAX>,
    /// Next DSN and octets to come of a data frame.
    data: Option<(Dsn, usize)>,
    frame_start: u64,
    failed: Option<ChannelError>,
    frames: PhantomData<F>,
}

impl<F> Default for Decoder<F> {
    fn default() -> Self {
        Self { partial: ArrayVec::new(), data: None, frame_start: 0, failed: None, frames: PhantomData }
    }
}

impl<F: Frame> Decoder<F> {
    const DATA_KIND: u8 = DATA | F::DIRECTION;

    /// Takes octets off the front of `input` until a frame is complete; none if `input` is used up first. The data of
    /// one frame may come in several, as its octets do.
    ///
    /// # Errors
    /// What is not a frame. Nothing can be read after that: close the channel.
    pub fn decode(&mut self, input: &mut Payload) -> Result<Option<F>, ChannelError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.advance(input).map_err(|fault| {
            let error = ChannelError { frame_start: self.frame_start, fault };
            self.failed = Some(error);
            error
        })
    }

    fn advance(&mut self, input: &mut Payload) -> Result<Option<F>, Fault> {
        loop {
            if let Some((dsn, left)) = self.data {
                return Ok(self.take_data(dsn, left, input));
            }
            if !self.fill(HEAD_BYTES, input) {
                return Ok(None);
            }
            let (kind, body_len) = self.head()?;
            let is_data = kind == Self::DATA_KIND;
            if !self.fill(HEAD_BYTES + if is_data { DSN_BYTES } else { body_len }, input) {
                return Ok(None);
            }
            let body = &self.partial[HEAD_BYTES..];
            let frame = if is_data {
                self.data = Some((take_body("Data", body)?, body_len - DSN_BYTES));
                None
            } else {
                Some(F::take(kind, body)?)
            };
            self.partial.clear();
            self.frame_start += (HEAD_BYTES + body_len) as u64;
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    /// The next piece of data.
    fn take_data(&mut self, dsn: Dsn, left: usize, input: &mut Payload) -> Option<F> {
        if input.is_empty() {
            return None;
        }
        let payload = input.split_to(input.len().min(left));
        let rest = left - payload.len();
        self.data = (rest > 0).then_some((dsn + payload.len() as u64, rest));
        Some(F::data(dsn, payload))
    }

    /// Moves octets from `input` until there are `need`. Whether there are.
    fn fill(&mut self, need: usize, input: &mut Payload) -> bool {
        let take = need.saturating_sub(self.partial.len()).min(input.len());
        match input {
            _ if take == 0 => {}
            Payload::Bytes(octets) => {
                self.partial.try_extend_from_slice(&octets[..take]).expect("what is no data fits");
                octets.advance(take);
            }
            other => self.partial.extend(other.split_to(take).to_bytes()),
        }
        self.partial.len() >= need
    }

    /// Kind, and octets of the body.
    fn head(&self) -> Result<(u8, usize), Fault> {
        let [version, kind, high, low] = *self.partial.first_chunk().expect("the head is complete");
        if version != VERSION {
            return Err(Fault::Version { version });
        }
        if kind & DIRECTION_MASK != F::DIRECTION {
            return Err(Fault::WrongWay { kind });
        }
        let len = u16::from_be_bytes([high, low]);
        let (min, max) = match kind {
            _ if kind == Self::DATA_KIND => (DSN_BYTES as u16 + 1, u16::MAX),
            _ => (0, (CONTROL_BYTES_MAX - HEAD_BYTES) as u16),
        };
        if !(min..=max).contains(&len) {
            return Err(Fault::Length { kind, len, min, max });
        }
        Ok((kind, len.into()))
    }
}
