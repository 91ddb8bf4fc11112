//! The receive side of a TCB's sequence space: data that arrived, in order and not, and the SACK blocks that report
//! them.

use std::collections::VecDeque;

use units::SeqNr;
use wire::{Payload, SackBlock, SackBlocks};

use super::held_ranges::HeldRanges;
use crate::ordered_queue::{OrderedQueue, Place};
use crate::small_pieces;

/// Overhead charged for every segment held out of order: about the cost of the segment and its owner's record.
const SEGMENT_OVERHEAD: u64 = 128;
/// Octets that may be held in addition to twice the widest window announced.
const HELD_MIN: u64 = 64 << 10;

/// Result of accepting a segment's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Octets that arrived before.
    pub(crate) duplicate_bytes: u32,
    /// The data came out of order, or filled a hole: acknowledge at once (RFC 5681 section 4.2).
    pub(crate) out_of_order: bool,
    /// The peer's FIN is now in order.
    pub(crate) fin: bool,
}

#[derive(Debug)]
struct Held {
    seq: SeqNr,
    payload: Payload,
}

impl Held {
    fn end(&self) -> SeqNr {
        self.seq + self.payload.sequence_len()
    }
}

/// Receive sequence variables (RFC 9293 section 3.3.1) and reassembly.
#[derive(Debug)]
pub(crate) struct ReceiveSpace {
    /// IRS.
    irs: SeqNr,
    /// RCV.NXT.
    nxt: SeqNr,
    /// The rightmost edge ever announced. Data before it must be accepted.
    announced_edge: SeqNr,
    /// Sequence number of the peer's FIN, once seen.
    fin_at: Option<SeqNr>,
    /// The widest window ever announced.
    window_max: u32,
    /// Data in order, waiting for the connection.
    ready: VecDeque<(SeqNr, Payload)>,
    out_of_order: OrderedQueue<Held>,
    held_bytes: u64,
    /// Ranges beyond `nxt`, once there have been any.
    ranges: Option<Box<HeldRanges>>,
    /// The range of a duplicate, to be reported once (RFC 2883).
    duplicate: Option<SackBlock>,
}

impl ReceiveSpace {
    /// Creates the space after a SYN with sequence number `irs`.
    pub(crate) fn new(irs: SeqNr) -> Self {
        Self {
            irs,
            nxt: irs + 1,
            announced_edge: irs + 1,
            fin_at: None,
            window_max: 0,
            ready: VecDeque::new(),
            out_of_order: OrderedQueue::default(),
            held_bytes: 0,
            ranges: None,
            duplicate: None,
        }
    }

    pub(crate) fn irs(&self) -> SeqNr {
        self.irs
    }

    pub(crate) fn nxt(&self) -> SeqNr {
        self.nxt
    }

    /// Returns RCV.WND: octets from RCV.NXT to the announced edge.
    pub(crate) fn window(&self) -> u32 {
        if self.announced_edge.after(self.nxt) { self.announced_edge.since(self.nxt) } else { 0 }
    }

    /// Records that a segment announces `window` octets from RCV.NXT.
    pub(crate) fn announce(&mut self, window: u32) {
        self.announced_edge = self.announced_edge.max(self.nxt + window);
        self.window_max = self.window_max.max(self.window());
    }

    /// Returns the limit on the cost of segments held out of order. It admits a whole window of segments with 128
    /// octets or more; a window of small pieces costs no more.
    fn held_max(&self) -> u64 {
        2 * u64::from(self.window_max) + HELD_MIN
    }

    /// Whether `len` octets at `seq` can be stored. If not, the segment counts as lost in the network. Its sender sends
    /// it again, by which time the hole before it may be filled.
    pub(crate) fn has_room_for(&self, seq: SeqNr, len: u32) -> bool {
        if !seq.after(self.nxt) {
            return true;
        }
        let segments = self.out_of_order.len() as u64 + 1;
        let charged = self.held_bytes + u64::from(len) + segments * SEGMENT_OVERHEAD;
        charged <= self.held_max()
    }

    /// Returns the number of ranges worth recording: one for each segment held, and one for each gap that late
    /// originals of re-split segments leave between them. A sender that respects its window never needs more.
    pub(crate) fn ranges_max(&self) -> usize {
        2 * (self.held_max() / SEGMENT_OVERHEAD) as usize
    }

    /// Performs the acceptability test of RFC 9293 section 3.4 (table 6).
    pub(crate) fn is_acceptable(&self, seq: SeqNr, len: u32) -> bool {
        if seq == self.nxt {
            return true;
        }
        let window = self.window();
        match (len, window) {
            // None of its data are taken, but its ACK counts ("special allowance", section 3.10.7.4).
            (_, 0) => seq == self.nxt,
            (0, _) => seq.in_window(self.nxt, window),
            _ => seq.in_window(self.nxt, window) || (seq + (len - 1)).in_window(self.nxt, window),
        }
    }

    /// Whether `seq` is the right edge of the window. A peer whose data filled the window, and are late, acknowledges
    /// from there. RFC 9293 rejects such ACKs, but Linux accepts them, and a sender that lacks them takes them for
    /// lost.
    pub(crate) fn is_right_edge(&self, seq: SeqNr) -> bool {
        seq == self.announced_edge
    }

    /// Takes the payload, and the FIN, of an acceptable segment.
    pub(crate) fn accept(&mut self, seq: SeqNr, mut payload: Payload, fin: bool) -> Accepted {
        let mut accepted = Accepted::default();
        if self.is_plain(seq, &payload, fin) {
            self.nxt += payload.sequence_len();
            self.ready.push_back((seq, payload));
            return accepted;
        }
        let room = if self.announced_edge.after(seq) { self.announced_edge.since(seq) as usize } else { 0 };
        let whole = payload.len() <= room;
        if !whole {
            // The peer must learn that data beyond the window were not taken.
            small_pieces::cut_back(&mut payload, room);
            accepted.out_of_order = true;
        }
        if fin && whole && self.fin_at.is_none() {
            self.fin_at = Some(seq + payload.sequence_len());
        }
        if !payload.is_empty() {
            let had_holes = !self.out_of_order.is_empty();
            accepted.out_of_order |= had_holes;
            self.accept_data(seq, payload, &mut accepted);
        }
        if self.fin_at == Some(self.nxt) {
            self.nxt += 1;
            // Nothing new can follow in the window; another FIN is a duplicate.
            self.fin_at = None;
            accepted.fin = true;
        } else if fin && self.fin_at.is_some() {
            accepted.out_of_order = true;
        }
        accepted
    }

    /// Whether the segment is only the next data, with nothing held behind them, as nearly always.
    #[inline]
    pub(crate) fn is_plain(&self, seq: SeqNr, payload: &Payload, fin: bool) -> bool {
        let len = payload.sequence_len();
        let fits = self.announced_edge.after(seq) && len <= self.announced_edge.since(seq);
        let is_alone = self.out_of_order.is_empty() && self.fin_at.is_none();
        seq == self.nxt && len > 0 && fits && is_alone && !fin
    }

    /// Records that the next `len` octets arrived and went straight to the owner.
    #[inline]
    pub(crate) fn pass_by(&mut self, len: u32) {
        self.nxt += len;
    }

    fn accept_data(&mut self, mut seq: SeqNr, mut payload: Payload, accepted: &mut Accepted) {
        let end = seq + payload.sequence_len();
        if end.before_or_at(self.nxt) {
            accepted.duplicate_bytes = payload.sequence_len();
            accepted.out_of_order = true;
            self.note_duplicate(seq, end);
            return;
        }
        let mut below = None;
        if seq.before(self.nxt) {
            let known = self.nxt.since(seq);
            accepted.duplicate_bytes = known;
            small_pieces::cut_front(&mut payload, known as usize);
            below = Some(SackBlock { start: seq, end: self.nxt });
            accepted.out_of_order = true;
            seq = self.nxt;
        }
        let (held_bytes, held) = self.duplicates_of_held(seq, end);
        accepted.duplicate_bytes += held_bytes;
        // An ACK reports a single contiguous duplicate: the first (RFC 2883 section 4).
        self.duplicate = below.or(held).or(self.duplicate);
        if seq == self.nxt {
            self.advance(seq, payload);
        } else {
            accepted.out_of_order = true;
            self.hold(seq, payload);
        }
    }

    /// Records that octets arrived again, for the next ACK to report (RFC 2883).
    pub(crate) fn note_duplicate(&mut self, start: SeqNr, end: SeqNr) {
        self.duplicate = Some(SackBlock { start, end });
    }

    /// Returns the number of octets of `[start, end)` that are already held, and their first contiguous run.
    fn duplicates_of_held(&self, start: SeqNr, end: SeqNr) -> (u32, Option<SackBlock>) {
        let (mut bytes, mut first) = (0, None::<SackBlock>);
        let beyond = self.out_of_order.iter_from(self.first_held_beyond(start));
        for held in beyond.take_while(|held| held.seq.before(end)) {
            let run = SackBlock { start: held.seq.max(start), end: held.end().min(end) };
            bytes += run.end.since(run.start);
            match &mut first {
                None => first = Some(run),
                Some(first) if first.end == run.start => first.end = run.end,
                Some(_) => {}
            }
        }
        (bytes, first)
    }

    /// Takes data at RCV.NXT, and all data held directly behind them.
    fn advance(&mut self, seq: SeqNr, payload: Payload) {
        self.nxt = seq + payload.sequence_len();
        self.ready.push_back((seq, payload));
        while let Some(front) = self.out_of_order.front() {
            if front.seq.after(self.nxt) {
                break;
            }
            let mut held = self.out_of_order.pop_front().expect("front exists");
            self.held_bytes -= held.payload.len() as u64;
            if held.end().after(self.nxt) {
                let known = self.nxt.since(held.seq) as usize;
                small_pieces::cut_front(&mut held.payload, known);
                let start = self.nxt;
                self.nxt = start + held.payload.sequence_len();
                self.ready.push_back((start, held.payload));
            }
        }
        if let Some(ranges) = &mut self.ranges {
            ranges.advance(self.nxt);
        }
    }

    /// Stores the new part of a segment beyond a hole; held segments never overlap.
    fn hold(&mut self, seq: SeqNr, mut payload: Payload) {
        let end = seq + payload.sequence_len();
        let (mut start, mut at) = (seq, self.first_held_beyond(seq));
        if let Some(held) = self.out_of_order.get(at).filter(|held| held.seq.before(seq)) {
            let known = held.end().min(end).since(seq);
            small_pieces::cut_front(&mut payload, known as usize);
            start += known;
            at = self.out_of_order.next(at);
        }
        let covered = self.out_of_order.iter_from(at).take_while(|held| held.end().before_or_at(end)).count();
        at = self.out_of_order.remove_run(at, covered, |held| self.held_bytes -= held.payload.len() as u64);
        if let Some(held) = self.out_of_order.get(at).filter(|held| held.seq.before(end)) {
            small_pieces::cut_back(&mut payload, held.seq.since(start) as usize);
        }
        if !payload.is_empty() {
            self.held_bytes += payload.len() as u64;
            self.out_of_order.insert(at, Held { seq: start, payload: small_pieces::keep(payload) });
        }
        self.ranges.get_or_insert_default().note(seq, end);
    }

    /// Returns the first held segment that ends beyond `seq`.
    fn first_held_beyond(&self, seq: SeqNr) -> Place {
        match self.out_of_order.back() {
            Some(last) if last.end().before_or_at(seq) => self.out_of_order.end(),
            _ => self.out_of_order.partition_point(|held| held.end().before_or_at(seq)),
        }
    }

    /// Returns the ranges beyond `nxt` to report, most recent first.
    fn ranges(&self) -> &[SackBlock] {
        self.ranges.as_ref().map_or(&[], |ranges| ranges.recent())
    }

    /// Returns the blocks to report, most recent first; a duplicate precedes all (RFC 2883 section 4).
    pub(crate) fn take_sack_blocks(&mut self, max: usize) -> SackBlocks {
        let mut blocks = SackBlocks::new();
        let duplicate = self.duplicate.take();
        blocks.extend(duplicate.into_iter().chain(self.ranges().iter().copied()).take(max.min(blocks.capacity())));
        blocks
    }

    pub(crate) fn has_sack_blocks(&self) -> bool {
        self.duplicate.is_some() || !self.ranges().is_empty()
    }

    /// Returns the next data in order.
    pub(crate) fn take_ready(&mut self) -> Option<(SeqNr, Payload)> {
        self.ready.pop_front()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::ordered_queue::effort;

    fn space() -> ReceiveSpace {
        let mut space = ReceiveSpace::new(SeqNr(u32::MAX - 50));
        space.announce(1000);
        space
    }

    fn octets(len: usize) -> Payload {
        Payload::from(vec![7; len])
    }

    fn at(offset: u32) -> SeqNr {
        SeqNr(u32::MAX - 49) + offset
    }

    #[test]
    fn fills_holes_across_the_wrap_and_reports_them() {
        let mut space = space();
        assert!(space.accept(at(100), octets(100), false).out_of_order);
        assert!(space.accept(at(300), octets(100), false).out_of_order);
        let blocks = space.take_sack_blocks(4);
        assert_eq!(
            blocks.as_slice(),
            [SackBlock { start: at(300), end: at(400) }, SackBlock { start: at(100), end: at(200) },]
        );
        assert!(space.accept(at(0), octets(100), false).out_of_order, "filling a hole is worth an ACK");
        assert_eq!(space.nxt(), at(200));
        space.accept(at(200), octets(150), false);
        assert_eq!(space.nxt(), at(400));
        assert_eq!(space.take_sack_blocks(4).as_slice(), [SackBlock { start: at(300), end: at(350) }]);
        let total: usize = core::iter::from_fn(|| space.take_ready()).map(|(_, payload)| payload.len()).sum();
        assert_eq!(total, 400);
    }

    /// A peer leaves a hole before each octet, and sends the outer ones first.
    #[test]
    fn octets_in_the_middle_cost_the_same_among_many() {
        effort::assert_linear(|n| {
            let mut space = ReceiveSpace::new(SeqNr(0));
            space.announce(1 << 24);
            let octet = |i: u32| SeqNr(1 + 2 * i);
            effort::of(|| {
                for i in (1..=n / 2).flat_map(|i| [i, n + 1 - i]) {
                    space.accept(octet(i), octets(1), false);
                }
                assert_eq!(space.out_of_order.len(), n as usize);
            })
        });
    }

    #[test]
    fn duplicates_are_counted_and_reported_once() {
        let mut space = space();
        space.accept(at(0), octets(100), false);
        let again = space.accept(at(50), octets(100), false);
        assert_eq!(again.duplicate_bytes, 50);
        let whole = space.accept(at(0), octets(100), false);
        assert_eq!(whole.duplicate_bytes, 100);
        assert_eq!(space.take_sack_blocks(4).as_slice(), [SackBlock { start: at(0), end: at(100) }]);
        assert!(space.take_sack_blocks(4).is_empty());
    }

    proptest::proptest! {
        /// Segments in any order and with any overlap yield the stream; duplicates are counted, and the first run of
        /// them is reported.
        #[test]
        fn any_overlap_is_one_stream(segments in proptest::collection::vec((0..400_u32, 1..150_u32), 1..40)) {
            let (mut space, mut arrived, mut read) = (space(), vec![false; 600], 0);
            for (start, len) in segments {
                let known: Vec<u32> = (start..start + len).filter(|octet| arrived[*octet as usize]).collect();
                let first_run = known.first().map(|first| {
                    let end = (*first..).find(|octet| !known.contains(octet)).unwrap();
                    SackBlock { start: at(*first), end: at(end) }
                });
                let payload = Payload::Pattern(wire::Pattern { stream: 1, offset: u64::from(start), len });
                let accepted = space.accept(at(start), payload, false);
                arrived[start as usize..(start + len) as usize].fill(true);
                proptest::prop_assert_eq!(accepted.duplicate_bytes as usize, known.len());
                proptest::prop_assert_eq!(core::mem::take(&mut space.duplicate), first_run);
                for SackBlock { start, end } in space.ranges() {
                    let [start, end] = [start, end].map(|edge| edge.since(at(0)) as usize);
                    proptest::prop_assert!(arrived[start..end].iter().all(|there| *there));
                    proptest::prop_assert!(!arrived[start - 1] && !arrived[end], "{}..{}", start, end);
                }
                while let Some((seq, payload)) = space.take_ready() {
                    let expected = wire::Pattern { stream: 1, offset: read, len: payload.len() as u32 };
                    proptest::prop_assert_eq!((seq, payload), (at(read as u32), Payload::Pattern(expected)));
                    read += u64::from(expected.len);
                }
                proptest::prop_assert_eq!(read as usize, arrived.iter().position(|there| !there).unwrap());
            }
        }
    }

    #[test]
    fn what_is_left_of_a_segment_after_a_cut_does_not_keep_its_memory() {
        let mut space = space();
        space.announce(50_000);
        let mut accept = |start: u32, end: u32| {
            let octets = Bytes::from(vec![7; (end - start) as usize]);
            space.accept(at(start), octets.clone().into(), false);
            octets
        };
        let (overtaken, whole) = (accept(10_000, 12_000), accept(30_000, 31_000));
        let (behind, before) = (accept(11_000, 20_000), accept(20_000, 30_500));
        let beyond_window = accept(45_000, 60_000);
        accept(0, 11_000);
        let begun = accept(30_000, 33_000);
        accept(33_000, 45_000);
        assert_eq!(space.nxt(), at(50_000));
        assert!(!whole.is_unique(), "it is not copied");
        for cut in [overtaken, behind, before, beyond_window, begun] {
            assert!(cut.is_unique(), "what was left of {} octets", cut.len());
        }
    }

    #[test]
    fn the_window_is_the_table_of_rfc_9293() {
        let mut space = space();
        assert!(space.is_acceptable(at(0), 0));
        assert!(space.is_acceptable(at(999), 500));
        assert!(!space.is_acceptable(at(1000), 0));
        assert!(space.is_right_edge(at(1000)));
        assert!(!space.is_acceptable(at(1000), 1));
        assert!(space.is_acceptable(at(0) - 10, 11));
        assert!(!space.is_acceptable(at(0) - 10, 10));
        // Data beyond the announced edge are cut off.
        space.accept(at(990), octets(100), false);
        assert_eq!(space.take_sack_blocks(1)[0].end, at(1000));
    }

    #[test]
    fn a_fin_counts_when_everything_before_it_is_there() {
        let mut space = space();
        assert!(!space.accept(at(10), octets(10), true).fin);
        assert!(space.accept(at(0), octets(10), false).fin);
        assert_eq!(space.nxt(), at(21));
    }
}
