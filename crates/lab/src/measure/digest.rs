//! SHA-256 of what was sent and of what arrived, over the octets themselves.

use sha2::{Digest, Sha256};
use simulator::Source;
use wire::Payload;

/// Octets of a pattern that are made at once.
const CHUNK_BYTES: u32 = 1 << 16;

/// A digest of octets as they come.
#[derive(Clone, Debug, Default)]
pub struct Running(Sha256);

impl Running {
    /// Adds the octets of `piece`.
    pub fn update(&mut self, piece: &Payload) {
        let mut rest = piece.clone();
        while !rest.is_empty() {
            let len = rest.len().min(CHUNK_BYTES as usize);
            self.0.update(rest.split_to(len).to_bytes());
        }
    }

    /// The digest in hexadecimal.
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|octet| format!("{octet:02x}")).collect()
    }
}

/// Digest of the first octets of `source`, as many as each of `lens` says, one after the other, in hexadecimal.
pub fn of_source(source: &Source, lens: &[u64]) -> String {
    let mut digest = Running::default();
    lens.iter().for_each(|len| update_from(&mut digest, source, *len));
    digest.finish()
}

fn update_from(digest: &mut Running, source: &Source, len: u64) {
    let mut offset = 0;
    while offset < len {
        let piece = source.slice(offset, CHUNK_BYTES.min((len - offset).min(u64::from(u32::MAX)) as u32));
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        digest.update(&piece);
    }
}

/// Digest of `pieces` one after the other, in hexadecimal.
pub fn of_pieces<'a>(pieces: impl IntoIterator<Item = &'a Payload>) -> String {
    let mut digest = Running::default();
    pieces.into_iter().for_each(|piece| digest.update(piece));
    digest.finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// FIPS 180-2's first example.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(of_source(&Source::Bytes(Bytes::from_static(b"abcdef")), &[3]), ABC);
        assert_eq!(of_source(&Source::Bytes(Bytes::from_static(b"abc")), &[0, 3, 0]), ABC);
        assert_eq!(of_pieces(&[Payload::from(b"a".to_vec()), Payload::from(b"bc".to_vec())]), ABC);
    }

    #[test]
    fn a_pattern_has_one_digest_however_it_is_cut() {
        let source = Source::pattern(200_000);
        let pieces = [source.slice(0, 70_001), source.slice(70_001, 129_999)];
        assert_eq!(of_source(&source, &[200_000]), of_pieces(&pieces));
        assert_ne!(of_source(&source, &[199_999]), of_pieces(&pieces));
    }
}
