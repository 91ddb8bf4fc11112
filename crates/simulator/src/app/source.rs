//! Data to send or to expect.

use bytes::Bytes;
use wire::{Pattern, Payload};

/// A finite stream of octets.
#[derive(Clone, Debug)]
pub enum Source {
    /// The first `len` octets of pattern stream `stream`.
    Pattern {
        /// Number of the stream.
        stream: u32,
        /// Number of octets; `u64::MAX` never ends.
        len: u64,
    },
    /// Real octets.
    Bytes(Bytes),
}

impl Source {
    /// Creates a source of the first `len` octets of pattern stream 1.
    pub const fn pattern(len: u64) -> Self {
        Self::Pattern { stream: 1, len }
    }

    /// Creates a pattern without end.
    pub const fn endless() -> Self {
        Self::pattern(u64::MAX)
    }

    /// Returns the total number of octets.
    pub fn len(&self) -> u64 {
        match self {
            Self::Pattern { len, .. } => *len,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Returns whether there are no octets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns at most `max` octets from `offset` on, without copying.
    pub fn slice(&self, offset: u64, max: u32) -> Payload {
        let len = self.len().saturating_sub(offset).min(u64::from(max)) as u32;
        match self {
            _ if len == 0 => Payload::Empty,
            Self::Pattern { stream, .. } => Payload::Pattern(Pattern { stream: *stream, len, offset }),
            Self::Bytes(bytes) => Payload::Bytes(bytes.slice(offset as usize..offset as usize + len as usize)),
        }
    }

    /// Returns whether `data` equal the octets from `offset` on. Equal patterns are compared without computing them.
    #[inline]
    pub fn matches(&self, offset: u64, data: &Payload) -> bool {
        match (self, data) {
            (Self::Pattern { stream, len }, Payload::Pattern(data))
                if data.stream == *stream
                    && data.offset == offset
                    && u64::from(data.len) <= len.saturating_sub(offset) =>
            {
                true
            }
            _ => self.matches_octets(offset, data),
        }
    }

    fn matches_octets(&self, offset: u64, data: &Payload) -> bool {
        let expected = self.slice(offset, data.len() as u32);
        expected == *data || expected.to_bytes() == data.to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_end_with_the_source() {
        let source = Source::pattern(10);
        assert_eq!(source.slice(8, 100), Payload::Pattern(Pattern { stream: 1, len: 2, offset: 8 }));
        assert_eq!(source.slice(10, 100), Payload::Empty);
        assert_eq!(Source::Bytes(Bytes::from_static(b"abcdef")).slice(2, 3), Payload::from(b"cde".to_vec()));
    }

    #[test]
    fn patterns_match_their_octets_and_nothing_else() {
        let source = Source::pattern(100);
        let octets = source.slice(7, 20).to_bytes();
        assert!(source.matches(7, &source.slice(7, 20)));
        assert!(source.matches(7, &Payload::Bytes(octets.clone())));
        assert!(!source.matches(8, &Payload::Bytes(octets)));
        assert!(!source.matches(99, &Source::endless().slice(99, 2)));
    }
}
