//! The chunked transfer coding (RFC 9112 section 7.1), as a recipient decodes it.

/// Maximum octets of a chunk's size line.
const LINE_BYTES_MAX: usize = 4096;
/// Maximum octets of a whole trailer.
const TRAILER_BYTES_MAX: usize = 16 << 10;

/// The body does not consist of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunks of the body are malformed")]
pub struct ChunkedError;

/// Progress within a chunked body that arrives in pieces. Strict: if two programs disagree on where it ends, each takes
/// the other's octets for a message (RFC 9112 section 11.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunked {
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

impl Chunked {
    /// Returns whether the body is complete.
    pub fn is_done(&self) -> bool {
        self.place == Place::Done
    }

    /// Returns how many of the next octets belong to the body. Passes their content to `data`, piece by piece.
    ///
    /// # Errors
    /// If they are malformed.
    pub fn pass(&mut self, octets: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, ChunkedError> {
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
    fn step(&mut self, octet: u8) -> Result<Place, ChunkedError> {
        use Place::*;
        self.read += 1;
        let in_trailer = matches!(self.place, TrailerStart | TrailerField | TrailerFieldEnd | TrailerEnd);
        if self.read > if in_trailer { TRAILER_BYTES_MAX } else { LINE_BYTES_MAX } {
            return Err(ChunkedError);
        }
        Ok(match (self.place, octet) {
            (SizeStart, _) => Size(digit(octet)?),
            (Size(size), b'\r') | (Extension(size), b'\r') => SizeEnd(size),
            (Size(size), b';' | b' ' | b'\t') => Extension(size),
            (Size(size), _) => {
                Size(size.checked_mul(16).and_then(|size| size.checked_add(digit(octet).ok()?)).ok_or(ChunkedError)?)
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
            _ => return Err(ChunkedError),
        })
    }

    fn at_line_start(&mut self, place: Place) -> Place {
        self.read = 0;
        place
    }
}

fn digit(octet: u8) -> Result<u64, ChunkedError> {
    char::from(octet).to_digit(16).map(u64::from).ok_or(ChunkedError)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] = b"4\r\nWiki\r\nb;x=\"y\"\r\npedia in \r\n\r\n02\r\nch\r\n0\r\nTrailer: x\r\n\r\n";

    /// Returns the content, the octets of the body, and whether it is complete, for octets that arrive in such pieces.
    fn passed(octets: &[u8], sizes: impl Iterator<Item = usize>) -> Result<(Vec<u8>, usize, bool), ChunkedError> {
        let (mut chunked, mut content, mut at) = (Chunked::default(), Vec::new(), 0);
        for size in sizes {
            let end = (at + size).min(octets.len());
            let passed = chunked.pass(&octets[at..end], |data| content.extend_from_slice(data))?;
            let is_all = passed == end - at;
            at += passed;
            if !is_all || at == octets.len() {
                break;
            }
        }
        Ok((content, at, chunked.is_done()))
    }

    #[test]
    fn pieces_of_any_size() {
        let body = [BODY, b"GET /next"].concat();
        for size in 1..=body.len() {
            let whole = (b"Wikipedia in \r\nch".to_vec(), BODY.len(), true);
            assert_eq!(passed(&body, core::iter::repeat(size)), Ok(whole), "{size}");
        }
    }

    #[test]
    fn a_cut_is_not_an_end() {
        for cut in 0..BODY.len() {
            assert!(!passed(&BODY[..cut], core::iter::once(cut)).unwrap().2, "{cut}");
        }
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
            assert_eq!(passed(body, core::iter::once(body.len())), Err(ChunkedError), "{body:?}");
        }
        for endless in
            [[b"1;".to_vec(), vec![b'x'; 5000]].concat(), [b"0\r\n".to_vec(), b"a: b\r\n".repeat(5000)].concat()]
        {
            assert_eq!(passed(&endless, core::iter::once(endless.len())), Err(ChunkedError));
        }
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(octets in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let body = [BODY, &octets].concat();
            let cut = cut.min(body.len());
            let whole = passed(&body, core::iter::once(body.len()));
            prop_assert_eq!(passed(&body, [cut.max(1), body.len()].into_iter()), whole);
            let _ = passed(&octets, core::iter::once(octets.len()));
        }
    }
}
