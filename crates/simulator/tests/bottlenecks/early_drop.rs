//! Random early drop before a link of the same rate, so that losses fall on packets, not on bursts: the losses of the
//! fluid models.

use network::{DropCause, Node, Output, Packet};
use units::{Duration, Instant, Prng, Rate};

/// Drops none while the queue is shorter than the first, and all where it is longer than the second; in between as many as
/// the square of the way there says.
const QUEUE_PACKETS: (f64, f64) = (10.0, 150.0);
const PACKET_BYTES: u64 = 1500;

/// Keeps count of the queue of the link that follows, which must have room for all that passes here.
pub struct EarlyDrop {
    rate: Rate,
    /// When the link will have sent everything that passed so far.
    empty_at: Instant,
    prng: Prng,
}

impl EarlyDrop {
    pub fn new(rate: Rate) -> Self {
        Self { rate, empty_at: Instant::ZERO, prng: Prng::new(0) }
    }

    fn drop_probability(&self, wait: Duration) -> f64 {
        let queue_packets = wait.as_secs_f64() / self.rate.time_to_send(PACKET_BYTES).as_secs_f64();
        let way = (queue_packets - QUEUE_PACKETS.0) / (QUEUE_PACKETS.1 - QUEUE_PACKETS.0);
        way.clamp(0.0, 1.0).powi(2)
    }
}

impl Node for EarlyDrop {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        let Some(packet) = packet else { return };
        let probability = self.drop_probability(self.empty_at.saturating_since(now));
        if self.prng.chance(probability) {
            out.discard(packet, DropCause::QueueFull);
        } else {
            self.empty_at = self.empty_at.max(now) + self.rate.time_to_send(packet.wire_len().into());
            out.forward(packet);
        }
    }

    fn seed(&mut self, prng: Prng) {
        self.prng = prng;
    }
}
