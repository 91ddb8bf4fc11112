//! A link that drops some packets for a while.

use core::ops::Range;

use network::{DropCause, Node, Output, Packet};
use units::Instant;

use super::world::CONTROL_PORT;

/// The dropped packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Channels,
    Data,
}

/// Drops channels, or everything else, for a span of time.
pub struct Stall {
    pub what: What,
    pub span: Range<Instant>,
}

impl Node for Stall {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        let is_control =
            packet.parse().is_some_and(|segment| [segment.src, segment.dst].iter().any(|at| at.port() == CONTROL_PORT));
        let is_meant = is_control == (self.what == What::Channels);
        if is_meant && self.span.contains(&now) {
            out.discard(packet, DropCause::Filtered);
        } else {
            out.forward(packet);
        }
    }
}
