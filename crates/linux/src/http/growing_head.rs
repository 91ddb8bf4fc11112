//! The head of a request or answer, as it arrives. Sans-IO.

/// When to parse a head that is incomplete. Each parse starts at its beginning, and the other end may send one octet at a
/// time. So it is parsed only when it may be complete, and each time that it has doubled: if it is no head, nobody need
/// wait for its end.
#[derive(Debug, Default)]
pub struct Pace {
    /// Size from which on it is parsed, complete or not.
    read_from: usize,
    /// Octets in which its end was looked for.
    searched: usize,
}

impl Pace {
    /// Notes that `octets` were parsed and are incomplete. `most`: the size at which a head is too long.
    pub fn note_parsed(&mut self, octets: &[u8], most: usize) {
        *self = Self { read_from: (2 * octets.len()).min(most), searched: octets.len() };
    }

    /// Returns the size from which on it is parsed, complete or not, octets.
    pub const fn read_from(&self) -> usize {
        self.read_from
    }

    /// Returns whether it is time to parse `octets`: those from before, and further ones.
    pub fn is_due(&mut self, octets: &[u8]) -> bool {
        let end_from = self.searched.saturating_sub(END_BYTES_MAX - 1);
        self.searched = octets.len();
        octets.len() >= self.read_from || octets.get(end_from..).is_some_and(has_end)
    }
}

/// The incomplete head of an answer.
#[derive(Debug, Default)]
pub struct GrowingHead {
    octets: Vec<u8>,
    pace: Pace,
}

impl GrowingHead {
    /// A head that was parsed and is incomplete. `most`: the size at which it is too long.
    pub fn read(octets: Vec<u8>, most: usize) -> Self {
        let mut pace = Pace::default();
        pace.note_parsed(&octets, most);
        Self { octets, pace }
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Appends octets. Returns all octets if it is time to parse them.
    pub fn push(&mut self, octets: &[u8]) -> Option<Vec<u8>> {
        self.octets.extend_from_slice(octets);
        self.pace.is_due(&self.octets).then(|| core::mem::take(&mut self.octets))
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

    const MOST: usize = 256 << 10;

    /// How often a head is parsed that arrives in pieces of `piece` octets.
    fn reads(head: &[u8], piece: usize) -> usize {
        let mut head_so_far = GrowingHead::default();
        let mut reads = 0;
        for octets in head.chunks(piece) {
            if let Some(all) = head_so_far.push(octets) {
                reads += 1;
                assert!(head.starts_with(&all));
                head_so_far = GrowingHead::read(all, MOST);
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
                let mut head_so_far = GrowingHead::read(head.as_bytes()[..cut].to_vec(), MOST);
                head_so_far.pace.read_from = usize::MAX;
                assert_eq!(head_so_far.push(&head.as_bytes()[cut..]).as_deref(), Some(head.as_bytes()), "{cut}");
            }
        }
    }
}
