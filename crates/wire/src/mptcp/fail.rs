//! MP_FAIL (RFC 8684 section 3.7).

use units::Dsn;

/// A checksum failed: data from this number on are not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFail {
    /// Data sequence number of the first octet of the failed mapping.
    pub dsn: Dsn,
}
