//! The chunked transfer coding (RFC 9112 section 7.1), as a client decodes it.

/// Decodes a body that arrives in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunked {
    state: State,
    /// An incomplete line.
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Data(u64),
    EndOfData,
    Trailer,
    Done,
}

/// The body is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunks of the body are malformed")]
pub struct ChunkedError;

/// Maximum octets of a line: a size with extensions, or a trailer field.
const LINE_BYTES_MAX: usize = 4096;

impl Chunked {
    /// Returns whether the last chunk has arrived.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes the next octets and passes the content among them to `content`, piece by piece. Ignores octets after the
    /// body.
    ///
    /// # Errors
    /// If they are malformed.
    pub fn decode(&mut self, mut octets: &[u8], mut content: impl FnMut(&[u8])) -> Result<(), ChunkedError> {
        while !octets.is_empty() && self.state != State::Done {
            if let State::Data(left) = self.state {
                let take = octets.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let (now, later) = octets.split_at(take);
                content(now);
                octets = later;
                let left = left - take as u64;
                self.state = if left == 0 { State::EndOfData } else { State::Data(left) };
            } else if let Some(line) = self.take_line(&mut octets)? {
                self.state = self.state.after_line(&line)?;
            }
        }
        Ok(())
    }

    /// Returns the next line with its end, or `None` until it is complete.
    fn take_line(&mut self, octets: &mut &[u8]) -> Result<Option<Vec<u8>>, ChunkedError> {
        let end = octets.iter().position(|octet| *octet == b'\n');
        let (now, later) = octets.split_at(end.map_or(octets.len(), |end| end + 1));
        self.line.extend_from_slice(now);
        *octets = later;
        if self.line.len() > LINE_BYTES_MAX {
            return Err(ChunkedError);
        }
        if end.is_none() {
            return Ok(None);
        }
        Ok(Some(core::mem::take(&mut self.line)))
    }
}

impl State {
    fn after_line(self, line: &[u8]) -> Result<Self, ChunkedError> {
        match self {
            // The parser takes a line without digits for the last chunk: a truncated body would seem complete.
            Self::Size if !line[0].is_ascii_hexdigit() => Err(ChunkedError),
            Self::Size => match httparse::parse_chunk_size(line) {
                Ok(httparse::Status::Complete((_, 0))) => Ok(Self::Trailer),
                Ok(httparse::Status::Complete((_, size))) => Ok(Self::Data(size)),
                Ok(httparse::Status::Partial) | Err(_) => Err(ChunkedError),
            },
            Self::EndOfData if is_blank(line) => Ok(Self::Size),
            Self::Trailer if is_blank(line) => Ok(Self::Done),
            Self::Trailer => Ok(Self::Trailer),
            Self::EndOfData | Self::Data(_) | Self::Done => Err(ChunkedError),
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    matches!(line, b"\r\n" | b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"4\r\nWiki\r\nB;x=y\r\npedia in \r\n\r\n2\r\nch\r\n0\r\nTrailer: x\r\n\r\nrest";

    fn decode(pieces: impl Iterator<Item = &'static [u8]>) -> Result<(Vec<u8>, bool), ChunkedError> {
        let (mut chunked, mut content) = (Chunked::default(), Vec::new());
        for piece in pieces {
            chunked.decode(piece, |octets| content.extend_from_slice(octets))?;
        }
        Ok((content, chunked.is_done()))
    }

    #[test]
    fn pieces_of_any_size() {
        let whole = (b"Wikipedia in \r\nch".to_vec(), true);
        for size in [1, 2, 3, 7, 1000] {
            assert_eq!(decode(BODY.chunks(size)), Ok(whole.clone()), "{size}");
        }
    }

    #[test]
    fn a_cut_is_not_an_end() {
        assert_eq!(decode([&BODY[..40]].into_iter()).map(|(_, done)| done), Ok(false));
    }

    #[test]
    fn malformed_sizes() {
        for body in [&b"x\r\n"[..], b"-4\r\nWiki", b"\r\n", b"4\r\nWikix\r\n", b"11111111111111111\r\n"] {
            assert_eq!(decode([body].into_iter()), Err(ChunkedError), "{body:?}");
        }
        let endless: &'static [u8] = &[b'1'; 5000];
        assert_eq!(decode([endless].into_iter()), Err(ChunkedError));
    }
}
