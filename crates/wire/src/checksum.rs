//! The Internet checksum (RFC 1071), for IP and TCP headers and for MPTCP data (RFC 8684 section 3.3.1).
//!
//! The ones' complement sum of 16-bit words does not depend on the order of its parts. It does not depend on the byte
//! order of the machine either, if the result is swapped back (RFC 1071 section 2). So [`Sum`] adds native words, in
//! 64-bit lanes, and accepts pieces of data wherever they lie.

use units::Dsn;
use units::narrow::u16_from;

use crate::Payload;

/// A partial ones' complement sum over a sequence of octets that may arrive in pieces of any length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Sum of native 16-bit words, not folded yet; below 2^33 between calls.
    words: u64,
    /// Whether an odd number of octets was added, so that the next one is the second half of a word.
    odd: bool,
}

impl Sum {
    /// Creates the empty sum.
    pub const fn new() -> Self {
        Self { words: 0, odd: false }
    }

    /// Returns the sum over `octets`.
    pub fn of(octets: &[u8]) -> Self {
        Self { words: sum_words(octets), odd: octets.len() % 2 == 1 }
    }

    /// Adds the octets that follow.
    pub fn add(&mut self, octets: &[u8]) {
        self.append(Self::of(octets));
    }

    /// Adds the octets of `payload`, which follow. A pattern is computed, never stored.
    pub fn add_payload(&mut self, payload: &Payload) {
        payload.for_each_piece(|octets| self.add(octets));
    }

    /// Adds the sum over the octets that follow. That sum may have been computed elsewhere or earlier.
    pub fn append(&mut self, next: Self) {
        // After an odd number of octets, the high and low halves of the following words are swapped.
        let next_words = if self.odd { u64::from(fold(next.words).swap_bytes()) } else { next.words };
        self.words = carry(self.words + next_words);
        self.odd ^= next.odd;
    }

    /// Returns the sum itself in 16 bits, as the TCP checksum field holds it when a device completes the checksum.
    pub fn folded(self) -> u16 {
        u16::from_be(fold(self.words))
    }

    /// Returns the checksum: the complement of the sum.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// Returns whether octets that include their own checksum are intact.
    pub fn is_valid(self) -> bool {
        self.folded() == 0xffff
    }
}

/// Sums native 16-bit words, the last one padded with a zero octet; the result is below 2^33.
fn sum_words(octets: &[u8]) -> u64 {
    let mut lanes = [0_u64; 8];
    let blocks = octets.chunks_exact(32);
    let mut rest = blocks.remainder();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(4)) {
            *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    let mut sum: u64 = lanes.into_iter().map(carry).sum();
    while let Some((word, after)) = rest.split_first_chunk::<2>() {
        sum += u64::from(u16::from_ne_bytes(*word));
        rest = after;
    }
    if let [last] = rest {
        sum += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    carry(sum)
}

/// Folds the upper half into the lower: the end-around carry, for 32 bits at once.
const fn carry(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}

fn fold(sum: u64) -> u16 {
    let sum = carry(carry(sum));
    let sum = (sum & 0xffff) + (sum >> 16);
    // Twice, because the first carry may cause another. All that is above 16 bits has been carried by then.
    u16_from((sum & 0xffff) + (sum >> 16))
}

/// Computes the checksum of a data sequence mapping: over its pseudo-header (RFC 8684 section 3.3.1, figure 10) and the
/// data.
///
/// `dsn` is the whole 64-bit number, even if the option carries only the low 32 bits. `len` is the Data-Level Length as
/// sent; it includes a DATA_FIN, which has no octet in `data`. `data` are the mapped octets in order, in pieces of any
/// length.
pub fn dss_checksum<'a>(dsn: Dsn, ssn: u32, len: u16, data: impl IntoIterator<Item = &'a Payload>) -> u16 {
    dss_sum(dsn, ssn, len, data).checksum()
}

/// Returns whether `received`, the checksum of a mapping, is right. The other arguments are those of [`dss_checksum`].
/// (Comparing checksums is not enough: ones' complement has two zeros.)
pub fn dss_checksum_is_valid<'a>(
    received: u16,
    dsn: Dsn,
    ssn: u32,
    len: u16,
    data: impl IntoIterator<Item = &'a Payload>,
) -> bool {
    dss_checksum_error(received, dsn, ssn, len, data) == 0
}

/// Returns the ones' complement difference between `received` and the right checksum: 0 if `received` is right. It is
/// what the sum behind `received` lacks. The other arguments are those of [`dss_checksum`].
pub fn dss_checksum_error<'a>(
    received: u16,
    dsn: Dsn,
    ssn: u32,
    len: u16,
    data: impl IntoIterator<Item = &'a Payload>,
) -> u16 {
    let mut sum = Sum::of(&received.to_be_bytes());
    sum.append(dss_sum(dsn, ssn, len, data));
    sum.checksum()
}

fn dss_sum<'a>(dsn: Dsn, ssn: u32, len: u16, data: impl IntoIterator<Item = &'a Payload>) -> Sum {
    let mut sum = Sum::new();
    sum.add(&dsn.0.to_be_bytes());
    sum.add(&ssn.to_be_bytes());
    sum.add(&len.to_be_bytes());
    for piece in data {
        sum.add_payload(piece);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pattern;

    #[test]
    fn rfc_1071_section_3_example() {
        let sum = Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), 0xddf2);
        assert_eq!(sum.checksum(), 0x220d);
    }

    #[test]
    fn odd_pieces_are_joined_within_words() {
        // 0x0102 + 0x0304 + 0x0500 = 0x0906.
        let octets = [1, 2, 3, 4, 5];
        for cut in 0..=octets.len() {
            let mut sum = Sum::of(&octets[..cut]);
            sum.add(&octets[cut..]);
            assert_eq!(sum.folded(), 0x0906, "cut at {cut}");
        }
        let mut single = Sum::new();
        octets.iter().for_each(|octet| single.add(&[*octet]));
        assert_eq!(single.folded(), 0x0906);
    }

    #[test]
    fn long_runs_of_ones_do_not_overflow() {
        assert_eq!(Sum::of(&vec![0xff; 1 << 20]).folded(), 0xffff);
        // 2^19 + 1 words of 1: 0x80001 = 8 * 2^16 + 1, which folds to 9.
        assert_eq!(Sum::of(&[0, 1].repeat((1 << 19) + 1)).folded(), 9);
    }

    #[test]
    fn every_length_up_to_two_blocks() {
        // Octets 0, 1, 0, 1, ...: each whole word adds 1, a lone zero octet adds nothing.
        let octets = [0, 1].repeat(40);
        for len in 0..octets.len() {
            assert_eq!(usize::from(Sum::of(&octets[..len]).folded()), len / 2, "{len} octets");
        }
    }

    #[test]
    fn dss_checksum_by_hand() {
        // Pseudo-header words: 0001 0002 0003 0004 | 0000 0001 | 0003 (length 3) and data a1b2 c3(00).
        // 1 + 2 + 3 + 4 + 0 + 1 + 3 = 0x0e; 0x0e + 0xa1b2 + 0xc300 = 0x164c0 -> 0x64c1; complement 0x9b3e.
        let data = [Payload::from(vec![0xa1]), Payload::Empty, Payload::from(vec![0xb2, 0xc3])];
        let dsn = Dsn(0x0001_0002_0003_0004);
        assert_eq!(dss_checksum(dsn, 1, 3, &data), 0x9b3e);
        assert!(dss_checksum_is_valid(0x9b3e, dsn, 1, 3, &data));
        assert!(!dss_checksum_is_valid(0x9b3f, dsn, 1, 3, &data));
        assert!(!dss_checksum_is_valid(0x9b3e, Dsn(0x0002_0002_0003_0004), 1, 3, &data));
    }

    #[test]
    fn both_zeros_of_ones_complement_are_valid() {
        // DSN 0, SSN 0, length 0xffff: the sum is 0xffff, so its checksum is 0; the sender may write 0xffff as well.
        assert_eq!(dss_checksum(Dsn(0), 0, 0xffff, []), 0);
        assert!(dss_checksum_is_valid(0, Dsn(0), 0, 0xffff, []));
        assert!(dss_checksum_is_valid(0xffff, Dsn(0), 0, 0xffff, []));
    }

    #[test]
    fn a_pattern_sums_as_its_octets_do() {
        let pattern = Payload::Pattern(Pattern { stream: 9, offset: 13, len: 10_001 });
        let mut computed = Sum::new();
        computed.add_payload(&pattern);
        assert_eq!(computed.folded(), Sum::of(&pattern.to_bytes()).folded());
        assert!(computed.odd);
    }
}
