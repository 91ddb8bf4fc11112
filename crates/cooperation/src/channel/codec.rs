//! Frames <-> octets. A frame is the body of one record, whole.
//!
//! ```text
//!  0       1       2
//! +-------+-------+----- - - - ----+
//! |version| kind  | fields         |
//! +-------+-------+----- - - - ----+
//! ```
//!
//! The first two bits of a kind say who writes it: 00 a relay, 01 the destination to a relay, 10 the destination to the
//! source, 11 the source.

use bytes::BytesMut;

use super::VERSION;
use super::fault::Fault;
use super::field::{Field, Octets};
use super::prefix::Role;

const HEAD_BYTES: usize = 2;
const WRITER_MASK: u8 = 0xc0;

/// The bits of a kind that say who writes it.
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
    /// Who writes them.
    const WRITER: Role;

    /// Reads the fields of a frame.
    ///
    /// # Errors
    /// What is wrong with them.
    fn take(kind: u8, fields: &[u8]) -> Result<Self, Fault>;

    /// Writes the frame.
    fn put(&self, out: &mut BytesMut);
}

/// Appends `frame` to `out`.
pub fn encode<F: Frame>(frame: &F, out: &mut BytesMut) {
    frame.put(out);
}

/// Reads a frame, which `octets` are exactly.
///
/// # Errors
/// Why they are no frame of this direction.
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

/// Reads fields, which must be exactly as long as they should.
pub(super) fn take_fields<T: Field>(frame: &'static str, fields: &[u8]) -> Result<T, Fault> {
    let mut octets = Octets(fields);
    let value = T::take(&mut octets).map_err(|unread| unread.of_frame(frame))?;
    match octets.0.len() {
        0 => Ok(value),
        octets => Err(Fault::Trailing { frame, octets }),
    }
}

/// Writes head and fields.
pub(super) fn put_frame(kind: u8, fields: &impl Field, out: &mut BytesMut) {
    out.extend_from_slice(&[VERSION, kind]);
    fields.put(out);
}
