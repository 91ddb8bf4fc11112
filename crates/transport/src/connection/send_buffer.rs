//! The data stream towards the peer, kept until it is acknowledged at the data level (RFC 8684 section 3.3.5).

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use units::Dsn;
use units::narrow::usize_from;
use wire::Payload;

/// Shorter writes are gathered to fill segments.
const GATHER_BELOW: usize = 16 << 10;
/// Length at which a gathered piece ends.
pub(super) const GATHER_TO: usize = 64 << 10;

/// Octets `[start, end)` of the data stream, in the pieces that the application wrote.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    start: Dsn,
    end: Dsn,
    pieces: VecDeque<Payload>,
    /// Data sequence number of the piece last looked up, and its position: look-ups move forward.
    cursor: (Dsn, usize),
    limit: u64,
}

impl SendBuffer {
    pub(crate) fn new(start: Dsn, limit: u64) -> Self {
        Self { start, end: start, pieces: VecDeque::new(), cursor: (start, 0), limit }
    }

    /// Prefetches the pieces that are acknowledged and sent next.
    pub(crate) fn prefetch(&self) {
        self.pieces.front().into_iter().for_each(units::prefetch);
        self.pieces.back().into_iter().for_each(units::prefetch);
    }

    /// Returns the first octet not acknowledged.
    pub(crate) fn start(&self) -> Dsn {
        self.start
    }

    /// Returns the end of the octets written.
    pub(crate) fn end(&self) -> Dsn {
        self.end
    }

    /// Limits the buffer to `limit` octets from now on; if it holds more, nothing fits until enough are acknowledged.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Returns the limit of the buffer, octets.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the octets that still fit.
    pub(crate) fn capacity(&self) -> u64 {
        self.limit.saturating_sub(self.end.since(self.start))
    }

    /// Appends as much of `data` as fits, at most `max_bytes`; returns the number of octets taken.
    pub(crate) fn write(&mut self, data: Payload, max_bytes: u64) -> usize {
        let fits = usize::try_from(self.capacity().min(max_bytes)).unwrap_or(usize::MAX).min(data.len());
        if fits == 0 {
            return 0;
        }
        self.append(data.slice(0..fits));
        self.end += fits as u64;
        fits
    }

    fn append(&mut self, data: Payload) {
        let Some(last) = self.pieces.back_mut() else {
            return self.pieces.push_back(data);
        };
        let Err(data) = last.try_append(data) else { return };
        match (last, &data) {
            (Payload::Bytes(front), Payload::Bytes(back)) if back.len() < GATHER_BELOW && front.len() < GATHER_TO => {
                gather(front, back);
            }
            _ => self.pieces.push_back(data),
        }
    }

    /// Discards everything before `una`.
    pub(crate) fn acknowledge(&mut self, una: Dsn) {
        while let Some(front) = self.pieces.front_mut() {
            let acked = usize_from(una.since(self.start));
            if acked == 0 {
                break;
            }
            if acked < front.len() {
                front.advance(acked);
                self.start = una;
                if self.cursor.1 == 0 {
                    self.cursor.0 = una;
                }
                return;
            }
            self.start += front.len() as u64;
            self.pieces.pop_front();
            self.cursor.1 = self.cursor.1.saturating_sub(1);
            if self.cursor.0.before(self.start) {
                self.cursor = (self.start, 0);
            }
        }
    }

    /// Returns at most `max` octets from `dsn` on, which must be in the buffer; copies only across pieces.
    #[inline]
    pub(crate) fn read(&mut self, dsn: Dsn, max: usize) -> Payload {
        let (piece_start, position) = self.seek(dsn);
        let skip = usize_from(dsn.since(piece_start));
        let piece = &self.pieces[position];
        let wanted = max.min(usize_from(self.end.since(dsn)));
        match piece.get(skip, wanted) {
            Some(part) => part,
            None if wanted == 0 => Payload::Empty,
            None => self.join(piece.slice(skip..piece.len()), position, wanted),
        }
    }

    /// Returns `wanted` octets: `front`, which is the rest of the piece at `position`, and the octets after it.
    #[cold]
    fn join(&self, mut front: Payload, mut position: usize, wanted: usize) -> Payload {
        let mut joined = BytesMut::new();
        while front.len().max(joined.len()) < wanted {
            position += 1;
            let rest = wanted - front.len().max(joined.len());
            let piece = &self.pieces[position];
            let piece = piece.slice(0..piece.len().min(rest));
            if joined.is_empty() {
                match front.try_append(piece) {
                    Ok(()) => continue,
                    Err(piece) => {
                        joined.extend_from_slice(&front.to_bytes());
                        joined.extend_from_slice(&piece.to_bytes());
                    }
                }
            } else {
                joined.extend_from_slice(&piece.to_bytes());
            }
        }
        if joined.is_empty() { front } else { joined.freeze().into() }
    }

    /// Finds the piece that holds `dsn`; returns its start and its position.
    #[inline]
    fn seek(&mut self, dsn: Dsn) -> (Dsn, usize) {
        if dsn.before(self.cursor.0) {
            self.cursor = (self.start, 0);
        }
        loop {
            let (start, position) = self.cursor;
            let len = self.pieces[position].len() as u64;
            if dsn.since(start) < len {
                return self.cursor;
            }
            self.cursor = (start + len, position + 1);
        }
    }
}

/// Appends `back` to `front`, in place if `front` has no other owner.
pub(super) fn gather(front: &mut Bytes, back: &Bytes) {
    let mut joined = match core::mem::take(front).try_into_mut() {
        Ok(own) => own,
        Err(shared) => {
            let mut copy = BytesMut::with_capacity(GATHER_TO.max(shared.len() + back.len()));
            copy.extend_from_slice(&shared);
            copy
        }
    };
    joined.extend_from_slice(back);
    *front = joined.freeze();
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Pattern;

    fn pattern(offset: u64, len: u32) -> Payload {
        Payload::Pattern(Pattern { stream: 1, offset, len })
    }

    #[test]
    fn takes_what_fits_and_frees_what_is_acknowledged() {
        let mut buffer = SendBuffer::new(Dsn(100), 1000);
        assert_eq!(buffer.write(pattern(0, 600), u64::MAX), 600);
        assert_eq!(buffer.write(pattern(600, 600), u64::MAX), 400);
        assert_eq!(buffer.write(pattern(1000, 1), u64::MAX), 0);
        assert_eq!(buffer.read(Dsn(350), 100), pattern(250, 100));
        buffer.acknowledge(Dsn(400));
        assert_eq!((buffer.start(), buffer.end(), buffer.capacity()), (Dsn(400), Dsn(1100), 300));
        assert_eq!(buffer.read(Dsn(400), 5000), pattern(300, 700));
    }

    #[test]
    fn small_writes_share_segments() {
        let mut buffer = SendBuffer::new(Dsn(0), 1 << 20);
        for octet in 0..100_u8 {
            buffer.write(Payload::from(vec![octet; 10]), u64::MAX);
        }
        assert_eq!(buffer.pieces.len(), 1);
        let middle = buffer.read(Dsn(5), 20).to_bytes();
        assert_eq!(&middle[..], &[0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn reads_across_pieces_and_back_again() {
        let mut buffer = SendBuffer::new(Dsn(0), 1 << 20);
        for octet in 0..3_u8 {
            buffer.write(Payload::from(vec![octet; 20_000]), u64::MAX);
        }
        assert_eq!(buffer.pieces.len(), 3);
        let joint = buffer.read(Dsn(39_990), 20).to_bytes();
        assert_eq!(&joint[..], [[1; 10], [2; 10]].concat());
        let all = buffer.read(Dsn(10), 50_000).to_bytes();
        assert_eq!((all.len(), all[19_989], all[19_990], all[49_999]), (50_000, 0, 1, 2));
        buffer.acknowledge(Dsn(20_000));
        buffer.acknowledge(Dsn(40_000));
        assert_eq!(buffer.read(Dsn(40_000), 5).to_bytes()[..], [2; 5]);
    }
}
