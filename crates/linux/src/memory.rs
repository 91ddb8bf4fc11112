//! Memory for packets that are read, in pieces of [`POOL_BYTES`] that payloads share.
//!
//! A piece is reused from its start once no payload holds a part of it: it is then still in the cache, and the kernel
//! need not find, clear and map new pages for every million octets.

use bytes::BytesMut;

use crate::tun::POOL_BYTES;

/// Maximum number of pieces kept for reuse: one for each run that may grow at once.
const PIECES_MAX: usize = 8;

/// Pieces that are not being read into.
#[derive(Default)]
pub(crate) struct Memory {
    pieces: Vec<BytesMut>,
}

impl Memory {
    /// Returns an empty piece with room for `bytes`, which are at most [`POOL_BYTES`]: preferably the latest one that
    /// is no longer in use, otherwise the rest of one with enough room, otherwise a new one.
    pub(crate) fn take(&mut self, bytes: usize) -> BytesMut {
        let free = self.pieces.iter_mut().rposition(|piece| piece.try_reclaim(POOL_BYTES));
        let with_rest = || self.pieces.iter().rposition(|piece| piece.capacity() >= bytes);
        match free.or_else(with_rest) {
            Some(at) => self.pieces.remove(at),
            None => BytesMut::with_capacity(POOL_BYTES),
        }
    }

    /// Takes back a piece that is no longer read into.
    pub(crate) fn put(&mut self, mut piece: BytesMut) {
        piece.clear();
        if self.pieces.len() == PIECES_MAX {
            self.pieces.remove(0);
        }
        self.pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 400_000;

    /// Fills `LEN` octets of a piece and gives it back. Returns the address of the octets, and the octets.
    fn fill(memory: &mut Memory) -> (*const u8, BytesMut) {
        let mut piece = memory.take(LEN);
        piece.resize(LEN, 7);
        let octets = piece.split();
        memory.put(piece);
        (octets.as_ptr(), octets)
    }

    #[test]
    fn what_nobody_holds_is_used_again_from_its_start() {
        let mut memory = Memory::default();
        let (first, octets) = fill(&mut memory);
        drop(octets);
        assert_eq!(fill(&mut memory).0, first);
    }

    #[test]
    fn what_somebody_holds_stays_and_two_pieces_are_enough_for_two_in_turn() {
        let mut memory = Memory::default();
        let mut held = Vec::new();
        let mut places = std::collections::BTreeSet::new();
        for number in 0..100 {
            let (place, octets) = fill(&mut memory);
            assert!(octets.iter().all(|octet| *octet == 7));
            places.insert(place);
            held.push(octets);
            if number % 2 == 1 {
                held.clear();
            }
        }
        assert_eq!(places.len(), 2, "one piece, at two places");
    }

    #[test]
    fn it_keeps_few_pieces() {
        let mut memory = Memory::default();
        let held: Vec<_> = (0..30).map(|_| fill(&mut memory)).collect();
        assert!(memory.pieces.len() <= PIECES_MAX);
        drop(held);
    }
}
