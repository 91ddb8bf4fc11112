//! An application-level gateway: edits the octets of a stream and keeps TCP's sequence numbers consistent.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use units::{Instant, SeqNr};
use wire::{Flags, Payload, Segment};

use crate::{Node, Output, Packet};

/// One change to a stream. Positions count octets of data from the start of the subflow.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Overwrites octets; the length stays the same.
    Overwrite {
        /// Position of the first octet.
        at: u32,
        /// The new octets.
        octets: Bytes,
    },
    /// Inserts octets: all later sequence numbers shift, and acknowledgements shift back.
    Insert {
        /// Position of the octet before which the new ones go.
        at: u32,
        /// The new octets.
        octets: Bytes,
    },
}

/// Edits every stream from one address, as gateways do that rewrite addresses in FTP or SIP.
///
/// TCP checksums are correct afterwards, so only DSS checksums detect the change (RFC 8684 section 3.3.1). Both
/// directions must pass through the node, except where it overwrites all streams.
#[derive(Debug)]
pub struct EditStream {
    /// `None` for all addresses.
    from: Option<IpAddr>,
    edit: Edit,
    streams: BTreeMap<(SocketAddr, SocketAddr), Stream>,
}

/// An edited stream: it tells positions from sequence numbers, which begin anew every 4 GiB.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Sequence number of the first octet of data.
    start: SeqNr,
    /// The highest position that a segment has reached.
    highest: i64,
}

impl Stream {
    /// Returns the position with this sequence number that is nearest to the highest one so far.
    fn position(&self, seq: SeqNr) -> i64 {
        let highest = self.start + self.highest as u32;
        self.highest + i64::from(seq.since(highest) as i32)
    }
}

impl EditStream {
    /// Edits the streams that `from` sends.
    pub fn new(from: IpAddr, edit: Edit) -> Self {
        Self { from: Some(from), edit, streams: BTreeMap::new() }
    }

    /// Overwrites octets from position `at` on in every stream that passes. Only the direction of these streams needs to
    /// pass.
    pub fn overwriting(at: u32, octets: Bytes) -> Self {
        Self { from: None, edit: Edit::Overwrite { at, octets }, streams: BTreeMap::new() }
    }

    fn pass(&mut self, segment: &mut Segment) {
        if self.from.is_none_or(|from| segment.src.ip() == from) {
            let flow = (segment.src, segment.dst);
            let start = segment.seq + 1;
            let is_new = |stream: &Stream| stream.start != start;
            if segment.flags.contains(Flags::SYN) && self.streams.get(&flow).is_none_or(is_new) {
                self.streams.insert(flow, Stream { start, highest: 0 });
            }
            if let Some(stream) = self.streams.get_mut(&flow) {
                let position = stream.position(segment.seq);
                stream.highest = stream.highest.max(position + segment.payload.len() as i64);
                self.edit.forward(segment, position);
            }
        } else if let Some(stream) = self.streams.get(&(segment.dst, segment.src)) {
            self.edit.backward(segment, stream);
        }
    }
}

impl Edit {
    /// Edits a segment that begins at `position`.
    fn forward(&self, segment: &mut Segment, position: i64) {
        match self {
            Self::Overwrite { at, octets } => overwrite(segment, position, i64::from(*at), octets),
            Self::Insert { at, octets } => insert(segment, position, i64::from(*at), octets),
        }
    }

    /// Translates acknowledgements to the original sequence numbers.
    fn backward(&self, segment: &mut Segment, stream: &Stream) {
        let Self::Insert { at, octets } = self else { return };
        let at = i64::from(*at);
        let original = |seq: SeqNr| {
            let position = stream.position(seq);
            if position <= at { seq } else { stream.start + (position - octets.len() as i64).max(at) as u32 }
        };
        segment.ack = original(segment.ack);
        for block in &mut segment.options.sack {
            (block.start, block.end) = (original(block.start), original(block.end));
        }
    }
}

fn overwrite(segment: &mut Segment, position: i64, at: i64, octets: &[u8]) {
    let (end, at_end) = (position + segment.payload.len() as i64, at + octets.len() as i64);
    let (from, until) = (position.max(at), end.min(at_end));
    if from >= until {
        return;
    }
    let mut data = BytesMut::from(segment.payload.to_bytes());
    data[(from - position) as usize..(until - position) as usize]
        .copy_from_slice(&octets[(from - at) as usize..(until - at) as usize]);
    segment.payload = Payload::from(data.freeze());
}

fn insert(segment: &mut Segment, position: i64, at: i64, octets: &[u8]) {
    let end = position + segment.payload.len() as i64;
    if segment.flags.contains(Flags::SYN) || end <= at && position != at {
        return;
    }
    if position > at {
        segment.seq += octets.len() as u32;
    } else if !segment.payload.is_empty() {
        let data = segment.payload.to_bytes();
        let (front, back) = data.split_at((at - position) as usize);
        segment.payload = Payload::from([front, octets, back].concat());
    }
}

impl Node for EditStream {
    fn process(&mut self, packet: Option<Packet>, _now: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        packet.edit(|segment| self.pass(segment));
        out.forward(packet);
    }

    fn conserves(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CLIENT, Lane, SERVER, segment};
    use wire::SackBlock;

    const ISN: u32 = u32::MAX - 2;

    /// The octet at position 0 has sequence number ISN + 1.
    fn data(position: u32, octets: &'static [u8]) -> Segment {
        Segment { seq: SeqNr(ISN) + 1 + position, payload: Payload::from(octets.to_vec()), ..segment(0) }
    }

    fn syn() -> Segment {
        Segment { seq: SeqNr(ISN), flags: Flags::SYN, ..segment(0) }
    }

    fn answer(position: u32) -> Segment {
        let ack = SeqNr(ISN) + 1 + position;
        Segment { src: SERVER, dst: CLIENT, flags: Flags::ACK, ack, ..segment(0) }
    }

    fn run(edit: Edit, segments: Vec<Segment>) -> Vec<Segment> {
        let mut lane = Lane::new(EditStream::new(CLIENT.ip(), edit));
        lane.send_all([syn()]);
        lane.send_all(segments);
        lane.segments().split_off(1)
    }

    #[test]
    fn overwrites_across_segments() {
        let edit = Edit::Overwrite { at: 2, octets: Bytes::from_static(b"XYZ") };
        let passed = run(edit, vec![data(0, b"abc"), data(3, b"def"), data(6, b"ghi"), answer(9)]);
        assert_eq!(passed, [data(0, b"abX"), data(3, b"YZf"), data(6, b"ghi"), answer(9)]);
    }

    #[test]
    fn inserts_and_shifts_what_follows() {
        let edit = Edit::Insert { at: 4, octets: Bytes::from_static(b"--") };
        let passed = run(edit, vec![data(0, b"abc"), data(3, b"def"), data(6, b"ghi"), data(3, b"def")]);
        assert_eq!(passed, [data(0, b"abc"), data(3, b"d--ef"), data(8, b"ghi"), data(3, b"d--ef")]);
    }

    #[test]
    fn inserts_before_a_segment_that_starts_there() {
        let edit = Edit::Insert { at: 3, octets: Bytes::from_static(b"-") };
        assert_eq!(run(edit, vec![data(0, b"abc"), data(3, b"def")]), [data(0, b"abc"), data(3, b"-def")]);
    }

    #[test]
    fn acknowledgements_of_the_inserted_are_of_the_octet_before() {
        let edit = Edit::Insert { at: 4, octets: Bytes::from_static(b"--") };
        let mut sacked = answer(5);
        sacked.options.sack.push(SackBlock { start: answer(8).ack, end: answer(11).ack });
        let passed = run(edit, vec![answer(3), sacked, answer(6), answer(7)]);
        let acks: Vec<u32> = passed.iter().map(|segment| segment.ack.since(SeqNr(ISN) + 1)).collect();
        assert_eq!(acks, [3, 4, 4, 5]);
        assert_eq!(passed[1].options.sack[0], SackBlock { start: answer(6).ack, end: answer(9).ack });
    }

    /// Sequence numbers begin anew after 4 GiB, positions do not.
    #[test]
    fn long_streams_are_edited_once() {
        let gibibytes = (1..=5_u32).map(|number| number.wrapping_mul(1 << 30));
        let overwrite = Edit::Overwrite { at: 2, octets: Bytes::from_static(b"XYZ") };
        let sent: Vec<_> = gibibytes.clone().map(|position| data(position, b"abcdef")).collect();
        assert_eq!(run(overwrite, sent.clone()), sent);
        let insert = Edit::Insert { at: 4, octets: Bytes::from_static(b"--") };
        let both_ways = gibibytes.flat_map(|position| [data(position, b"abcdef"), answer(position.wrapping_add(8))]);
        for passed in run(insert, both_ways.collect()).chunks(2) {
            let shift = |seq: SeqNr| seq.since(SeqNr(ISN) + 1) % (1 << 30);
            assert_eq!((shift(passed[0].seq), shift(passed[1].ack)), (2, 6));
        }
    }
}
