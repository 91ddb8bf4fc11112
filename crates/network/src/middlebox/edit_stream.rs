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
/// directions must pass through the node.
#[derive(Debug)]
pub struct EditStream {
    from: IpAddr,
    edit: Edit,
    /// Sequence number of the first octet of data of each edited stream.
    streams: BTreeMap<(SocketAddr, SocketAddr), SeqNr>,
}

impl EditStream {
    /// Edits the streams that `from` sends.
    pub fn new(from: IpAddr, edit: Edit) -> Self {
        Self { from, edit, streams: BTreeMap::new() }
    }

    fn pass(&mut self, segment: &mut Segment) {
        if segment.src.ip() == self.from {
            if segment.flags.contains(Flags::SYN) {
                self.streams.insert((segment.src, segment.dst), segment.seq + 1);
            }
            if let Some(&start) = self.streams.get(&(segment.src, segment.dst)) {
                self.edit.forward(segment, start);
            }
        } else if let Some(&start) = self.streams.get(&(segment.dst, segment.src)) {
            self.edit.backward(segment, start);
        }
    }
}

impl Edit {
    fn forward(&self, segment: &mut Segment, start: SeqNr) {
        match self {
            Self::Overwrite { at, octets } => overwrite(segment, start + *at, octets),
            Self::Insert { at, octets } => insert(segment, start + *at, octets),
        }
    }

    /// Translates acknowledgements to the original sequence numbers.
    fn backward(&self, segment: &mut Segment, start: SeqNr) {
        let Self::Insert { at, octets } = self else { return };
        let at = start + *at;
        let original = |seq: SeqNr| {
            if seq.before_or_at(at) { seq } else { (seq - octets.len() as u32).max(at) }
        };
        segment.ack = original(segment.ack);
        for block in &mut segment.options.sack {
            (block.start, block.end) = (original(block.start), original(block.end));
        }
    }
}

fn overwrite(segment: &mut Segment, at: SeqNr, octets: &[u8]) {
    let touched = |index: usize| (segment.seq + index as u32).in_window(at, octets.len() as u32);
    let mut data = BytesMut::from(segment.payload.to_bytes());
    let mut changed = false;
    for (index, octet) in data.iter_mut().enumerate().filter(|(index, _)| touched(*index)) {
        *octet = octets[(segment.seq + index as u32).since(at) as usize];
        changed = true;
    }
    if changed {
        segment.payload = Payload::from(data.freeze());
    }
}

fn insert(segment: &mut Segment, at: SeqNr, octets: &[u8]) {
    let end = segment.seq + segment.payload.len() as u32;
    if segment.flags.contains(Flags::SYN) || end.before_or_at(at) && segment.seq != at {
        return;
    }
    if segment.seq.after(at) {
        segment.seq += octets.len() as u32;
    } else if !segment.payload.is_empty() {
        let data = segment.payload.to_bytes();
        let (front, back) = data.split_at(at.since(segment.seq) as usize);
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
}
