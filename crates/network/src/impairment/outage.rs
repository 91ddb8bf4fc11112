//! A link that goes down and up on a schedule.

use core::ops::Range;

use units::Instant;

use crate::{DropCause, Node, Output, Packet};

/// Drops everything while down. Behind a link, it also drops the packets that were on the wire.
#[derive(Clone, Debug)]
pub struct Outage {
    down: Vec<Range<Instant>>,
}

impl Outage {
    /// Creates a node that is down in each of these half-open spans.
    pub fn new(down: impl IntoIterator<Item = Range<Instant>>) -> Self {
        Self { down: down.into_iter().collect() }
    }
}

impl Node for Outage {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        let Some(packet) = packet else { return };
        let down = self.down.iter().any(|span| span.contains(&now));
        if down { out.discard(packet, DropCause::Outage) } else { out.forward(packet) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, arrivals, packet};

    #[test]
    fn down_from_the_start_of_a_span_and_up_at_its_end() {
        let ms = Instant::from_millis;
        let mut lane = Lane::new(Outage::new([ms(2)..ms(4), ms(6)..ms(7)]));
        (0..8).for_each(|at| lane.send(packet(100 + at as u32), ms(at)));
        assert_eq!(arrivals(&lane), [(0, 100), (1_000, 101), (4_000, 104), (5_000, 105), (7_000, 107)]);
        assert_eq!(lane.dropped, [2_000, 3_000, 6_000].map(|at| (at, DropCause::Outage)));
    }
}
