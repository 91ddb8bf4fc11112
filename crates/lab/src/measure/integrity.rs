//! Checks whether what arrived is what was sent: octet for octet in every run, and by SHA-256 where the digest is
//! shown.

use sha2::{Digest, Sha256};
use simulator::Source;
use wire::Payload;

/// Largest number of a pattern's octets to generate at once.
const CHUNK_BYTES: usize = 1 << 16;

/// The data sent, and the data that arrived.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The octets of every stream.
    pub source: Source,
    /// By stream: the number of octets that should have arrived, and those that did, in order.
    pub streams: Vec<(u64, Vec<Payload>)>,
}

impl Delivery {
    /// Returns whether exactly the expected octets arrived. A pattern is compared with a pattern without computing its
    /// octets.
    pub fn is_intact(&self) -> bool {
        self.streams.iter().all(|(len, pieces)| octets(pieces) == *len) && self.is_beginning()
    }

    /// Returns whether what arrived of each stream is a prefix of it.
    pub fn is_beginning(&self) -> bool {
        self.streams.iter().all(|(_, pieces)| {
            let mut offset = 0;
            pieces.iter().all(|piece| {
                let begin = offset;
                offset += piece.len() as u64;
                matches(&self.source, begin, piece)
            })
        })
    }

    /// SHA-256, in hexadecimal, of all that should have arrived, one stream after the other.
    pub fn sha256_of_source(&self) -> String {
        let mut digest = Sha256::new();
        self.streams.iter().for_each(|(len, _)| update_from(&mut digest, &self.source, *len));
        hexadecimal(digest)
    }

    /// SHA-256, in hexadecimal, of all that arrived, one stream after the other.
    pub fn sha256_of_received(&self) -> String {
        let mut digest = Sha256::new();
        self.streams.iter().flat_map(|(_, pieces)| pieces).for_each(|piece| update(&mut digest, piece));
        hexadecimal(digest)
    }
}

fn octets(pieces: &[Payload]) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

/// Like [`Source::matches`], but in pieces, which need little memory where octets must be generated.
fn matches(source: &Source, offset: u64, piece: &Payload) -> bool {
    if offset + piece.len() as u64 > source.len() {
        return false;
    }
    let is_pattern = matches!((source, piece), (Source::Pattern { .. }, Payload::Pattern(_)));
    if is_pattern && source.slice(offset, piece.sequence_len()) == *piece {
        return true;
    }
    in_chunks(piece).all(|(at, chunk)| source.matches(offset + at, &chunk))
}

/// Cuts a piece into chunks, each with its offset.
fn in_chunks(piece: &Payload) -> impl Iterator<Item = (u64, Payload)> + '_ {
    let starts = (0..piece.len()).step_by(CHUNK_BYTES);
    starts.map(|start| (start as u64, piece.slice(start..piece.len().min(start + CHUNK_BYTES))))
}

fn update(digest: &mut Sha256, piece: &Payload) {
    in_chunks(piece).for_each(|(_, chunk)| digest.update(chunk.to_bytes()));
}

fn update_from(digest: &mut Sha256, source: &Source, len: u64) {
    let mut offset = 0;
    while offset < len {
        let piece = source.slice(offset, (len - offset).min(CHUNK_BYTES as u64) as u32);
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        update(digest, &piece);
    }
}

pub(crate) fn hexadecimal(digest: Sha256) -> String {
    digest.finalize().iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// First example of FIPS 180-2.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn delivery(source: Source, len: u64, pieces: &[Payload]) -> Delivery {
        Delivery { source, streams: vec![(len, pieces.to_vec())] }
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        let pieces = [Payload::from(b"a".to_vec()), Payload::from(b"bc".to_vec())];
        let abc = delivery(Source::Bytes(Bytes::from_static(b"abcdef")), 3, &pieces);
        assert_eq!((abc.sha256_of_source(), abc.sha256_of_received()), (ABC.into(), ABC.into()));
        let none = (0, Vec::new());
        let three = Delivery { streams: vec![none.clone(), abc.streams[0].clone(), none], ..abc };
        assert_eq!((three.sha256_of_source(), three.sha256_of_received()), (ABC.into(), ABC.into()));
    }

    #[test]
    fn a_pattern_is_the_same_however_it_is_cut_and_as_octets() {
        let source = Source::pattern(200_000);
        let pieces = [source.slice(0, 70_001), source.slice(70_001, 129_999)];
        let octets: Vec<Payload> = pieces.iter().map(|piece| Payload::Bytes(piece.to_bytes())).collect();
        for pieces in [&pieces[..], &octets] {
            let whole = delivery(source.clone(), 200_000, pieces);
            assert!(whole.is_intact());
            assert_eq!(whole.sha256_of_source(), whole.sha256_of_received());
            let shorter = delivery(source.clone(), 199_999, pieces);
            assert!(!shorter.is_intact());
            assert_ne!(shorter.sha256_of_source(), shorter.sha256_of_received());
        }
    }

    #[test]
    fn what_is_missing_wrong_or_too_much_is_found() {
        let source = Source::pattern(100_000);
        let cut = delivery(source.clone(), 100_000, &[source.slice(0, 70_000)]);
        assert!(!cut.is_intact() && cut.is_beginning());
        for wrong in [
            vec![source.slice(1, 99_999)],
            vec![source.slice(0, 50_000), source.slice(50_001, 49_999)],
            vec![Payload::Bytes(vec![0; 100_000].into())],
            vec![Source::Pattern { stream: 2, len: 100_000 }.slice(0, 100_000)],
            vec![Source::endless().slice(0, 100_001)],
        ] {
            let len = octets(&wrong);
            let wrong = delivery(source.clone(), len, &wrong);
            assert!(!wrong.is_intact() && !wrong.is_beginning(), "{wrong:?}");
        }
        let mut octets = source.slice(0, 100_000).to_bytes().to_vec();
        octets[99_999] ^= 1;
        assert!(!delivery(source, 100_000, &[Payload::Bytes(octets.into())]).is_beginning());
    }
}
