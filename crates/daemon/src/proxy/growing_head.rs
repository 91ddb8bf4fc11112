//! The head of an answer, as it arrives. Sans-IO.

use super::head::ANSWER_HEAD_BYTES_MAX;

/// An incomplete head. Each parse starts at its beginning, and a server may send one octet at a time. So it is parsed
/// only when it may be complete, and each time that it has doubled.
#[derive(Debug, Default)]
pub struct GrowingHead {
    octets: Vec<u8>,
    /// Size from which on it is parsed, complete or not: if it is no head, the proxy need not wait for its end.
    read_from: usize,
}

impl GrowingHead {
    /// A head that was parsed and is incomplete.
    pub fn read(octets: Vec<u8>) -> Self {
        let read_from = (2 * octets.len()).min(ANSWER_HEAD_BYTES_MAX);
        Self { octets, read_from }
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Appends octets. Returns all octets if it is time to parse them.
    pub fn push(&mut self, octets: &[u8]) -> Option<Vec<u8>> {
        let end_from = self.octets.len().saturating_sub(END_BYTES_MAX - 1);
        self.octets.extend_from_slice(octets);
        let is_due = self.octets.len() >= self.read_from || has_end(&self.octets[end_from..]);
        is_due.then(|| core::mem::take(&mut self.octets))
    }
}

/// End of the last line plus an empty line; both may lack their carriage return.
const END_BYTES_MAX: usize = 3;

fn has_end(octets: &[u8]) -> bool {
    octets.windows(2).any(|pair| pair == b"\n\n") || octets.windows(END_BYTES_MAX).any(|three| three == b"\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a head is parsed that arrives in pieces of `piece` octets.
    fn reads(head: &[u8], piece: usize) -> usize {
        let mut head_so_far = GrowingHead::default();
        let mut reads = 0;
        for octets in head.chunks(piece) {
            if let Some(all) = head_so_far.push(octets) {
                reads += 1;
                assert!(head.starts_with(&all));
                head_so_far = GrowingHead::read(all);
            }
        }
        reads
    }

    #[test]
    fn a_head_that_comes_octet_by_octet_is_read_now_and_then() {
        let head = [b"HTTP/1.1 200 OK\r\n", &b"X: 1\r\n".repeat(10_000)[..], b"\r\n"].concat();
        assert_eq!(reads(&head, head.len()), 1);
        let octet_by_octet = reads(&head, 1);
        assert!((10..20).contains(&octet_by_octet), "{octet_by_octet}");
    }

    #[test]
    fn the_end_is_seen_wherever_it_is_cut() {
        for head in ["HTTP/1.1 200 OK\r\nA: 1\r\n\r\n", "HTTP/1.1 200 OK\nA: 1\n\n", "HTTP/1.1 200 OK\nA: 1\n\r\n"] {
            for cut in 1..head.len() {
                let mut head_so_far = GrowingHead::read(head.as_bytes()[..cut].to_vec());
                head_so_far.read_from = usize::MAX;
                assert_eq!(head_so_far.push(&head.as_bytes()[cut..]).as_deref(), Some(head.as_bytes()), "{cut}");
            }
        }
    }
}
