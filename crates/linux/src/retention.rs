//! Limits the memory that a payload keeps while it waits for the application.
//!
//! Packets are read into pieces of memory that they share ([`crate::tun`]), and a payload is a part of its packet. One
//! payload that an application leaves unread would therefore keep all the memory that was read with it: against a peer
//! with many connections, one of them unread, a thousand times its own size. Payloads of super-segments, from the
//! kernel or made here (`gather.rs`), stay in place for speed; shorter ones move to memory of their own. A full receive
//! buffer therefore costs at most [`RETENTION_MAX`] times its size, and on paths without super-segments no more than
//! its size: the engine copies what is left of a payload from which it has cut octets.

use crate::tun::POOL_BYTES;

/// Payloads shorter than this are copied: about half of a super-segment.
pub(crate) const SHARING_MIN: usize = 32 << 10;

/// Maximum memory that a payload keeps, as a multiple of its own size.
pub const RETENTION_MAX: usize = POOL_BYTES.div_ceil(SHARING_MIN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_small() {
        // 16 packets of 65535 octets are 1,048,560 octets: 32 times 32,768 less 16.
        assert_eq!(RETENTION_MAX, 32);
    }
}
