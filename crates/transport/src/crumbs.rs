//! Small pieces of data, and the memory they hold on to.
//!
//! A payload shares the memory of the packet it came in, so that data are not copied. A peer that sends an octet a
//! packet would make every octet of the receive buffer cost a packet's memory: pieces this small are copied instead.

use bytes::Bytes;
use wire::Payload;

/// Payloads shorter than this are copied.
const CRUMB_BYTES: usize = 512;

/// Whether a payload is too small to hold on to its packet.
pub(crate) fn is_crumb(payload: &Payload) -> bool {
    matches!(payload, Payload::Bytes(octets) if octets.len() < CRUMB_BYTES)
}

/// The same payload; a crumb in memory of its own.
#[inline]
pub(crate) fn keep(payload: Payload) -> Payload {
    match payload {
        Payload::Bytes(octets) if octets.len() < CRUMB_BYTES => Bytes::copy_from_slice(&octets).into(),
        payload => payload,
    }
}
