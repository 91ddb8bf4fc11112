//! Finds the end of an HTTP/1.1 body (RFC 9112 sections 6 and 7), and passes the body on as it is, or without its
//! chunks.

use linux::http::{Chunked, ChunkedError};

/// The part of a body that is still to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// This many octets.
    Length(u64),
    /// Chunks.
    Chunked(Chunked),
    /// Everything until the connection ends.
    UntilClose,
}

impl Framing {
    /// No body, or nothing left of it.
    pub const NONE: Self = Self::Length(0);

    /// Chunks, from the start.
    pub fn chunked() -> Self {
        Self::Chunked(Chunked::default())
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.is_done(),
            Self::UntilClose => false,
        }
    }

    /// Returns how many of the next octets belong to the body.
    ///
    /// # Errors
    /// If the chunks are malformed.
    pub fn pass(&mut self, octets: &[u8]) -> Result<usize, ChunkedError> {
        match self {
            Self::Length(left) => {
                let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(octets.len());
                *left -= passed as u64;
                Ok(passed)
            }
            Self::Chunked(chunks) => chunks.pass(octets, |_| {}),
            Self::UntilClose => Ok(octets.len()),
        }
    }

    /// As [`Self::pass`], and appends the content to `content`, without chunk framing (RFC 9112 section 7.1.3).
    ///
    /// # Errors
    /// If the chunks are malformed.
    pub fn take_content(&mut self, octets: &[u8], content: &mut Vec<u8>) -> Result<usize, ChunkedError> {
        if let Self::Chunked(chunks) = self {
            return chunks.pass(octets, |data| content.extend_from_slice(data));
        }
        let passed = self.pass(octets)?;
        content.extend_from_slice(&octets[..passed]);
        Ok(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"4\r\nWiki\r\n0\r\nTrailer: x\r\n\r\n";

    #[test]
    fn chunks_are_passed_on_or_taken_off() {
        let body = [BODY, b"rest"].concat();
        let (mut framing, mut content) = (Framing::chunked(), Vec::new());
        assert_eq!((framing.pass(&body[..5]), framing.is_done()), (Ok(5), false));
        assert_eq!((framing.pass(&body[5..]), framing.is_done()), (Ok(BODY.len() - 5), true));
        assert_eq!(Framing::chunked().take_content(&body, &mut content), Ok(BODY.len()));
        assert_eq!(Framing::Length(2).take_content(b"abc", &mut content), Ok(2));
        assert_eq!(Framing::UntilClose.take_content(b"cd", &mut content), Ok(2));
        assert_eq!(content, b"Wikiabcd");
        assert_eq!(Framing::chunked().take_content(b"x\r\n", &mut content), Err(ChunkedError));
        assert_eq!(Framing::chunked().pass(b"x\r\n"), Err(ChunkedError));
    }

    #[test]
    fn lengths_end_where_they_say() {
        let mut framing = Framing::Length(5);
        assert_eq!((framing.pass(b"abc"), framing.is_done()), (Ok(3), false));
        assert_eq!((framing.pass(b"defg"), framing.is_done()), (Ok(2), true));
        assert_eq!((Framing::UntilClose.pass(b"abc"), Framing::UntilClose.is_done()), (Ok(3), false));
        assert!(Framing::NONE.is_done());
    }
}
