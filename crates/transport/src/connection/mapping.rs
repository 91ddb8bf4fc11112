//! Data sequence mappings received on a subflow (RFC 8684 section 3.3.1): the data sequence number of each octet.

use std::collections::VecDeque;

use units::narrow::u32_from;
use units::{Dsn, SeqNr};
use wire::Payload;
use wire::checksum::{dss_checksum_error, dss_checksum_is_valid};

use super::send_buffer::gather;
use crate::error::Violation;
use crate::ordered_queue::{OrderedQueue, Place};
use crate::small_pieces;

/// Maximum number of pieces that one mapping may add between others with checksums: each costs time in proportion to
/// the number of mappings.
const PIECES_MAX: usize = 128;
/// Maximum length of one mapping, octets; far below the wrap of sequence numbers.
const MERGED_MAX: u32 = 1 << 30;

/// One mapping, in absolute sequence numbers.
#[derive(Debug)]
pub(crate) struct ReceivedMapping {
    pub(crate) seq: SeqNr,
    /// Octets of data, without a DATA_FIN.
    pub(crate) len: u32,
    pub(crate) dsn: Dsn,
    /// Fields that the checksum covers besides the data, if checksums were agreed on.
    pub(crate) checksum: Option<MappingChecksum>,
}

/// A checksum and the fields of its pseudo-header (RFC 8684 figure 10) that [`ReceivedMapping`] lacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappingChecksum {
    pub(crate) value: u16,
    /// Relative subflow sequence number, as on the wire.
    pub(crate) ssn: u32,
    /// Data-level length, as on the wire.
    pub(crate) len: u16,
}

impl ReceivedMapping {
    fn end(&self) -> SeqNr {
        self.seq + self.len
    }

    fn contains(&self, other: &Self) -> bool {
        self.seq.before_or_at(other.seq) && self.end().at_or_after(other.end())
    }

    fn dsn_at(&self, seq: SeqNr) -> Dsn {
        self.dsn + u64::from(seq.since(self.seq))
    }

    /// Splits off the first `len` octets. Neither part can be verified alone, so neither keeps the checksum.
    fn split_to(&mut self, len: u32) -> Self {
        let front = Self { len, checksum: None, ..*self };
        self.skip(len);
        front
    }

    /// Drops the first `len` octets, whose place is already known; all octets if there are no more.
    fn skip(&mut self, len: u32) {
        let len = len.min(self.len);
        self.seq += len;
        self.dsn += u64::from(len);
        self.len -= len;
        self.checksum = self.checksum.filter(|_| len == 0);
    }
}

/// Why octets in subflow order have no place in the data stream.
#[derive(Debug, PartialEq)]
pub(crate) enum Unresolved {
    /// No mapping covers these.
    NoMapping(Payload),
    /// The mapping that starts at this data sequence number fails its checksum. Its octets are in
    /// [`MappingTable::take_pending`]; these follow them.
    BadChecksum(Dsn, Payload),
}

/// The mappings of one subflow, ordered by sequence number and disjoint.
#[derive(Debug, Default)]
pub(crate) struct MappingTable {
    mappings: OrderedQueue<ReceivedMapping>,
    /// All octets before this have been placed; mappings of them are repetitions.
    resolved_to: Option<SeqNr>,
    /// Octets of the front mapping that wait for the rest, because its checksum covers the whole.
    pending: VecDeque<Payload>,
    pending_bytes: u32,
}

impl MappingTable {
    /// Prefetches the memory for the next mapping.
    pub(crate) fn prefetch(&self) {
        self.mappings.back().into_iter().for_each(units::prefetch);
    }

    /// Inserts a mapping. Mappings may repeat: every segment of an offloaded burst carries the same one. They may also
    /// overlap, if a segment was cut differently for retransmission and the original was merely late. At most `max` are
    /// kept: a peer that maps data without sending them costs no more than one that sends them.
    ///
    /// # Errors
    /// [`Violation::MappingMismatch`] if it gives an octet a different place than before, [`Violation::MappingFlood`]
    /// if there are too many mappings without data.
    #[inline]
    pub(crate) fn insert(&mut self, mut mapping: ReceivedMapping, max: usize) -> Result<(), Violation> {
        if let Some(done) = self.resolved_to.filter(|done| done.after(mapping.seq)) {
            mapping.skip(done.since(mapping.seq));
        }
        if mapping.len == 0 {
            return Ok(());
        }
        match self.mappings.back() {
            Some(last) if last.end().after(mapping.seq) => self.insert_among(mapping, max),
            // Nearly always it follows all others.
            _ if self.mappings.len() >= max => Err(Violation::MappingFlood),
            _ => {
                self.mappings.push_back(mapping);
                Ok(())
            }
        }
    }

    fn insert_among(&mut self, mut mapping: ReceivedMapping, max: usize) -> Result<(), Violation> {
        let mut at = self.mappings.partition_point(|known| known.end().before_or_at(mapping.seq));
        if mapping.checksum.is_none() && self.overlapping(at, &mapping).all(|known| known.checksum.is_none()) {
            return self.merge(at, mapping, max);
        }
        let mut inserted = 0;
        while mapping.len > 0 {
            let Some(known) = self.mappings.get(at).filter(|known| known.seq.before(mapping.end())) else {
                return self.insert_at(at, mapping, max).map(drop);
            };
            check_overlap(known, &mapping)?;
            if mapping.checksum.is_some() && mapping.contains(known) && mapping.len > known.len {
                // The whole can be verified as well as its parts, and covers more octets. Drain all such parts at once:
                // one by one, a peer could make this arbitrarily slow.
                let is_part = |known: &&ReceivedMapping| mapping.contains(known) && mapping.len > known.len;
                let parts = self.mappings.iter_from(at).take_while(is_part).count();
                self.mappings.iter_from(at).take(parts).try_for_each(|known| check_overlap(known, &mapping))?;
                at = self.mappings.remove_run(at, parts, drop);
                continue;
            }
            if known.seq.after(mapping.seq) {
                let (gap, known_len) = (known.seq.since(mapping.seq), known.len);
                let before = mapping.split_to(gap);
                mapping.skip(known_len);
                at = self.insert_at(at, before, max)?;
                (at, inserted) = (self.mappings.next(at), inserted + 1);
                if inserted > PIECES_MAX {
                    return Err(Violation::MappingFlood);
                }
            } else {
                mapping.skip(known.end().since(mapping.seq));
            }
            at = self.mappings.next(at);
        }
        Ok(())
    }

    /// Iterates over the mappings from `at` on that start before the end of `mapping`.
    fn overlapping(&self, at: Place, mapping: &ReceivedMapping) -> impl Iterator<Item = &ReceivedMapping> {
        let end = mapping.end();
        self.mappings.iter_from(at).take_while(move |known| known.seq.before(end))
    }

    /// Merges a mapping with those from `at` on that overlap it: without checksums, mappings that agree are equivalent
    /// to one.
    fn merge(&mut self, at: Place, new: ReceivedMapping, max: usize) -> Result<(), Violation> {
        let (mut seq, mut dsn, mut end) = (new.seq, new.dsn, new.end());
        let mut overlapping = 0;
        for known in self.overlapping(at, &new) {
            check_overlap(known, &new)?;
            overlapping += 1;
        }
        let at = self.mappings.remove_run(at, overlapping, |known| {
            if known.seq.before(seq) {
                (seq, dsn) = (known.seq, known.dsn);
            }
            end = end.max(known.end());
        });
        let len = end.since(seq);
        if len > MERGED_MAX {
            return Err(Violation::MappingFlood);
        }
        self.insert_at(at, ReceivedMapping { seq, len, dsn, checksum: None }, max).map(drop)
    }

    fn insert_at(&mut self, at: Place, mapping: ReceivedMapping, max: usize) -> Result<Place, Violation> {
        if self.mappings.len() >= max {
            return Err(Violation::MappingFlood);
        }
        Ok(self.mappings.insert(at, mapping))
    }

    /// Returns the end of the subflow octets that are placed or held in [`Self::pending_bytes`].
    pub(crate) fn resolved_to(&self) -> Option<SeqNr> {
        self.resolved_to
    }

    /// Returns the octets that wait for the rest of their mapping.
    pub(crate) fn pending_bytes(&self) -> u32 {
        self.pending_bytes
    }

    /// Returns the place of `len` octets that are next in subflow order, if one mapping without a checksum covers them
    /// all, as nearly always: a short form of [`Self::resolve`].
    #[inline]
    pub(crate) fn place_whole(&mut self, seq: SeqNr, len: u32) -> Option<Dsn> {
        self.forget_before(seq);
        let is_certain = |front: &&ReceivedMapping| {
            front.checksum.is_none() && front.seq.before_or_at(seq) && len <= front.end().since(seq)
        };
        let dsn = self.mappings.front().filter(is_certain)?.dsn_at(seq);
        self.resolved_to = Some(seq + len);
        Some(dsn)
    }

    /// Whether nothing is known or pending after `seq`: then a mapping that comes with all its octets need not be kept.
    #[inline]
    pub(crate) fn is_clear_at(&mut self, seq: SeqNr) -> bool {
        self.forget_before(seq);
        self.mappings.is_empty() && self.pending_bytes == 0
    }

    /// Records that everything before `seq` has been placed by a mapping that was not kept.
    #[inline]
    pub(crate) fn pass_by(&mut self, seq: SeqNr) {
        self.resolved_to = Some(seq);
    }

    /// Drops mappings of octets before `seq`, which have been placed.
    #[inline]
    fn forget_before(&mut self, seq: SeqNr) {
        while self.mappings.front().is_some_and(|front| front.end().before_or_at(seq)) {
            self.mappings.pop_front();
        }
    }

    /// Places octets that are next in subflow order: calls `deliver` with each piece whose place is certain.
    pub(crate) fn resolve(
        &mut self,
        mut seq: SeqNr,
        mut payload: Payload,
        mut deliver: impl FnMut(Dsn, Payload),
    ) -> Result<(), Unresolved> {
        let whole = payload.len();
        while !payload.is_empty() {
            self.forget_before(seq);
            let Some(front) = self.mappings.front().filter(|front| front.seq.before_or_at(seq)) else {
                return Err(Unresolved::NoMapping(payload));
            };
            let covered = (front.end().since(seq) as usize).min(payload.len());
            let piece = small_pieces::keep_part(payload.split_to(covered), whole);
            self.resolved_to = Some(seq + u32_from(covered as u64));
            match front.checksum {
                None => deliver(front.dsn_at(seq), piece),
                Some(checksum) => {
                    if let Err(dsn) = self.collect(checksum, piece, &mut deliver) {
                        return Err(Unresolved::BadChecksum(dsn, payload));
                    }
                }
            }
            seq += u32_from(covered as u64);
        }
        Ok(())
    }

    /// Holds a piece until its mapping is complete, then verifies and delivers the whole. The error is the start of the
    /// mapping.
    fn collect(
        &mut self,
        checksum: MappingChecksum,
        piece: Payload,
        deliver: &mut impl FnMut(Dsn, Payload),
    ) -> Result<(), Dsn> {
        self.pending_bytes += piece.sequence_len();
        self.hold(piece);
        let Some(front) = self.mappings.front().filter(|front| self.pending_bytes >= front.len) else {
            return Ok(());
        };
        let mut dsn = front.dsn;
        if !dss_checksum_is_valid(checksum.value, dsn, checksum.ssn, checksum.len, self.pending.iter()) {
            return Err(dsn);
        }
        self.pending_bytes = 0;
        for piece in self.pending.drain(..) {
            let len = piece.len() as u64;
            deliver(dsn, piece);
            dsn += len;
        }
        Ok(())
    }

    /// Holds a piece. Small ones get memory of their own and are gathered: a mapping may come octet by octet, each in a
    /// packet.
    fn hold(&mut self, piece: Payload) {
        let are_small = small_pieces::is_small(&piece) && self.pending.back().is_some_and(small_pieces::is_small);
        match (self.pending.back_mut(), &piece) {
            (Some(Payload::Bytes(last)), Payload::Bytes(next)) if are_small => gather(last, next),
            _ => self.pending.push_back(small_pieces::keep(piece)),
        }
    }

    /// After [`Unresolved::BadChecksum`]: returns the start of its mapping, and by how much the checksum is off
    /// ([`dss_checksum_error`]).
    pub(crate) fn failed(&self) -> Option<(SeqNr, u16)> {
        let front = self.mappings.front()?;
        let MappingChecksum { value, ssn, len } = front.checksum?;
        Some((front.seq, dss_checksum_error(value, front.dsn, ssn, len, &self.pending)))
    }

    /// Adds `by` to all data sequence numbers, when a guess of their upper halves turns out wrong.
    pub(crate) fn shift(&mut self, by: u64) {
        self.mappings.iter_mut().for_each(|mapping| mapping.dsn += by);
    }

    /// Takes the octets whose mapping failed its checksum: a single subflow delivers them as they are once it has
    /// fallen back (RFC 8684 section 3.7).
    pub(crate) fn take_pending(&mut self) -> impl Iterator<Item = Payload> {
        self.pending_bytes = 0;
        self.pending.drain(..)
    }
}

/// Overlapping mappings must give every octet the same data sequence number.
fn check_overlap(known: &ReceivedMapping, new: &ReceivedMapping) -> Result<(), Violation> {
    let same = if new.seq.at_or_after(known.seq) {
        known.dsn_at(new.seq) == new.dsn
    } else {
        new.dsn_at(known.seq) == known.dsn
    };
    if same { Ok(()) } else { Err(Violation::MappingMismatch) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered_queue::effort;
    use wire::checksum::dss_checksum;

    const MAX: usize = 100;

    fn mapping(seq: u32, len: u32, dsn: u64) -> ReceivedMapping {
        ReceivedMapping { seq: SeqNr(seq), len, dsn: Dsn(dsn), checksum: None }
    }

    fn resolve(table: &mut MappingTable, seq: u32, len: usize) -> (Vec<(u64, usize)>, Result<(), Unresolved>) {
        let mut pieces = Vec::new();
        let result =
            table.resolve(SeqNr(seq), Payload::from(vec![1; len]), |dsn, piece| pieces.push((dsn.0, piece.len())));
        (pieces, result)
    }

    #[test]
    fn one_segment_may_span_mappings_and_one_mapping_segments() {
        let mut table = MappingTable::default();
        table.insert(mapping(100, 150, 1000), MAX).unwrap();
        table.insert(mapping(250, 50, 5000), MAX).unwrap();
        assert_eq!(resolve(&mut table, 100, 100), (vec![(1000, 100)], Ok(())));
        assert_eq!(resolve(&mut table, 200, 100), (vec![(1100, 50), (5000, 50)], Ok(())));
        let (pieces, result) = resolve(&mut table, 300, 10);
        assert!(pieces.is_empty());
        assert_eq!(result, Err(Unresolved::NoMapping(Payload::from(vec![1; 10]))));
    }

    #[test]
    fn repeats_are_fine_and_contradictions_are_not() {
        let mut table = MappingTable::default();
        table.insert(mapping(100, 150, 1000), MAX).unwrap();
        assert_eq!(table.insert(mapping(100, 150, 1000), MAX), Ok(()));
        assert_eq!(table.insert(mapping(150, 10, 1050), MAX), Ok(()));
        assert_eq!(table.insert(mapping(150, 10, 1051), MAX), Err(Violation::MappingMismatch));
        table.insert(mapping(0, 100, 900), MAX).unwrap();
        assert_eq!(resolve(&mut table, 0, 250).0, [(900, 100), (1000, 150)]);
    }

    /// A late original arrives after the pieces into which it was cut for retransmission: every octet is placed once.
    #[test]
    fn overlapping_mappings_complete_each_other() {
        let mut table = MappingTable::default();
        table.insert(mapping(150, 20, 1050), MAX).unwrap();
        table.insert(mapping(100, 100, 1000), MAX).unwrap();
        table.insert(mapping(190, 60, 1090), MAX).unwrap();
        assert_eq!(table.mappings.len(), 1);
        assert_eq!(resolve(&mut table, 100, 150), (vec![(1000, 150)], Ok(())));
        table.insert(mapping(200, 70, 1100), MAX).unwrap();
        assert_eq!(resolve(&mut table, 250, 20).0, [(1150, 20)]);
    }

    /// A mapping that covers all the small pieces from a peer costs no more than they did.
    #[test]
    fn small_pieces_become_one() {
        let mut table = MappingTable::default();
        let pieces = (0..30_000).map(|n| mapping(100 + 2 * n, 1, 1000 + 2 * u64::from(n)));
        pieces.for_each(|piece| table.insert(piece, 40_000).unwrap());
        table.insert(mapping(100, 59_999, 1000), 40_000).unwrap();
        assert_eq!(table.mappings.len(), 1);
        assert_eq!(table.insert(mapping(101, 1, 1002), 40_000), Err(Violation::MappingMismatch));
        assert_eq!(resolve(&mut table, 100, 59_999).0, [(1000, 59_999)]);
    }

    /// A peer maps octets far from all others in the middle of what it has mapped.
    #[test]
    fn mappings_in_the_middle_cost_the_same_among_many() {
        effort::assert_linear(|n| {
            let mut table = MappingTable::default();
            effort::of(|| {
                for i in (0..n / 2).flat_map(|i| [i, n - 1 - i]) {
                    table.insert(mapping(2 * i, 1, 5 * u64::from(i)), n as usize).unwrap();
                }
                assert_eq!(table.mappings.len(), n as usize);
            })
        });
    }

    /// The same with checksums: the original is verified instead of its pieces. What is left of it after its pieces
    /// have been placed cannot be verified, and does not wait for octets that never come.
    #[test]
    fn a_late_original_is_verified_while_it_is_whole() {
        let octets = Payload::from((0..100).collect::<Vec<u8>>());
        let whole = |seq, dsn, octets: &Payload| {
            let (ssn, len) = (1, octets.len() as u16);
            let value = dss_checksum(Dsn(dsn), ssn, len, core::iter::once(octets));
            let checksum = Some(MappingChecksum { value, ssn, len });
            ReceivedMapping { seq: SeqNr(seq), len: u32::from(len), dsn: Dsn(dsn), checksum }
        };
        let collect = |table: &mut MappingTable, seq, payload: Payload| {
            let mut pieces = Vec::new();
            let result = table.resolve(SeqNr(seq), payload, |dsn, piece| pieces.push((dsn.0, piece.len())));
            (pieces, result)
        };
        let mut table = MappingTable::default();
        table.insert(whole(60, 1060, &octets.slice(60..100)), MAX).unwrap();
        table.insert(whole(0, 1000, &octets), MAX).unwrap();
        assert_eq!(table.mappings.len(), 1);
        let mut altered = octets.to_bytes().to_vec();
        altered[99] ^= 1;
        assert!(matches!(collect(&mut table, 0, altered.into()).1, Err(Unresolved::BadChecksum(..))));

        let mut table = MappingTable::default();
        table.insert(whole(0, 1000, &octets.slice(0..60)), MAX).unwrap();
        assert_eq!(collect(&mut table, 0, octets.slice(0..60)), (vec![(1000, 60)], Ok(())));
        table.insert(whole(0, 1000, &octets), MAX).unwrap();
        assert_eq!(collect(&mut table, 60, octets.slice(60..100)), (vec![(1060, 40)], Ok(())));
    }

    #[test]
    fn a_flood_of_mappings_ends() {
        let mut table = MappingTable::default();
        let mut flood = (0..).map(|i| table.insert(mapping(2 * i, 1, 7), MAX));
        assert_eq!(flood.position(|result| result == Err(Violation::MappingFlood)), Some(MAX));
    }

    #[test]
    fn checksums_cover_the_whole_mapping() {
        for wrong in [0, 1] {
            let data = Payload::from(b"an anabranch leaves a river and rejoins it".to_vec());
            let len = data.len() as u16;
            let value = dss_checksum(Dsn(77), 9, len, core::iter::once(&data)) ^ wrong;
            let mut table = MappingTable::default();
            let checksum = Some(MappingChecksum { value, ssn: 9, len });
            table.insert(ReceivedMapping { seq: SeqNr(9), len: len.into(), dsn: Dsn(77), checksum }, MAX).unwrap();
            let mut pieces = Vec::new();
            table.resolve(SeqNr(9), data.slice(0..11), |dsn, piece| pieces.push((dsn, piece))).unwrap();
            assert!(pieces.is_empty(), "nothing may be delivered before the whole is verified");
            let end = table.resolve(SeqNr(20), data.slice(11..42), |dsn, piece| pieces.push((dsn, piece)));
            if wrong == 0 {
                assert_eq!(end, Ok(()));
                assert_eq!(pieces, [(Dsn(77), data)], "small pieces are gathered");
            } else {
                assert_eq!(end, Err(Unresolved::BadChecksum(Dsn(77), Payload::Empty)));
                assert_eq!(table.take_pending().collect::<Vec<_>>(), [data]);
            }
        }
    }
}
