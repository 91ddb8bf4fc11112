//! Small pieces of data, and the memory that they keep alive.
//!
//! A payload shares the memory of its packet, so data are not copied. If a peer sends one octet per packet, every octet
//! of the receive buffer would cost a packet's memory. Pieces this small are therefore copied. So is what remains of a
//! payload after a cut: a peer may send a whole window again with each new piece.

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

/// Returns the same payload, which is a part of one with `whole` octets; unless it is all of it, in its own memory.
pub(crate) fn keep_part(payload: Payload, whole: usize) -> Payload {
    match payload {
        Payload::Bytes(octets) if octets.len() < whole => Bytes::copy_from_slice(&octets).into(),
        payload => payload,
    }
}

/// Removes the first `count` octets; the others get their own memory.
#[inline]
pub(crate) fn cut_front(payload: &mut Payload, count: usize) {
    if count > 0 {
        let whole = payload.len();
        payload.advance(count);
        *payload = keep_part(core::mem::take(payload), whole);
    }
}

/// Removes all but the first `len` octets, which get their own memory.
pub(crate) fn cut_back(payload: &mut Payload, len: usize) {
    *payload = keep_part(payload.split_to(len), payload.len() + len);
}
