//! A fixed delay.

use std::collections::VecDeque;

use units::{Duration, Instant};

use crate::{Amount, Node, Output, Packet};

/// Delays every packet by a fixed time.
#[derive(Debug)]
pub struct Delay {
    delay: Duration,
    held: VecDeque<(Instant, Packet)>,
}

impl Delay {
    /// Creates a node that delays packets by `delay`.
    pub fn new(delay: Duration) -> Self {
        Self { delay, held: VecDeque::new() }
    }
}

impl Node for Delay {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        if let Some(packet) = packet {
            self.held.push_back((now + self.delay, packet));
        }
        while self.held.front().is_some_and(|(due, _)| *due <= now) {
            self.held.pop_front().into_iter().for_each(|(_, packet)| out.forward(packet));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, arrivals, packet};

    #[test]
    fn each_packet_waits_its_time() {
        let mut lane = Lane::new(Delay::new(Duration::from_millis(5)));
        lane.send(packet(100), Instant::ZERO);
        lane.send(packet(200), Instant::from_millis(3));
        assert_eq!(lane.node.held(), Amount { packets: 2, bytes: 300 });
        lane.send(packet(300), Instant::from_millis(5));
        lane.run();
        assert_eq!(arrivals(&lane), [(5_000, 100), (8_000, 200), (10_000, 300)]);
    }
}
