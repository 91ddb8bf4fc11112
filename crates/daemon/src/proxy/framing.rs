//! Finds the end of an HTTP/1.1 body (RFC 9112 sections 6 and 7), and passes the body on as it is, or without its
//! chunks.

/// Maximum octets of a chunk's size line, or of a trailer field.
const LINE_BYTES_MAX: usize = 4096;
/// Maximum octets of a whole trailer.
const TRAILER_BYTES_MAX: usize = 16 << 10;

/// The part of a body that is still to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// This many octets.
    Length(u64),
    /// Chunks.
    Chunked(Chunks),
    /// Everything until the connection ends.
    UntilClose,
}

/// The body does not consist of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunks of the body are malformed")]
pub struct Malformed;

/// Progress within a chunked body. Strict: if two programs disagree on where it ends, each takes the other's octets for
/// a request (RFC 9112 section 11.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    place: Place,
    /// Octets of the current line, or of the trailer.
    read: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    SizeStart,
    Size(u64),
    Extension(u64),
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    TrailerStart,
    TrailerField,
    TrailerFieldEnd,
    TrailerEnd,
    Done,
}

impl Framing {
    /// No body, or nothing left of it.
    pub const NONE: Self = Self::Length(0);

    /// Chunks, from the start.
    pub fn chunked() -> Self {
        Self::Chunked(Chunks::default())
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.place == Place::Done,
            Self::UntilClose => false,
        }
    }

    /// Returns how many of the next octets belong to the body.
    ///
    /// # Errors
    /// If the chunks are malformed.
    pub fn pass(&mut self, octets: &[u8]) -> Result<usize, Malformed> {
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
    pub fn take_content(&mut self, octets: &[u8], content: &mut Vec<u8>) -> Result<usize, Malformed> {
        if let Self::Chunked(chunks) = self {
            return chunks.pass(octets, |data| content.extend_from_slice(data));
        }
        let passed = self.pass(octets)?;
        content.extend_from_slice(&octets[..passed]);
        Ok(passed)
    }
}

impl Chunks {
    /// Returns how many of the next octets belong to the body. Passes their content to `data`, piece by piece.
    fn pass(&mut self, octets: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < octets.len() && self.place != Place::Done {
            if let Place::Data(left) = self.place {
                let passed = usize::try_from(left).unwrap_or(usize::MAX).min(octets.len() - at);
                data(&octets[at..at + passed]);
                at += passed;
                let left = left - passed as u64;
                self.place = if left == 0 { Place::DataCr } else { Place::Data(left) };
            } else {
                self.place = self.step(octets[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// Returns the place after one octet that is not data.
    fn step(&mut self, octet: u8) -> Result<Place, Malformed> {
        use Place::*;
        self.read += 1;
        let in_trailer = matches!(self.place, TrailerStart | TrailerField | TrailerFieldEnd | TrailerEnd);
        if self.read > if in_trailer { TRAILER_BYTES_MAX } else { LINE_BYTES_MAX } {
            return Err(Malformed);
        }
        Ok(match (self.place, octet) {
            (SizeStart, _) => Size(digit(octet)?),
            (Size(size), b'\r') | (Extension(size), b'\r') => SizeEnd(size),
            (Size(size), b';' | b' ' | b'\t') => Extension(size),
            (Size(size), _) => {
                Size(size.checked_mul(16).and_then(|size| size.checked_add(digit(octet).ok()?)).ok_or(Malformed)?)
            }
            (Extension(size), b'\t' | b' '..=b'~' | 0x80..) => Extension(size),
            (SizeEnd(0), b'\n') => self.at_line_start(TrailerStart),
            (SizeEnd(size), b'\n') => self.at_line_start(Data(size)),
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => self.at_line_start(SizeStart),
            (TrailerStart, b'\r') => TrailerEnd,
            (TrailerField, b'\r') => TrailerFieldEnd,
            (TrailerStart | TrailerField, b'\t' | b' '..=b'~' | 0x80..) => TrailerField,
            (TrailerFieldEnd, b'\n') => TrailerStart,
            (TrailerEnd, b'\n') => Done,
            _ => return Err(Malformed),
        })
    }

    fn at_line_start(&mut self, place: Place) -> Place {
        self.read = 0;
        place
    }
}

fn digit(octet: u8) -> Result<u64, Malformed> {
    char::from(octet).to_digit(16).map(u64::from).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] = b"4\r\nWiki\r\nb;x=\"y\"\r\npedia in \r\n\r\n02\r\nch\r\n0\r\nTrailer: x\r\n\r\n";

    fn passed(octets: &[u8], sizes: impl Iterator<Item = usize>) -> Result<(usize, bool), Malformed> {
        let (mut framing, mut at) = (Framing::chunked(), 0);
        for size in sizes {
            let end = (at + size).min(octets.len());
            let passed = framing.pass(&octets[at..end])?;
            let is_all = passed == end - at;
            at += passed;
            if !is_all || at == octets.len() {
                break;
            }
        }
        Ok((at, framing.is_done()))
    }

    #[test]
    fn the_end_of_chunks_is_found_in_pieces_of_any_size() {
        let body = [BODY, b"GET /next"].concat();
        for size in [1, 2, 3, 7, 1000] {
            assert_eq!(passed(&body, core::iter::repeat(size)), Ok((BODY.len(), true)), "{size}");
        }
        for cut in 0..BODY.len() {
            assert!(!passed(&BODY[..cut], core::iter::once(cut)).unwrap().1, "{cut}");
        }
    }

    #[test]
    fn chunks_are_taken_off_in_pieces_of_any_size() {
        let body = [BODY, b"rest"].concat();
        for size in 1..=body.len() {
            let (mut framing, mut content) = (Framing::chunked(), Vec::new());
            let passed: usize = body.chunks(size).map(|piece| framing.take_content(piece, &mut content).unwrap()).sum();
            assert_eq!((passed, framing.is_done()), (BODY.len(), true), "{size}");
            assert_eq!(content, b"Wikipedia in \r\nch", "{size}");
        }
        let mut content = Vec::new();
        assert_eq!(Framing::Length(2).take_content(b"abc", &mut content), Ok(2));
        assert_eq!(Framing::UntilClose.take_content(b"cd", &mut content), Ok(2));
        assert_eq!(content, b"abcd");
        assert_eq!(Framing::chunked().take_content(b"x\r\n", &mut content), Err(Malformed));
    }

    #[test]
    fn malformed_chunks_are_refused() {
        for body in [
            &b"x\r\n"[..],
            b"-4\r\n",
            b"\r\n",
            b"4\nWiki",
            b"4\r\nWikix\r\n",
            b"4\r\nWiki\n",
            b"11111111111111111\r\n",
            b"4\rx",
            b"0\r\n\n",
            b"0\r\nA: b\n",
            b"4;\0",
            b"+4\r\n",
            b"0x4\r\n",
        ] {
            assert_eq!(passed(body, core::iter::once(body.len())), Err(Malformed), "{body:?}");
        }
        for endless in
            [[b"1;".to_vec(), vec![b'x'; 5000]].concat(), [b"0\r\n".to_vec(), b"a: b\r\n".repeat(5000)].concat()]
        {
            assert_eq!(passed(&endless, core::iter::once(endless.len())), Err(Malformed));
        }
    }

    #[test]
    fn lengths_end_where_they_say() {
        let mut framing = Framing::Length(5);
        assert_eq!((framing.pass(b"abc"), framing.is_done()), (Ok(3), false));
        assert_eq!((framing.pass(b"defg"), framing.is_done()), (Ok(2), true));
        assert_eq!((Framing::UntilClose.pass(b"abc"), Framing::UntilClose.is_done()), (Ok(3), false));
        assert!(Framing::NONE.is_done());
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(octets in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let body = [BODY, &octets].concat();
            let cut = cut.min(body.len());
            let whole = passed(&body, core::iter::once(body.len()));
            prop_assert_eq!(passed(&body, [cut.max(1), body.len()].into_iter()), whole);
            let mut framing = Framing::chunked();
            let _ = framing.pass(&octets);
        }
    }
}
