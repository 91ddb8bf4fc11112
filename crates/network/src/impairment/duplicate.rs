//! Duplication.

use units::{Instant, Prng};

use crate::{Node, Output, Packet};

/// Duplicates packets with a probability.
#[derive(Clone, Debug)]
pub struct Duplicate {
    probability: f64,
    prng: Prng,
}

impl Duplicate {
    /// Duplicates each packet independently with `probability`.
    pub fn new(probability: f64) -> Self {
        Self { probability, prng: Prng::new(0) }
    }
}

impl Node for Duplicate {
    fn process(&mut self, packet: Option<Packet>, _now: Instant, out: &mut Output) {
        let Some(packet) = packet else { return };
        let copy = self.prng.chance(self.probability).then(|| packet.duplicate());
        out.forward(packet);
        copy.into_iter().for_each(|copy| out.forward(copy));
    }

    fn conserves(&self) -> bool {
        false
    }

    fn seed(&mut self, prng: Prng) {
        self.prng = prng;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, packet, segment};

    #[test]
    fn the_copy_equals_the_original() {
        let mut lane = Lane::new(Duplicate::new(1.0));
        lane.send(packet(100), Instant::ZERO);
        assert_eq!(lane.segments(), [segment(60), segment(60)]);
    }

    #[test]
    fn probability_zero_passes_one() {
        let mut lane = Lane::new(Duplicate::new(0.0));
        lane.send(packet(100), Instant::ZERO);
        assert_eq!(lane.arrived.len(), 1);
    }
}
