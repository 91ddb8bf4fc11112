//! MP_TCPRST (RFC 8684 section 3.6).

use super::{begin, subtype};
use crate::octets::Reader;

/// Why the subflow is reset; travels on a RST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpTcpRst {
    /// T: the cause is transient; a new subflow may work.
    pub transient: bool,
    /// The cause.
    pub reason: ResetReason,
}

/// Reason codes (RFC 8684 section 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// 0x00
    Unspecified,
    /// 0x01
    MptcpSpecific,
    /// 0x02
    LackOfResources,
    /// 0x03
    AdministrativelyProhibited,
    /// 0x04
    TooMuchOutstandingData,
    /// 0x05
    UnacceptablePerformance,
    /// 0x06
    MiddleboxInterference,
    /// A code this RFC does not define.
    Other(u8),
}

impl ResetReason {
    /// Returns the reason that `code` stands for.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0x00 => Self::Unspecified,
            0x01 => Self::MptcpSpecific,
            0x02 => Self::LackOfResources,
            0x03 => Self::AdministrativelyProhibited,
            0x04 => Self::TooMuchOutstandingData,
            0x05 => Self::UnacceptablePerformance,
            0x06 => Self::MiddleboxInterference,
            code => Self::Other(code),
        }
    }

    /// Returns the code on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Unspecified => 0x00,
            Self::MptcpSpecific => 0x01,
            Self::LackOfResources => 0x02,
            Self::AdministrativelyProhibited => 0x03,
            Self::TooMuchOutstandingData => 0x04,
            Self::UnacceptablePerformance => 0x05,
            Self::MiddleboxInterference => 0x06,
            Self::Other(code) => code,
        }
    }
}

/// T. The flags U, V and W beside it are not assigned and are ignored.
const TRANSIENT: u8 = 0x1;

impl MpTcpRst {
    /// Octets of figure 15.
    pub(super) const LEN: usize = 4;

    /// Reads figure 15 from its subtype octet on.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let transient = body.u8()? & TRANSIENT != 0;
        let reason = ResetReason::from_code(body.u8()?);
        body.finish(Self { transient, reason })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        begin(subtype::MP_TCPRST, if self.transient { TRANSIENT } else { 0 }, Self::LEN, out);
        out.push(self.reason.code());
    }
}
