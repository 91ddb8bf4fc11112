//! Offsets in `struct connection` of `bpf/connection.h`, which asserts its size as compiled.

/// Places of a connection.
pub const PLACES: usize = 12;

/// Offset of the bits of the places whose subflows wait, after `used`, `alpha_scaled`, `alpha_cwnd_total`,
/// `is_current`.
pub const WAITING_AT: usize = 4 * 8;

/// Offset of the array of `struct cc_path`, after `waiting`.
pub const PATHS_AT: usize = WAITING_AT + 8;

/// Size of `struct cc_path`.
pub const PATH_OCTETS: usize = 144;

/// Offset of the array of `struct place`, after `taken`.
pub const PLACES_AT: usize = PATHS_AT + PLACES * PATH_OCTETS + 8;

/// Size of `struct place`.
pub const PLACE_OCTETS: usize = 56;

/// Size of `struct connection`.
pub const CONNECTION_OCTETS: usize = PLACES_AT + PLACES * PLACE_OCTETS;

/// Returns where `struct cc_acc` of `bpf/rules/acc.h` holds the number of cuts of a path.
pub const fn cuts_at(place: usize) -> usize {
    8 + place * 80 + 72
}

/// Returns the word at an offset.
pub fn word(octets: &[u8], at: usize) -> u64 {
    octets.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// Returns the half word at an offset.
pub fn half(octets: &[u8], at: usize) -> u32 {
    octets.get(at..at + 4).and_then(|half| half.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// Returns the port at an offset.
pub fn port(octets: &[u8], at: usize) -> u16 {
    octets.get(at..at + 2).and_then(|port| port.try_into().ok()).map_or(0, u16::from_ne_bytes)
}
