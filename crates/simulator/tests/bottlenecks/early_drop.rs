//! Random early drop before a link of the same rate: losses hit packets instead of bursts, as in fluid models.

use network::{DropCause, Node, Output, Packet};
use units::{Duration, Instant, Prng, Rate};

const PACKET_BYTES: u64 = 1500;

/// How the fraction of dropped packets grows with the queue.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each test that includes this module builds one of them")]
pub enum DropCurve {
    /// None up to 10 packets, all from 150 on; in between, the fraction is the square of the relative position.
    Square,
    /// The testbed of draft-khalili-mptcp-performance-issues-06, section 3: none up to 25 packets, a tenth at 50, all
    /// from 100 on, linear in between, for 10 Mbit/s; the numbers of packets are proportional to the rate.
    Testbed,
}

impl DropCurve {
    fn probability(self, wait: Duration, rate: Rate) -> f64 {
        let packets_at = |rate: Rate| wait.as_secs_f64() / rate.time_to_send(PACKET_BYTES).as_secs_f64();
        match self {
            Self::Square => {
                let linear = way(packets_at(rate), 10.0, 150.0);
                linear * linear
            }
            Self::Testbed => {
                let packets = packets_at(Rate::from_mbps(10));
                0.1 * way(packets, 25.0, 50.0) + 0.9 * way(packets, 50.0, 100.0)
            }
        }
    }
}

/// Position of `packets` between `none` (0) and `all` (1).
fn way(packets: f64, none: f64, all: f64) -> f64 {
    ((packets - none) / (all - none)).clamp(0.0, 1.0)
}

/// Models the queue of the link that follows, which must have room for everything that passes here.
pub struct EarlyDrop {
    rate: Rate,
    curve: DropCurve,
    /// When the link will have sent everything passed so far.
    empty_at: Instant,
    prng: Prng,
}

impl EarlyDrop {
    pub fn new(rate: Rate, curve: DropCurve) -> Self {
        Self { rate, curve, empty_at: Instant::ZERO, prng: Prng::new(0) }
    }
}

impl Node for EarlyDrop {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        let Some(packet) = packet else { return };
        let probability = self.curve.probability(self.empty_at.saturating_since(now), self.rate);
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
