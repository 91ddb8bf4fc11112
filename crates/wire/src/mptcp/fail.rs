//! MP_FAIL (RFC 8684 section 3.7).

use units::Dsn;

use super::{begin, subtype};
use crate::octets::Reader;

/// A checksum failed: data from this number on are not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFail {
    /// Data sequence number of the first octet of the failed mapping.
    pub dsn: Dsn,
}

impl MpFail {
    /// Octets of figure 16.
    pub(super) const LEN: usize = 12;

    /// Reads figure 16 from its subtype octet on.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let _subtype_and_reserved = body.u16()?;
        let dsn = Dsn(body.u64()?);
        body.finish(Self { dsn })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        begin(subtype::MP_FAIL, 0, Self::LEN, out);
        out.push(0);
        out.extend_from_slice(&self.dsn.0.to_be_bytes());
    }
}
