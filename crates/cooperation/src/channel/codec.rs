//! Frames <-> octets. A frame is the whole body of one record.
//!
//! ```text
//!  0       1       2
//! +-------+-------+----- - - - ----+
//! |version| kind  | fields         |
//! +-------+-------+----- - - - ----+
//! ```
//!
//! The first two bits of a kind name the writer: 00 a relay, 01 the destination to a relay, 10 the destination to the
//! source, 11 the source.

use bytes::BytesMut;

use super::VERSION;
use super::fault::Fault;
use super::field::{Field, Octets};
use super::prefix::Role;

const HEAD_BYTES: usize = 2;
const WRITER_MASK: u8 = 0xc0;

/// Returns the bits of a kind that name the writer.
const fn writer_bits(writer: Role) -> u8 {
    match writer {
        Role::Relay => 0x00,
        Role::DestinationToRelay => 0x40,
        Role::DestinationToSource => 0x80,
        Role::Source => 0xc0,
    }
}

/// The frames of one direction.
pub trait Frame: Sized {
    /// The end that writes these frames.
    const WRITER: Role;

    /// Reads the fields of a frame.
    ///
    /// # Errors
    /// Returns the fault in the fields.
    fn take(kind: u8, fields: &[u8]) -> Result<Self, Fault>;

    /// Writes the frame.
    fn put(&self, out: &mut BytesMut);
}

/// Appends `frame` to `out`.
pub fn encode<F: Frame>(frame: &F, out: &mut BytesMut) {
    frame.put(out);
}

/// Reads a frame that takes up all of `octets`.
///
/// # Errors
/// Returns why `octets` are not a frame of this direction.
pub fn decode<F: Frame>(octets: &[u8]) -> Result<F, Fault> {
    let (&[version, kind], fields) =
        octets.split_first_chunk::<HEAD_BYTES>().ok_or(Fault::Headless { octets: octets.len() })?;
    if version != VERSION {
        return Err(Fault::Version { version });
    }
    if kind & WRITER_MASK != writer_bits(F::WRITER) {
        return Err(Fault::WrongWay { kind });
    }
    F::take(kind, fields)
}

/// Reads fields, which must take up all of the octets.
pub(super) fn take_fields<T: Field>(frame: &'static str, fields: &[u8]) -> Result<T, Fault> {
    let mut octets = Octets(fields);
    let value = T::take(&mut octets).map_err(|unread| unread.of_frame(frame))?;
    match octets.0.len() {
        0 => Ok(value),
        octets => Err(Fault::Trailing { frame, octets }),
    }
}

/// Writes version, kind and fields.
pub(super) fn put_frame(kind: u8, fields: &impl Field, out: &mut BytesMut) {
    out.extend_from_slice(&[VERSION, kind]);
    fields.put(out);
}
