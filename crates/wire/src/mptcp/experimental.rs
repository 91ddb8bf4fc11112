//! The experimental option: subtype 0xf, which RFC 8684 section 7.2 reserves for private experiments.

use arrayvec::ArrayVec;

use super::{begin, subtype};
use crate::octets::Reader;

/// An experimental option (RFC 8684 section 7.2): for private use between consenting peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Experimental {
    /// The low nibble of the subtype octet; the high nibble of this field is not sent.
    pub flags: u8,
    /// Octets after the subtype octet, at most 37.
    pub data: ArrayVec<u8, 37>,
}

impl Experimental {
    pub(super) fn len(&self) -> usize {
        3 + self.data.len()
    }

    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let flags = body.u8()? & 0x0f;
        let data = ArrayVec::try_from(body.rest()).ok()?;
        Some(Self { flags, data })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        begin(subtype::MP_EXPERIMENTAL, self.flags, self.len(), out);
        out.extend_from_slice(&self.data);
    }
}
