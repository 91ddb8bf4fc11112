//! MP_FASTCLOSE (RFC 8684 section 3.5).

use super::{Key, begin, subtype};
use crate::octets::Reader;

/// Closes the whole connection at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFastclose {
    /// The receiver's key, which proves that the sender knows the connection.
    pub receiver_key: Key,
}

impl MpFastclose {
    /// Octets of figure 14.
    pub(super) const LEN: usize = 12;

    /// Reads figure 14 from its subtype octet on.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let _subtype_and_reserved = body.u16()?;
        let receiver_key = Key(body.u64()?);
        body.finish(Self { receiver_key })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        begin(subtype::MP_FASTCLOSE, 0, Self::LEN, out);
        out.push(0);
        out.extend_from_slice(&self.receiver_key.0.to_be_bytes());
    }
}
