//! Merges segments, as receive offload and some proxies do.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use bytes::BytesMut;
use units::{Duration, Instant};
use wire::{Flags, Payload, Segment};

use crate::{Amount, Node, Output, Packet};

type Flow = (SocketAddr, SocketAddr);

/// Holds a data segment for a while and appends later segments of the same flow that continue it.
///
/// The merged segment keeps the options of the first: the mappings of the others are lost (RFC 8684 section 3.3.1 asks
/// for mappings that survive this). Segments that differ in ECN marks are not merged, as in receive offload: a mark would
/// be lost, or count for all (RFC 3168 section 5.3).
#[derive(Debug)]
pub struct Merge {
    payload_max: usize,
    hold: Duration,
    held: BTreeMap<Flow, (Instant, Packet)>,
}

impl Merge {
    /// Merges up to `payload_max_bytes` octets of data per segment, as far as an IP packet holds them, and holds each
    /// segment for at most `hold`.
    pub fn new(payload_max_bytes: usize, hold: Duration) -> Self {
        Self { payload_max: payload_max_bytes, hold, held: BTreeMap::new() }
    }

    fn release_due(&mut self, now: Instant, out: &mut Output) {
        while let Some(flow) = self.held.iter().find(|(_, (due, _))| *due <= now).map(|(flow, _)| *flow) {
            self.release(flow, out);
        }
    }

    fn release(&mut self, flow: Flow, out: &mut Output) {
        self.held.remove(&flow).into_iter().for_each(|(_, packet)| out.forward(packet));
    }

    /// Appends `next` to the held segment of its flow if it continues that segment and fits; returns whether it did.
    fn try_join(&mut self, flow: Flow, next: &Segment) -> bool {
        let Some((_, held)) = self.held.get_mut(&flow) else { return false };
        let fits = held.segment().is_some_and(|first| {
            let continues = first.end() == next.seq && first.ecn == next.ecn;
            let payload_fits = first.payload.len() + next.payload.len() <= self.payload_max;
            continues && payload_fits && first.emitted_len() + next.payload.len() <= Segment::PACKET_BYTES_MAX
        });
        fits && held.edit(|first| join(first, next))
    }

    fn take(&mut self, packet: Packet, now: Instant, out: &mut Output) {
        let Some(segment) = packet.segment() else { return out.forward(packet) };
        let flow = (segment.src, segment.dst);
        let mergeable = !segment.payload.is_empty() && !segment.flags.intersects(Flags::SYN | Flags::RST | Flags::FIN);
        if mergeable && self.try_join(flow, segment) {
            return out.absorb(packet);
        }
        self.release(flow, out);
        if mergeable {
            self.held.insert(flow, (now + self.hold, packet));
        } else {
            out.forward(packet);
        }
    }
}

/// Appends `next` and takes over its acknowledgement and window, which are newer.
fn join(first: &mut Segment, next: &Segment) {
    if let Err(next_payload) = first.payload.try_append(next.payload.clone()) {
        let mut octets = BytesMut::from(first.payload.to_bytes());
        octets.extend_from_slice(&next_payload.to_bytes());
        first.payload = Payload::from(octets.freeze());
    }
    first.flags |= next.flags;
    first.ack = next.ack;
    first.window = next.window;
}

impl Node for Merge {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        self.release_due(now, out);
        if let Some(mut packet) = packet {
            packet.parse();
            self.take(packet, now, out);
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.held.values().map(|(due, _)| *due).min()
    }

    fn held(&self) -> Amount {
        let mut held = Amount::default();
        self.held.values().for_each(|(_, packet)| held.add(packet));
        held
    }

    fn conserves(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, segment};
    use units::SeqNr;
    use wire::Ecn;

    fn piece(seq: u32, octets: &'static [u8]) -> Segment {
        Segment { seq: SeqNr(seq), payload: Payload::from(octets.to_vec()), flags: Flags::ACK, ..segment(0) }
    }

    #[test]
    fn adjacent_segments_become_one() {
        let mut lane = Lane::new(Merge::new(8, Duration::from_millis(1)));
        let last = Segment { ack: SeqNr(9), window: 7, ..piece(103, b"def") };
        // The fourth segment would exceed 8 octets: it starts a new one.
        lane.send_all([piece(100, b"abc"), last, piece(106, b"ghi")]);
        lane.run();
        let merged = Segment { ack: SeqNr(9), window: 7, ..piece(100, b"abcdef") };
        assert_eq!(lane.segments(), [merged, piece(106, b"ghi")]);
        assert_eq!(lane.arrived[1].0, 1_000);
    }

    #[test]
    fn no_packet_outgrows_ip() {
        let mut lane = Lane::new(Merge::new(100_000, Duration::from_millis(1)));
        static OCTETS: [u8; 1448] = [0; 1448];
        lane.send_all((0..100).map(|number| piece(100 + 1448 * number, &OCTETS)));
        lane.run();
        let lens: Vec<_> = lane.segments().iter().map(Segment::emitted_len).collect();
        assert_eq!(lens.len(), 3, "{lens:?}");
        assert!(lens.iter().all(|len| *len <= Segment::PACKET_BYTES_MAX), "{lens:?}");
    }

    #[test]
    fn congestion_marks_survive() {
        let mut lane = Lane::new(Merge::new(100, Duration::from_millis(1)));
        let with = |ecn, seq, octets| Segment { ecn, ..piece(seq, octets) };
        let (capable, marked) = (Ecn::Capable0, Ecn::CongestionExperienced);
        lane.send_all([
            with(capable, 100, b"abc"),
            with(capable, 103, b"de"),
            with(marked, 105, b"f"),
            with(marked, 106, b"g"),
            with(capable, 107, b"h"),
        ]);
        lane.run();
        let merged = [with(capable, 100, b"abcde"), with(marked, 105, b"fg"), with(capable, 107, b"h")];
        assert_eq!(lane.segments(), merged);
    }

    #[test]
    fn holes_and_controls_release_what_is_held() {
        let mut lane = Lane::new(Merge::new(100, Duration::from_millis(1)));
        let fin = Segment { flags: Flags::ACK | Flags::FIN, ..piece(210, b"z") };
        lane.send_all([piece(100, b"abc"), piece(200, b"0123456789"), fin.clone()]);
        assert_eq!(lane.segments(), [piece(100, b"abc"), piece(200, b"0123456789"), fin]);
        assert_eq!(lane.node.held(), Amount::default());
    }
}
