//! Limits the memory that a payload keeps while it waits for the application.
//!
//! Packets are read into pieces of memory that they share ([`crate::tun`]), and a payload is a part of its packet. One
//! payload that an application leaves unread would therefore keep all the memory that was read with it: against a peer
//! with many connections, one of them unread, a thousand times its own size. Payloads of super-segments, from the
//! kernel or made here (`gather.rs`), stay in place for speed; shorter ones move to memory of their own. A full receive
//! buffer therefore costs at most [`RETENTION_MAX`] times its size, and on paths without super-segments no more than
//! its size.

use bytes::Bytes;
use wire::Payload;

use crate::tun::POOL_BYTES;

/// Payloads shorter than this are copied: about half of a super-segment.
pub(crate) const SHARING_MIN: usize = 32 << 10;

/// Maximum memory that a payload keeps, as a multiple of its own size.
pub const RETENTION_MAX: usize = POOL_BYTES.div_ceil(SHARING_MIN);

/// Returns the same payload, in memory of its own unless it is large.
pub fn release_packet(payload: Payload) -> Payload {
    match payload {
        Payload::Bytes(octets) if octets.len() < SHARING_MIN => Bytes::copy_from_slice(&octets).into(),
        payload => payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_payload_keeps_the_memory_it_was_read_into() {
        let memory = Bytes::from((0..POOL_BYTES).map(|at| at as u8).collect::<Vec<_>>());
        let small = release_packet(memory.slice(40..1488).into());
        assert!(memory.is_unique());
        assert_eq!(small.to_bytes(), memory.slice(40..1488));
        let large = release_packet(memory.slice(40..40 + SHARING_MIN).into());
        assert!(!memory.is_unique());
        assert!(large.len() * RETENTION_MAX >= memory.len());
    }

    #[test]
    fn the_bound_is_small() {
        // 16 packets of 65535 octets are 1,048,560 octets: 32 times 32,768 less 16.
        assert_eq!(RETENTION_MAX, 32);
    }
}
