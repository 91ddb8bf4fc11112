//! What passed over each uplink, of all subflows that ever were.
//!
//! The kernel forgets a subflow when it ends: what passed since the last look is then not counted.

use std::collections::BTreeMap;

use linux::mptcp::Traffic;
use units::Duration;

use crate::proxy::status::UplinkMeter;

/// Meters of all uplinks, by position.
#[derive(Debug, Default)]
pub struct Meters {
    /// Of subflows that are no more.
    past: BTreeMap<usize, UplinkMeter>,
    /// Of those that were there at the last look, by their cookies.
    living: BTreeMap<u64, (usize, Traffic)>,
}

/// An uplink at the last look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// What passed.
    pub meter: UplinkMeter,
    /// Subflows.
    pub subflows: usize,
    /// Least round-trip time.
    pub base_rtt: Option<Duration>,
    /// How much longer it is now, on the worst of the subflows.
    pub queue: Duration,
}

impl Meters {
    /// Looks at all subflows: cookie, uplink, and what passed.
    pub fn look(&mut self, subflows: impl IntoIterator<Item = (u64, usize, Traffic)>) {
        let now: BTreeMap<u64, (usize, Traffic)> =
            subflows.into_iter().map(|(cookie, uplink, traffic)| (cookie, (uplink, traffic))).collect();
        let before = core::mem::replace(&mut self.living, now);
        for (cookie, (uplink, traffic)) in before {
            if !self.living.contains_key(&cookie) {
                let past = self.past.entry(uplink).or_default();
                *past = past.plus(meter(traffic));
            }
        }
    }

    /// What is known of an uplink.
    pub fn read(&self, uplink: usize) -> Reading {
        let mut reading = Reading { meter: self.past.get(&uplink).copied().unwrap_or_default(), ..Reading::default() };
        for (_, traffic) in self.living.values().filter(|(of, _)| *of == uplink) {
            reading.meter = reading.meter.plus(meter(*traffic));
            reading.subflows += 1;
            if !traffic.rtt_min.is_zero() {
                reading.base_rtt = Some(reading.base_rtt.map_or(traffic.rtt_min, |least| least.min(traffic.rtt_min)));
            }
            reading.queue = reading.queue.max(traffic.rtt.saturating_sub(traffic.rtt_min));
        }
        reading
    }
}

fn meter(traffic: Traffic) -> UplinkMeter {
    UplinkMeter {
        up_bytes: traffic.up_bytes,
        down_bytes: traffic.down_bytes,
        sent_segments: traffic.sent_segments,
        retransmitted_segments: traffic.retransmitted_segments,
        ..UplinkMeter::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(down_bytes: u64) -> Traffic {
        let (rtt, rtt_min) = (Duration::from_millis(30), Duration::from_millis(20));
        Traffic { rtt, rtt_min, down_bytes, ..Traffic::default() }
    }

    #[test]
    fn what_ended_still_counts() {
        let mut meters = Meters::default();
        meters.look([(1, 0, traffic(100)), (2, 1, traffic(10))]);
        meters.look([(1, 0, traffic(300)), (3, 1, traffic(5))]);
        meters.look([(3, 1, traffic(7))]);
        let (first, second) = (meters.read(0), meters.read(1));
        assert_eq!((first.meter.down_bytes, first.subflows, first.base_rtt), (300, 0, None));
        assert_eq!((second.meter.down_bytes, second.subflows), (17, 1));
        assert_eq!((second.base_rtt, second.queue), (Some(Duration::from_millis(20)), Duration::from_millis(10)));
    }
}
