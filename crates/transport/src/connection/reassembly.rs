//! The data stream from the peer, put in order across subflows (RFC 8684 section 3.3.2).
//!
//! Each subflow delivers its own octets in order, and their data sequence numbers nearly always ascend. Data that wait
//! for a hole to be filled therefore wait in one queue per subflow. Assembling the stream is a merge of a few queues,
//! with no allocation once they have grown. Pieces that do not ascend are sorted into place.

use std::collections::VecDeque;

use units::Dsn;
use units::narrow::usize_from;
use wire::Payload;

use super::send_buffer::{GATHER_TO, gather};
use crate::ordered_queue::OrderedQueue;
use crate::{SubflowId, small_pieces};

/// Charged for every waiting piece in addition to its octets: a peer that sends small pieces fills the buffer sooner.
const PIECE_OVERHEAD: u64 = 64;
/// Maximum number of lanes: subflows that come and go may each leave data behind.
const LANES_MAX: usize = 2 * super::SUBFLOWS_CAP;

#[derive(Debug)]
struct Piece {
    dsn: Dsn,
    payload: Payload,
}

impl Piece {
    fn end(&self) -> Dsn {
        self.dsn + self.payload.len() as u64
    }
}

/// Waiting data of one subflow, ascending.
#[derive(Debug)]
struct Lane {
    subflow: SubflowId,
    pieces: OrderedQueue<Piece>,
}

/// The result of inserting a piece of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// Octets that had been received before.
    pub(crate) duplicate_bytes: u64,
    /// Octets beyond the window or the limit on small pieces, which the sender must send again.
    pub(crate) discarded_bytes: u64,
    /// Whether the stream grew, so there is something to read.
    pub(crate) advanced: bool,
}

/// Octets in order up to `next`, and what has arrived beyond.
#[derive(Debug)]
pub(crate) struct Reassembly {
    next: Dsn,
    ready: VecDeque<Payload>,
    ready_bytes: u64,
    received_bytes: u64,
    lanes: Vec<Lane>,
    waiting_bytes: u64,
    waiting_pieces: u64,
    waiting_peak_bytes: u64,
    /// Start of the piece that was held last.
    recent: Dsn,
    limit: u64,
}

impl Reassembly {
    pub(crate) fn new(next: Dsn, limit: u64) -> Self {
        Self {
            next,
            ready: VecDeque::new(),
            ready_bytes: 0,
            received_bytes: 0,
            lanes: Vec::new(),
            waiting_bytes: 0,
            waiting_pieces: 0,
            waiting_peak_bytes: 0,
            recent: next,
            limit,
        }
    }

    /// Returns the next data sequence number expected: the DATA_ACK.
    pub(crate) fn next(&self) -> Dsn {
        self.next
    }

    /// Moves an empty stream to another start, because the peer's key arrived late.
    pub(crate) fn rebase(&mut self, next: Dsn) {
        self.next = next;
    }

    /// Returns all octets received in order so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Returns the octets in order that the application has not taken.
    pub(crate) fn ready_bytes(&self) -> u64 {
        self.ready_bytes
    }

    /// Returns the octets that wait for a hole before them to be filled, including duplicates among subflows.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Returns how many of these octets came on one subflow. Visits every piece.
    pub(crate) fn waiting_bytes_of(&self, subflow: SubflowId) -> u64 {
        let own = self.lanes.iter().filter(|lane| lane.subflow == subflow);
        own.flat_map(|lane| lane.pieces.iter()).map(|piece| piece.payload.len() as u64).sum()
    }

    pub(crate) fn waiting_peak_bytes(&self) -> u64 {
        self.waiting_peak_bytes
    }

    /// Limits announcements to `limit` octets from now on; earlier promises still hold.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Returns the room for data from `next` on (RFC 8684 section 3.3.2: out-of-order data lie inside the window).
    pub(crate) fn window(&self) -> u64 {
        self.limit.saturating_sub(self.ready_bytes)
    }

    /// Inserts data that arrived on `subflow`; room was promised only up to `edge`.
    #[inline]
    pub(crate) fn insert(&mut self, subflow: SubflowId, dsn: Dsn, payload: Payload, edge: Dsn) -> Inserted {
        let end = dsn + payload.len() as u64;
        if dsn == self.next && end.after(dsn) && !end.after(edge) {
            self.release(payload, end);
            self.release_waiting();
            return Inserted { advanced: true, ..Inserted::default() };
        }
        self.insert_part(subflow, dsn, payload, edge)
    }

    /// Inserts data that are not simply the next of the stream: the part that is new and within the window.
    fn insert_part(&mut self, subflow: SubflowId, mut dsn: Dsn, mut payload: Payload, edge: Dsn) -> Inserted {
        let mut inserted = Inserted::default();
        let mut end = dsn + payload.len() as u64;
        if end.before_or_at(self.next) {
            inserted.duplicate_bytes = payload.len() as u64;
            return inserted;
        }
        if dsn.before(self.next) {
            inserted.duplicate_bytes = self.next.since(dsn);
            small_pieces::cut_front(&mut payload, usize_from(inserted.duplicate_bytes));
            dsn = self.next;
        }
        if end.after(edge) {
            let keep = if edge.after(dsn) { usize_from(edge.since(dsn)) } else { 0 };
            inserted.discarded_bytes = (payload.len() - keep) as u64;
            small_pieces::cut_back(&mut payload, keep);
            end = dsn + keep as u64;
        }
        if payload.is_empty() {
            return inserted;
        }
        if dsn == self.next {
            self.release(payload, end);
            self.release_waiting();
            inserted.advanced = true;
        } else {
            self.hold(subflow, Piece { dsn, payload }, edge, &mut inserted);
        }
        inserted
    }

    /// Appends data that the caller knows to be the next of the stream.
    pub(crate) fn append(&mut self, payload: Payload) {
        if !payload.is_empty() {
            let end = self.next + payload.len() as u64;
            self.release(payload, end);
            self.release_waiting();
        }
    }

    #[inline]
    fn release(&mut self, payload: Payload, end: Dsn) {
        self.ready_bytes += payload.len() as u64;
        self.received_bytes += payload.len() as u64;
        self.next = end;
        let Some(last) = self.ready.back_mut() else { return self.ready.push_back(small_pieces::keep(payload)) };
        // A pattern merges with its neighbour, so a simulated application takes it in one piece.
        let Err(payload) = last.try_append(payload) else { return };
        match (last, &payload) {
            (Payload::Bytes(last), Payload::Bytes(next))
                if small_pieces::is_small(&payload) && last.len() < GATHER_TO =>
            {
                gather(last, next);
            }
            _ => self.ready.push_back(payload),
        }
    }

    /// Releases what the last arrival made contiguous.
    #[inline]
    fn release_waiting(&mut self) {
        if self.waiting_pieces > 0 {
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(lane) = self
            .lanes
            .iter()
            .position(|lane| lane.pieces.front().is_some_and(|piece| piece.dsn.before_or_at(self.next)))
        {
            let mut piece = self.lanes[lane].pieces.pop_front().expect("the lane has a front");
            self.waiting_bytes -= piece.payload.len() as u64;
            self.waiting_pieces -= 1;
            if piece.end().after(self.next) {
                let end = piece.end();
                small_pieces::cut_front(&mut piece.payload, usize_from(self.next.since(piece.dsn)));
                self.release(piece.payload, end);
            }
        }
    }

    fn hold(&mut self, subflow: SubflowId, piece: Piece, edge: Dsn, inserted: &mut Inserted) {
        let len = piece.payload.len() as u64;
        let charged = self.waiting_bytes + len + (self.waiting_pieces + 1) * PIECE_OVERHEAD;
        // The buffer may have been made smaller than what is promised. Real segments are far larger than their
        // overhead; only small pieces and copies on many subflows come near this limit.
        if charged > 4 * self.limit.max(edge.since(self.next)) + (1 << 16) {
            inserted.discarded_bytes += len;
            return;
        }
        let recent = piece.dsn;
        let piece = Piece { payload: small_pieces::keep(piece.payload), ..piece };
        let queue = self.lane_of(subflow);
        if queue.back().is_none_or(|last| last.end().before_or_at(piece.dsn)) {
            queue.push_back(piece);
        } else {
            let at = queue.partition_point(|known| known.dsn.before_or_at(piece.dsn));
            let before = queue.previous(at).and_then(|place| queue.get(place));
            if before.is_some_and(|known| known.end().at_or_after(piece.end())) {
                inserted.duplicate_bytes += len;
                return;
            }
            queue.insert(at, piece);
        }
        self.recent = recent;
        self.waiting_bytes += len;
        self.waiting_pieces += 1;
        self.waiting_peak_bytes = self.waiting_peak_bytes.max(self.waiting_bytes);
    }

    /// Returns the lane of a subflow: its own, or an empty one. If there are too many subflows, several share a lane,
    /// and every piece is sorted in.
    fn lane_of(&mut self, subflow: SubflowId) -> &mut OrderedQueue<Piece> {
        let own = self.lanes.iter().position(|lane| lane.subflow == subflow);
        let found = own.or_else(|| self.lanes.iter().position(|lane| lane.pieces.is_empty()));
        let lane = match found {
            Some(lane) => lane,
            None if self.lanes.len() < LANES_MAX => {
                self.lanes.push(Lane { subflow, pieces: OrderedQueue::default() });
                self.lanes.len() - 1
            }
            None => usize::from(subflow.0) % LANES_MAX,
        };
        self.lanes[lane].subflow = subflow;
        &mut self.lanes[lane].pieces
    }

    /// Returns the waiting data as ranges `[start, end)`, ascending and disjoint.
    pub(crate) fn waiting_ranges(&self) -> impl Iterator<Item = (Dsn, Dsn)> {
        let mut next = self.next;
        core::iter::from_fn(move || {
            let (start, mut end) = self.first_waiting_after(next)?;
            while let Some((_, longer)) = self.first_waiting_after(end).filter(|(start, _)| *start == end) {
                end = longer;
            }
            next = end;
            Some((start, end))
        })
    }

    /// Returns the first octets waiting at or after `dsn`, up to the end of one piece of a lane.
    fn first_waiting_after(&self, dsn: Dsn) -> Option<(Dsn, Dsn)> {
        let in_lane = |lane: &Lane| {
            let at = lane.pieces.partition_point(|piece| piece.end().before_or_at(dsn));
            lane.pieces.get(at).map(|piece| (piece.dsn.max(dsn), piece.end()))
        };
        self.lanes.iter().filter_map(in_lane).reduce(|first, other| if other.0.before(first.0) { other } else { first })
    }

    /// Whether the piece held last lies in a range.
    pub(crate) fn is_most_recent(&self, (start, end): (Dsn, Dsn)) -> bool {
        self.recent.at_or_after(start) && self.recent.before(end)
    }

    /// Takes at most `max` octets in order.
    #[inline]
    pub(crate) fn take(&mut self, max: usize) -> Option<Payload> {
        let front = self.ready.front_mut()?;
        let payload =
            if front.len() > max { front.split_to(max) } else { self.ready.pop_front().expect("there is a front") };
        self.ready_bytes -= payload.len() as u64;
        Some(payload)
    }

    /// Discards data that nobody will read.
    pub(crate) fn discard_ready(&mut self) {
        self.ready.clear();
        self.ready_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered_queue::effort;
    use wire::Pattern;

    const EDGE: Dsn = Dsn(10_000);

    fn pattern(offset: u64, len: u32) -> Payload {
        Payload::Pattern(Pattern { stream: 0, offset, len })
    }

    #[test]
    fn merges_subflows_in_order() {
        let mut stream = Reassembly::new(Dsn(0), 10_000);
        stream.insert(SubflowId(0), Dsn(100), pattern(100, 100), EDGE);
        stream.insert(SubflowId(1), Dsn(200), pattern(200, 100), EDGE);
        stream.insert(SubflowId(0), Dsn(300), pattern(300, 100), EDGE);
        assert_eq!((stream.waiting_bytes(), stream.take(1000)), (300, None));
        assert_eq!([0, 1, 2].map(|id| stream.waiting_bytes_of(SubflowId(id))), [200, 100, 0]);
        assert!(stream.insert(SubflowId(1), Dsn(0), pattern(0, 100), EDGE).advanced);
        assert_eq!((stream.next(), stream.waiting_bytes(), stream.waiting_peak_bytes()), (Dsn(400), 0, 300));
        assert_eq!(stream.take(150), Some(pattern(0, 150)));
        assert_eq!(stream.take(1000), Some(pattern(150, 250)));
        assert_eq!(stream.window(), 10_000);
    }

    #[test]
    fn overlaps_and_late_reinjections_find_their_place() {
        let mut stream = Reassembly::new(Dsn(0), 10_000);
        stream.insert(SubflowId(0), Dsn(500), pattern(500, 100), EDGE);
        stream.insert(SubflowId(0), Dsn(200), pattern(200, 100), EDGE);
        stream.insert(SubflowId(1), Dsn(250), pattern(250, 250), EDGE);
        assert_eq!(stream.insert(SubflowId(0), Dsn(510), pattern(510, 10), EDGE).duplicate_bytes, 10);
        stream.insert(SubflowId(2), Dsn(0), pattern(0, 220), EDGE);
        assert_eq!(stream.next(), Dsn(600));
        assert_eq!(stream.take(1000), Some(pattern(0, 600)));
        assert_eq!(stream.insert(SubflowId(2), Dsn(590), pattern(590, 20), EDGE).duplicate_bytes, 10);
    }

    #[test]
    fn nothing_beyond_the_edge_gets_in() {
        let mut stream = Reassembly::new(Dsn(0), 1000);
        let inserted = stream.insert(SubflowId(0), Dsn(900), pattern(900, 200), Dsn(1000));
        assert_eq!((inserted.discarded_bytes, stream.waiting_bytes()), (100, 100));
        assert_eq!(stream.insert(SubflowId(0), Dsn(2000), pattern(0, 200), Dsn(1000)).discarded_bytes, 200);
    }

    #[test]
    fn small_pieces_cost_no_more_than_a_multiple_of_the_buffer() {
        let mut stream = Reassembly::new(Dsn(0), 100_000);
        for i in 0..100_000 {
            stream.insert(SubflowId(0), Dsn(100_000 - i), pattern(0, 1), Dsn(100_001));
        }
        assert!(stream.waiting_pieces < 10_000);
    }

    /// Data that were promised a place are acknowledged on their subflow: if they are discarded, only a data-level
    /// time-out brings them back.
    #[test]
    fn a_smaller_buffer_keeps_what_was_promised() {
        const PROMISED: u32 = 1 << 20;
        let mut stream = Reassembly::new(Dsn(0), PROMISED.into());
        stream.set_limit(1);
        let edge = Dsn(PROMISED.into());
        for offset in (1000..PROMISED).step_by(1000) {
            let len = 1000.min(PROMISED - offset);
            let inserted = stream.insert(SubflowId(0), Dsn(offset.into()), pattern(offset.into(), len), edge);
            assert_eq!(inserted, Inserted::default());
        }
        assert!(stream.insert(SubflowId(0), Dsn(0), pattern(0, 1000), edge).advanced);
        assert_eq!(stream.ready_bytes(), PROMISED.into());
    }

    /// A peer leaves a hole before each octet, and sends the outer ones first.
    #[test]
    fn octets_in_the_middle_cost_the_same_among_many() {
        effort::assert_linear(|n| {
            let mut stream = Reassembly::new(Dsn(0), 10_000_000);
            effort::of(|| {
                for i in (1..=n / 2).flat_map(|i| [i, n + 1 - i]) {
                    let dsn = 2 * u64::from(i);
                    stream.insert(SubflowId(0), Dsn(dsn), pattern(dsn, 1), Dsn(1_000_000));
                }
                assert_eq!(stream.waiting_pieces, n.into());
            })
        });
    }

    #[test]
    fn subflows_that_come_and_go_leave_no_more_queues_than_so_many() {
        let mut stream = Reassembly::new(Dsn(0), 10_000);
        for i in (1..200).rev() {
            stream.insert(SubflowId(i), Dsn(u64::from(i)), pattern(u64::from(i), 1), EDGE);
            assert!(stream.lanes.len() <= LANES_MAX);
        }
        assert!(stream.insert(SubflowId(0), Dsn(0), pattern(0, 1), EDGE).advanced);
        assert_eq!((stream.next(), stream.take(1000)), (Dsn(200), Some(pattern(0, 200))));
        // All lanes are empty now, so the first one serves any subflow.
        let before = stream.lanes.len();
        stream.insert(SubflowId(1000), Dsn(300), pattern(300, 1), EDGE);
        assert_eq!((stream.lanes.len(), stream.lanes[0].subflow), (before, SubflowId(1000)));
    }
}
