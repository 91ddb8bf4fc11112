//! Random loss.

use units::{Instant, Prng};

use crate::{DropCause, LossModel, Node, Output, Packet};

/// Loses packets according to a [`LossModel`].
#[derive(Clone, Debug)]
pub struct Lossy {
    model: LossModel,
    prng: Prng,
}

impl Lossy {
    /// Loses the packets that `model` picks.
    pub fn new(model: LossModel) -> Self {
        Self { model, prng: Prng::new(0) }
    }
}

impl Node for Lossy {
    fn process(&mut self, packet: Option<Packet>, _now: Instant, out: &mut Output) {
        let Some(packet) = packet else { return };
        if self.model.loses(&mut self.prng) { out.discard(packet, DropCause::Loss) } else { out.forward(packet) }
    }

    fn seed(&mut self, prng: Prng) {
        self.prng = prng;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, packet};

    #[test]
    fn loses_about_a_tenth_and_the_same_by_seed() {
        let run = |seed| {
            let mut node = Lossy::new(LossModel::uniform(0.1));
            node.seed(Prng::new(seed));
            let mut lane = Lane::new(node);
            (0..1000).for_each(|at| lane.send(packet(100), Instant::from_micros(at)));
            lane.dropped
        };
        assert!((70..130).contains(&run(1).len()));
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
