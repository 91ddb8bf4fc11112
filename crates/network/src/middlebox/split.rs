//! Splits segments, as segmentation offload and some proxies do.

use units::Instant;
use wire::{Flags, Segment};

use crate::{Node, Output, Packet};

/// Cuts segments above a maximum payload into pieces; every piece keeps the options.
#[derive(Clone, Debug)]
pub struct Split {
    payload_max: usize,
}

impl Split {
    /// Cuts into pieces of at most `payload_max_bytes` octets of data, at least one.
    pub fn new(payload_max_bytes: usize) -> Self {
        Self { payload_max: payload_max_bytes.max(1) }
    }

    /// Cuts the first piece off `rest`. FIN and PSH stay with the last piece, CWR with the first.
    fn cut(&self, rest: &mut Segment) -> Segment {
        let front = rest.payload.split_to(self.payload_max);
        let flags = rest.flags.without(Flags::FIN | Flags::PSH);
        let piece = Segment { payload: front, flags, ..rest.clone() };
        rest.seq = piece.end();
        rest.flags = rest.flags.without(Flags::CWR | Flags::SYN);
        piece
    }
}

impl Node for Split {
    fn process(&mut self, packet: Option<Packet>, _now: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        let mut pieces = Vec::new();
        packet.edit(|segment| {
            while segment.payload.len() > self.payload_max {
                pieces.push(self.cut(segment));
            }
        });
        pieces.into_iter().for_each(|piece| out.forward(packet.remade(Packet::from_segment(piece))));
        out.forward(packet);
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

    #[test]
    fn pieces_are_adjacent_and_the_last_one_ends_the_stream() {
        let whole = Segment { seq: SeqNr(u32::MAX - 9), flags: Flags::ACK | Flags::FIN | Flags::CWR, ..segment(250) };
        let mut lane = Lane::new(Split::new(100));
        lane.send_all([whole.clone()]);
        let pieces = lane.segments();
        let summary: Vec<_> = pieces.iter().map(|piece| (piece.seq.0, piece.payload.len(), piece.flags)).collect();
        let first_flags = Flags::ACK | Flags::CWR;
        let expected = [(u32::MAX - 9, 100, first_flags), (90, 100, Flags::ACK), (190, 50, Flags::ACK | Flags::FIN)];
        assert_eq!(summary, expected);
        let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.payload.to_bytes()).collect();
        assert_eq!(joined, whole.payload.to_bytes());
    }

    #[test]
    fn pieces_of_a_copy_are_copies() {
        let mut lane = Lane::new(Split::new(100));
        lane.send(Packet::from_segment(segment(250)).duplicate(), Instant::ZERO);
        assert!(lane.arrived.len() == 3 && lane.arrived.iter().all(|(_, piece)| piece.is_copy()));
    }

    #[test]
    fn small_segments_pass() {
        let mut lane = Lane::new(Split::new(100));
        lane.send_all([segment(100), segment(0)]);
        assert_eq!(lane.segments(), [segment(100), segment(0)]);
    }
}
