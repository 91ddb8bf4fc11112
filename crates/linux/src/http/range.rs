//! Byte ranges (RFC 9110 section 14).

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// From the first to the second octet, both included.
    FromTo(u64, u64),
    /// From an octet to the end.
    From(u64),
    /// So many octets at the end.
    Last(u64),
}

/// The part is not in the file: status 416.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeError;

impl Range {
    /// Reads the value of a Range field. `None` where the whole file is the right answer: another unit, several
    /// ranges, or no range at all (RFC 9110 section 14.2 lets servers ignore the field).
    pub fn parse(text: &str) -> Option<Result<Self, RangeError>> {
        let spec = text.strip_prefix("bytes=")?;
        let (first, last) = spec.split_once('-').filter(|_| !spec.contains(','))?;
        let number = |digits: &str| digits.trim().parse::<u64>().ok();
        match (first.trim(), last.trim()) {
            ("", last) => Some(Ok(Self::Last(number(last)?))),
            (first, "") => Some(Ok(Self::From(number(first)?))),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                Some(if first <= last { Ok(Self::FromTo(first, last)) } else { Err(RangeError) })
            }
        }
    }

    /// Position and number of the octets, in a file of `len`.
    ///
    /// # Errors
    /// If none of them exists.
    pub fn within(self, len: u64) -> Result<(u64, u64), RangeError> {
        let (first, end) = match self {
            Self::FromTo(first, last) => (first, len.min(last.saturating_add(1))),
            Self::From(first) => (first, len),
            Self::Last(count) => (len.saturating_sub(count), len),
        };
        if first < end { Ok((first, end - first)) } else { Err(RangeError) }
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
    }

    #[test]
    fn parts_outside_and_other_units() {
        assert_eq!(within("bytes=10-", 10), Some(Err(RangeError)));
        assert_eq!(within("bytes=-0", 10), Some(Err(RangeError)));
        assert_eq!(within("bytes=5-4", 10), Some(Err(RangeError)));
        for ignored in ["lines=1-2", "bytes=1-2,4-5", "bytes=x-", "bytes=", "bytes=-"] {
            assert_eq!(within(ignored, 10), None, "{ignored}");
        }
    }
}
