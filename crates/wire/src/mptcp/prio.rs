//! MP_PRIO (RFC 8684 section 3.3.8).

use super::{begin, subtype};
use crate::octets::Reader;

/// Changes the priority of the subflow that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpPrio {
    /// B: use this subflow only if no regular one works.
    pub backup: bool,
}

const BACKUP: u8 = 0x1;

impl MpPrio {
    /// Octets of figure 11.
    pub(super) const LEN: usize = 3;

    /// Reads figure 11 from its subtype octet on.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let backup = body.u8()? & BACKUP != 0;
        body.finish(Self { backup })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        begin(subtype::MP_PRIO, if self.backup { BACKUP } else { 0 }, Self::LEN, out);
    }
}
