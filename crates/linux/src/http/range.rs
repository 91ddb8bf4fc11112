//! Byte ranges (RFC 9110 section 14).

use http_range_header::{EndPosition, RangeUnsatisfiableError, StartPosition, parse_range_header};

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// From the first to the second octet, both inclusive.
    FromTo(u64, u64),
    /// From an octet to the end.
    From(u64),
    /// This many octets at the end.
    Last(u64),
}

/// The part is outside the file: status 416.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeError;

impl Range {
    /// Reads the value of a Range field. Returns `None` if the complete file is the right answer: another unit, several
    /// ranges, or no range at all (RFC 9110 section 14.2 lets servers ignore the field).
    pub fn parse(text: &str) -> Option<Result<Self, RangeError>> {
        let parsed = match parse_range_header(text.trim()) {
            Ok(parsed) => parsed,
            Err(RangeUnsatisfiableError::ZeroSuffix) if !text.contains(',') => return Some(Err(RangeError)),
            Err(_) => return None,
        };
        let [range] = parsed.ranges.as_slice() else { return None };
        Some(match (range.start, range.end) {
            (StartPosition::FromLast(count), _) => Ok(Self::Last(count)),
            (StartPosition::Index(first), EndPosition::LastByte) => Ok(Self::From(first)),
            (StartPosition::Index(first), EndPosition::Index(last)) if first <= last => Ok(Self::FromTo(first, last)),
            (StartPosition::Index(_), EndPosition::Index(_)) => Err(RangeError),
        })
    }

    /// Returns position and number of the octets, in a file of `len` octets. The parser's own check is not used: it
    /// refuses suffixes longer than the file, which mean all of it, and finds an octet in empty files.
    ///
    /// # Errors
    /// If none of the octets exists.
    pub fn within(self, len: u64) -> Result<(u64, u64), RangeError> {
        let (first, end) = match self {
            Self::FromTo(first, last) => (first, len.min(last.saturating_add(1))),
            Self::From(first) => (first, len),
            Self::Last(count) => (len.saturating_sub(count), len),
        };
        if first < end { Ok((first, end - first)) } else { Err(RangeError) }
    }
}

/// Position of the octets of an answer with status 206 (RFC 9110 section 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// Position of the first octet.
    pub first: u64,
    /// Position of the last octet.
    pub last: u64,
    /// Octets of the complete file, if the server knows.
    pub complete_len: Option<u64>,
}

impl ContentRange {
    /// Returns whether the part includes the last octet of the file.
    pub fn reaches_end(&self) -> bool {
        self.complete_len == Some(self.last + 1)
    }

    /// Reads the value of a Content-Range field; `None` if it is no range of octets.
    pub fn parse(text: &str) -> Option<Self> {
        let (range, complete) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let number = |digits: &str| digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|d| d.is_ascii_digit()));
        let complete_len = if complete == "*" { None } else { Some(number(complete)?) };
        let (first, last) = (number(first)?, number(last)?);
        (first <= last && last < complete_len.unwrap_or(u64::MAX)).then_some(Self { first, last, complete_len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(text: &str, len: u64) -> Option<Result<(u64, u64), RangeError>> {
        Range::parse(text).map(|range| range?.within(len))
    }

    #[test]
    fn parts_of_ten_octets() {
        assert_eq!(within("bytes=0-0", 10), Some(Ok((0, 1))));
        assert_eq!(within("bytes=5-", 10), Some(Ok((5, 5))));
        assert_eq!(within("bytes=8-99", 10), Some(Ok((8, 2))));
        assert_eq!(within("bytes=-3", 10), Some(Ok((7, 3))));
        assert_eq!(within("bytes=-30", 10), Some(Ok((0, 10))));
        assert_eq!(within("bytes=0-18446744073709551615", 10), Some(Ok((0, 10))));
        assert_eq!(within("bytes=5-5,", 10), None);
    }

    #[test]
    fn parts_outside_and_other_units() {
        assert_eq!(within("bytes=10-", 10), Some(Err(RangeError)));
        assert_eq!(within("bytes=-0", 10), Some(Err(RangeError)));
        assert_eq!(within("bytes=5-4", 10), Some(Err(RangeError)));
        for empty in ["bytes=0-", "bytes=0-0", "bytes=-5"] {
            assert_eq!(within(empty, 0), Some(Err(RangeError)), "{empty}");
        }
        for ignored in ["lines=1-2", "bytes=1-2,4-5", "bytes=x-", "bytes=", "bytes=-", "bytes=--5", "bytes=+1-2", ""] {
            assert_eq!(within(ignored, 10), None, "{ignored}");
        }
    }

    #[test]
    fn places_of_parts() {
        let range = ContentRange { first: 5, last: 9, complete_len: Some(10) };
        assert_eq!(ContentRange::parse("bytes 5-9/10"), Some(range));
        assert_eq!(ContentRange::parse("bytes 5-9/*"), Some(ContentRange { complete_len: None, ..range }));
        for none in ["bytes */10", "bytes 9-5/10", "bytes 5-10/10", "bytes 5-9", "lines 5-9/10", "bytes +5-9/10"] {
            assert_eq!(ContentRange::parse(none), None, "{none}");
        }
    }
}
