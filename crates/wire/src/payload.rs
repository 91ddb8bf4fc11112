//! The data of a segment: real octets, or a pattern whose octets are computed.

use core::ops::Range;

use bytes::{Buf, Bytes};
use units::narrow::u32_from;

/// The data of a segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Payload {
    /// No data.
    #[default]
    Empty,
    /// Octets computed from their position: simulations move no payload memory.
    Pattern(Pattern),
    /// Real octets, shared and never copied inside the engine.
    Bytes(Bytes),
}

/// Mask for positions in words of eight octets.
const INDEX_MASK: u64 = u64::MAX / 8;

/// `len` octets of the endless stream `stream`, from position `offset` on. After its last position, 2^64 - 1, the
/// stream restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Number of the stream; different streams have different octets.
    pub stream: u32,
    /// Number of octets.
    pub len: u32,
    /// Position of the first octet in the stream.
    pub offset: u64,
}

impl Payload {
    /// Returns the number of octets.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Pattern(pattern) => pattern.len as usize,
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Returns the number of octets as sequence numbers count them. No segment has 4 GiB; a larger payload counts as
    /// `u32::MAX`.
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        match self {
            Self::Empty => 0,
            Self::Pattern(pattern) => pattern.len,
            Self::Bytes(bytes) => u32_from(bytes.len() as u64),
        }
    }

    /// Returns whether there are no octets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the octets in `range`, without copying.
    ///
    /// # Panics
    /// If `range` reaches past the end, which is a bug of the caller.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "slice {range:?} of {} octets", self.len());
        match self {
            _ if range.is_empty() => Self::Empty,
            Self::Empty => Self::Empty,
            Self::Pattern(pattern) => Self::Pattern(Pattern {
                stream: pattern.stream,
                len: u32_from((range.end - range.start) as u64),
                offset: pattern.offset.wrapping_add(range.start as u64),
            }),
            Self::Bytes(bytes) => Self::Bytes(bytes.slice(range)),
        }
    }

    /// Returns the `len` octets from `start` on, without copying; `None` if there are fewer.
    #[inline]
    pub fn get(&self, start: usize, len: usize) -> Option<Self> {
        match self {
            Self::Pattern(pattern) => pattern.part(start, len).map(Self::Pattern),
            _ if len == 0 || start + len > self.len() => None,
            _ => Some(self.slice(start..start + len)),
        }
    }

    /// Removes the first `count` octets.
    ///
    /// # Panics
    /// If there are fewer than `count` octets.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "advance {count} of {} octets", self.len());
        match self {
            _ if count == self.len() => *self = Self::Empty,
            Self::Empty => {}
            Self::Pattern(pattern) => pattern.advance(count),
            Self::Bytes(bytes) => bytes.advance(count),
        }
    }

    /// Splits off the first `at` octets and returns them.
    ///
    /// # Panics
    /// If there are fewer than `at` octets.
    pub fn split_to(&mut self, at: usize) -> Self {
        if at == self.len() {
            return core::mem::take(self);
        }
        let front = self.slice(0..at);
        match self {
            Self::Empty => {}
            Self::Pattern(pattern) => pattern.advance(at),
            Self::Bytes(bytes) => bytes.advance(at),
        }
        front
    }

    /// Appends `next` without copying, or returns it. Only adjacent pieces of one pattern join.
    pub fn try_append(&mut self, next: Self) -> Result<(), Self> {
        match (&mut *self, next) {
            (Self::Empty, next) => *self = next,
            (_, Self::Empty) => {}
            (Self::Pattern(front), Self::Pattern(back)) if front.joins(&back) => front.len += back.len,
            (_, next) => return Err(next),
        }
        Ok(())
    }

    /// Writes all octets to the start of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than the payload.
    pub fn copy_to_slice(&self, out: &mut [u8]) {
        match self {
            Self::Empty => {}
            Self::Pattern(pattern) => pattern.fill(&mut out[..pattern.len as usize]),
            Self::Bytes(bytes) => out[..bytes.len()].copy_from_slice(bytes),
        }
    }

    /// Writes all octets to the end of `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Empty => {}
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Pattern(pattern) => {
                let start = out.len();
                out.resize(start + pattern.len as usize, 0);
                pattern.fill(&mut out[start..]);
            }
        }
    }

    /// Calls `visit` with the octets, in order, in one or several pieces and without allocating.
    pub(crate) fn for_each_piece(&self, mut visit: impl FnMut(&[u8])) {
        match self {
            Self::Empty => {}
            Self::Bytes(bytes) => visit(bytes),
            Self::Pattern(pattern) => {
                const PIECE: u32 = 1024;
                let mut buffer = [0; PIECE as usize];
                let mut rest = *pattern;
                while rest.len > 0 {
                    let piece = Pattern { len: rest.len.min(PIECE), ..rest };
                    let octets = &mut buffer[..piece.len as usize];
                    piece.fill(octets);
                    visit(octets);
                    rest.len -= piece.len;
                    rest.offset = rest.offset.wrapping_add(piece.len.into());
                }
            }
        }
    }

    /// Returns the octets themselves; copies only a pattern.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Pattern(pattern) => {
                let mut octets = vec![0; pattern.len as usize];
                pattern.fill(&mut octets);
                octets.into()
            }
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Bytes(bytes) }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(octets: Vec<u8>) -> Self {
        Bytes::from(octets).into()
    }
}

impl Pattern {
    #[inline]
    fn part(&self, start: usize, len: usize) -> Option<Self> {
        let is_within = len > 0 && start + len <= self.len as usize;
        is_within.then(|| Self {
            stream: self.stream,
            len: u32_from(len as u64),
            offset: self.offset.wrapping_add(start as u64),
        })
    }

    fn advance(&mut self, count: usize) {
        self.len -= u32_from(count as u64);
        self.offset = self.offset.wrapping_add(count as u64);
    }

    /// Returns whether `next` continues this piece of the same stream.
    fn joins(&self, next: &Self) -> bool {
        self.stream == next.stream
            && self.offset.wrapping_add(self.len.into()) == next.offset
            && self.len.checked_add(next.len).is_some()
    }

    /// Computes the octets, eight at a time, from a mixed word of stream and position.
    fn fill(&self, out: &mut [u8]) {
        let mut index = self.offset / 8;
        let skip = (self.offset % 8) as usize;
        let (front, rest) = out.split_at_mut(out.len().min((8 - skip) % 8));
        if !front.is_empty() {
            front.copy_from_slice(&self.word(index).to_le_bytes()[skip..skip + front.len()]);
            index += 1;
        }
        let mut words = rest.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.word(index).to_le_bytes());
            index += 1;
        }
        let last = words.into_remainder();
        last.copy_from_slice(&self.word(index).to_le_bytes()[..last.len()]);
    }

    /// SplitMix64's finaliser: every octet depends on stream and position.
    fn word(&self, index: u64) -> u64 {
        // The words after the last position are those of the beginning.
        let mut z = (index & INDEX_MASK).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(self.stream) << 32 | 0x5eed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(offset: u64, len: u32) -> Payload {
        Payload::Pattern(Pattern { stream: 3, offset, len })
    }

    #[test]
    fn pieces_of_a_pattern_are_the_pattern() {
        let whole = pattern(5, 100).to_bytes();
        assert_eq!(pattern(5, 100).slice(13..50).to_bytes(), whole.slice(13..50));
        let mut rest = pattern(5, 100);
        let front = rest.split_to(41);
        assert_eq!(front.to_bytes(), whole.slice(..41));
        assert_eq!(rest.to_bytes(), whole.slice(41..));
        let mut shorter = rest.clone();
        shorter.advance(9);
        assert_eq!(shorter.to_bytes(), whole.slice(50..));
        shorter.advance(50);
        assert_eq!(shorter, Payload::Empty);
        let mut joined = front;
        joined.try_append(rest).unwrap();
        assert_eq!(joined, pattern(5, 100));
    }

    /// As when a checksum is computed.
    #[test]
    fn the_pieces_of_a_pattern_go_on_behind_its_last_position() {
        let long = pattern(u64::MAX - 1500, 3000);
        let mut octets = Vec::new();
        long.for_each_piece(|piece| octets.extend_from_slice(piece));
        assert_eq!(long.to_bytes(), octets);
    }

    #[test]
    fn behind_its_last_position_a_stream_begins_anew() {
        let across = pattern(u64::MAX - 10, 100);
        let whole = across.to_bytes();
        assert_eq!(whole.slice(..11), pattern(u64::MAX - 10, 11).to_bytes());
        assert_eq!(whole.slice(11..), pattern(0, 89).to_bytes());
        assert_eq!(across.slice(13..50).to_bytes(), whole.slice(13..50));
        assert_eq!(across.get(13, 37), Some(pattern(2, 37)));
        let mut rest = across.clone();
        let mut front = rest.split_to(41);
        assert_eq!(rest, pattern(30, 59));
        front.try_append(rest).unwrap();
        assert_eq!(front, across);
    }

    #[test]
    fn a_part_is_whole_or_nothing() {
        for whole in [pattern(5, 100), pattern(5, 100).to_bytes().into()] {
            assert_eq!(whole.get(13, 37), Some(whole.slice(13..50)));
            assert_eq!(whole.get(0, 100), Some(whole.clone()));
            assert_eq!((whole.get(13, 88), whole.get(101, 0), whole.get(13, 0)), (None, None, None));
        }
        assert_eq!(Payload::Empty.get(0, 1), None);
    }

    #[test]
    fn only_neighbours_join() {
        assert!(pattern(0, 10).try_append(pattern(11, 10)).is_err());
        assert!(Payload::from(vec![1]).try_append(Payload::from(vec![2])).is_err());
        let mut empty = Payload::Empty;
        empty.try_append(pattern(0, 10)).unwrap();
        assert_eq!(empty, pattern(0, 10));
    }
}
