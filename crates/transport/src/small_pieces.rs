//! Small pieces of data, and the memory that they keep alive.
//!
//! A payload shares the memory of its packet, so data are not copied. If a peer sends one octet per packet, every octet
//! of the receive buffer would cost a packet's memory. Pieces this small are therefore copied.

use bytes::Bytes;
use wire::Payload;

/// Payloads shorter than this are copied.
const SMALL_BYTES: usize = 512;

/// Whether a payload is too small to keep its packet alive.
pub(crate) fn is_small(payload: &Payload) -> bool {
    matches!(payload, Payload::Bytes(octets) if octets.len() < SMALL_BYTES)
}

/// Returns the same payload; a small piece gets its own memory.
#[inline]
pub(crate) fn keep(payload: Payload) -> Payload {
    match payload {
        Payload::Bytes(octets) if octets.len() < SMALL_BYTES => Bytes::copy_from_slice(&octets).into(),
        payload => payload,
    }
}
