//! Reordering.

use std::collections::VecDeque;

use units::{Duration, Instant, Prng};

use crate::{Amount, Node, Output, Packet};

/// Holds some packets back until later ones overtake them.
#[derive(Debug)]
pub struct Reorder {
    probability: f64,
    delay_max: Duration,
    prng: Prng,
    /// Earliest first.
    held: VecDeque<(Instant, Packet)>,
}

impl Reorder {
    /// Holds each packet back with `probability`, for a time uniform in (0, `delay_max`].
    pub fn new(probability: f64, delay_max: Duration) -> Self {
        Self { probability, delay_max, prng: Prng::new(0), held: VecDeque::new() }
    }

    fn hold(&mut self, packet: Packet, now: Instant) {
        let due = now + Duration::from_nanos(1 + self.prng.below(self.delay_max.as_nanos()));
        let position = self.held.partition_point(|(other, _)| *other <= due);
        self.held.insert(position, (due, packet));
    }
}

impl Node for Reorder {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        while self.held.front().is_some_and(|(due, _)| *due <= now) {
            self.held.pop_front().into_iter().for_each(|(_, packet)| out.forward(packet));
        }
        match packet {
            Some(packet) if self.prng.chance(self.probability) => self.hold(packet, now),
            Some(packet) => out.forward(packet),
            None => {}
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.held.front().map(|(due, _)| *due)
    }

    fn held(&self) -> Amount {
        let mut held = Amount::default();
        self.held.iter().for_each(|(_, packet)| held.add(packet));
        held
    }

    fn seed(&mut self, prng: Prng) {
        self.prng = prng;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, arrivals, packet};

    #[test]
    fn some_are_overtaken_none_is_lost_and_none_waits_too_long() {
        let mut lane = Lane::new(Reorder::new(0.2, Duration::from_millis(3)));
        (0..200).for_each(|number| lane.send(packet(100 + number), Instant::from_millis(u64::from(number))));
        lane.run();
        let arrivals = arrivals(&lane);
        assert_eq!(arrivals.len(), 200);
        assert!(arrivals.windows(2).filter(|pair| pair[0].1 > pair[1].1).count() > 5);
        assert!(arrivals.iter().all(|(at_us, len)| at_us - u64::from(len - 100) * 1000 <= 3_000));
    }
}
