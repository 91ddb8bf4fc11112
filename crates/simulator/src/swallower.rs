//! A relay that acknowledges the source's data without delivering them.

use core::any::Any;

use network::{DropCause, Gate, Medium, MediumOutput, Packet};
use units::Instant;
use wire::mptcp::{DataSeq, Dss, MptcpOption};
use wire::{Flags, Segment, Timestamps};

use crate::relay::{DESTINATION_GATE, SOURCE_GATE};

/// Sits between [`SOURCE_GATE`] and [`DESTINATION_GATE`]. Before a given time it only passes packets on.
#[derive(Debug)]
pub struct Swallower {
    from: Instant,
    forges_data_acks: bool,
    swallowed: u64,
}

impl Swallower {
    /// Swallows data from the time `from` on and answers each data segment with an ACK in the destination's name; with
    /// `forges_data_acks`, also with a DATA_ACK.
    pub fn new(from: Instant, forges_data_acks: bool) -> Self {
        Self { from, forges_data_acks, swallowed: 0 }
    }

    /// Returns the number of swallowed segments.
    pub const fn swallowed(&self) -> u64 {
        self.swallowed
    }

    /// The answer that the destination would send if it had `data`.
    fn answer(&self, data: &Segment) -> Segment {
        let mut answer = Segment::new(data.dst, data.src);
        (answer.seq, answer.ack, answer.window) = (data.ack, data.end(), u16::MAX);
        answer.flags = Flags::ACK;
        // The destination's clock as the source saw it last: a later time would clash with the destination's own
        // segments.
        let stamps = data.options.timestamps;
        answer.options.timestamps = stamps.map(|theirs| Timestamps { value: theirs.echo, echo: theirs.value });
        if let Some(ack) = self.forges_data_acks.then(|| data_ack(data)).flatten() {
            answer.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: Some(ack), mapping: None, data_fin: false }));
        }
        answer
    }
}

/// The data sequence number after the data that a segment maps.
fn data_ack(data: &Segment) -> Option<DataSeq> {
    let mapping = data.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Dss(dss) => dss.mapping,
        _ => None,
    })?;
    Some(match mapping.dsn {
        DataSeq::Short(dsn) => DataSeq::Short(dsn.wrapping_add(mapping.len.into())),
        DataSeq::Long(dsn) => DataSeq::Long(dsn.wrapping_add(mapping.len.into())),
    })
}

impl Medium for Swallower {
    fn gates(&self) -> u16 {
        2
    }

    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
        let Some((gate, mut packet)) = packet else { return };
        if gate == DESTINATION_GATE || now < self.from {
            let opposite = if gate == SOURCE_GATE { DESTINATION_GATE } else { SOURCE_GATE };
            return out.forward(opposite, packet);
        }
        let Some(data) = packet.parse().filter(|segment| !segment.payload.is_empty()) else {
            return out.forward(DESTINATION_GATE, packet);
        };
        self.swallowed += 1;
        let answer = out.make(self.answer(data));
        out.forward(SOURCE_GATE, answer);
        out.discard(DESTINATION_GATE, packet, DropCause::Filtered);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn conserves(&self) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
