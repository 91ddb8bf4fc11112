//! Messages from the source to the destination: none yet.

use bytes::BytesMut;

use super::codec::Frame;
use super::fault::Fault;
use super::prefix::Role;

/// A frame of the source. None is defined, so any frame from the source is a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromSource {}

impl Frame for FromSource {
    const WRITER: Role = Role::Source;

    fn take(kind: u8, _: &[u8]) -> Result<Self, Fault> {
        Err(Fault::UnknownKind { kind })
    }

    fn put(&self, _: &mut BytesMut) {
        match *self {}
    }
}
