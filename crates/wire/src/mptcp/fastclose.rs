//! MP_FASTCLOSE (RFC 8684 section 3.5).

use super::Key;

/// Closes the whole connection at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFastclose {
    /// The receiver's key, which proves that the sender knows the connection.
    pub receiver_key: Key,
}
