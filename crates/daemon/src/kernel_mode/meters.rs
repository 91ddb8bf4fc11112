//! The traffic of each uplink, over all past and present subflows.
//!
//! The kernel tells the totals of a subflow. What was added to them since the look before belongs to the uplink that the
//! subflow is over at this look: a subflow may be over no uplink for a while, or over another one than before.
//!
//! When a subflow ends, the kernel reports its totals and forgets it. There is no report for the first subflow of a
//! connection that the peer ended first; for such a subflow the values of the last look count. Traffic from before the
//! daemon began does not count.

use std::collections::BTreeMap;

use linux::mptcp::{Ended, Ends, Traffic};
use units::Duration;

use crate::proxy::status::UplinkMeter;

/// A report that has not come after this many looks is no longer expected.
const LOOKS: u8 = 2;

/// Meters of all uplinks, by position.
#[derive(Debug, Default)]
pub struct Meters {
    /// Traffic so far.
    sums: BTreeMap<usize, UplinkMeter>,
    /// Subflows that have not ended, as far as is known, by cookie.
    subflows: BTreeMap<u64, Subflow>,
    /// Subflows that no look has seen, with the number of looks that missed them. They may end before the next one.
    expected: BTreeMap<Ends, u8>,
}

/// A subflow at the last look that has seen it.
#[derive(Clone, Copy, Debug)]
struct Subflow {
    uplink: Option<usize>,
    traffic: Traffic,
    /// Number of looks that have missed it since. The kernel may still report its end.
    missing: u8,
}

/// The state of an uplink at the last look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Its traffic.
    pub meter: UplinkMeter,
    /// Number of subflows.
    pub subflows: usize,
    /// Least round-trip time.
    pub base_rtt: Option<Duration>,
    /// Current excess over it, on the worst subflow.
    pub queue: Duration,
}

/// The state of a subflow at a look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Unique identifier of the socket.
    pub cookie: u64,
    /// Its ends.
    pub ends: Ends,
    /// The position of its uplink, if it is over any.
    pub uplink: Option<usize>,
    /// Its traffic so far.
    pub traffic: Traffic,
}

impl Meters {
    /// Notes the subflows that exist when the daemon begins.
    pub fn begin(&mut self, subflows: impl IntoIterator<Item = Look>) {
        self.subflows.extend(subflows.into_iter().map(|look| (look.cookie, Subflow::at(look))));
    }

    /// Notes that a subflow with these ends exists.
    pub fn expect(&mut self, ends: Ends) {
        self.expected.insert(ends, 0);
    }

    /// Returns whether another look may bring results even if there are no connections.
    pub fn expects(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Takes the state of all subflows.
    pub fn look(&mut self, subflows: impl IntoIterator<Item = Look>) {
        self.subflows.values_mut().for_each(|subflow| subflow.missing += 1);
        for look in subflows {
            self.expected.remove(&look.ends);
            let before = self.subflows.insert(look.cookie, Subflow::at(look));
            self.add(look.uplink, look.traffic, before.map(|before| before.traffic).unwrap_or_default());
        }
        self.expected.retain(|_, missing| {
            *missing += 1;
            *missing < LOOKS
        });
        self.subflows.retain(|_, subflow| subflow.missing < LOOKS);
    }

    /// Takes the totals of an ended socket, if it was a subflow, and the position of its uplink, if any.
    pub fn handle(&mut self, ended: &Ended, uplink: Option<usize>) {
        let was_expected = self.expected.remove(&ended.ends).is_some();
        match self.subflows.remove(&ended.cookie) {
            Some(seen) => self.add(seen.uplink, ended.traffic, seen.traffic),
            None if was_expected => self.add(uplink, ended.traffic, Traffic::default()),
            None => {}
        }
    }

    /// Adds what a subflow has carried since its totals were `before`. The kernel may not know its totals any more.
    fn add(&mut self, uplink: Option<usize>, all: Traffic, before: Traffic) {
        let is_known = all.down_bytes >= before.down_bytes && all.up_bytes >= before.up_bytes;
        let Some(uplink) = uplink.filter(|_| is_known) else { return };
        let sum = self.sums.entry(uplink).or_default();
        *sum = sum.plus(meter(all).since(meter(before)));
    }

    /// Returns the state of an uplink.
    pub fn read(&self, uplink: usize) -> Reading {
        let mut reading = Reading { meter: self.sums.get(&uplink).copied().unwrap_or_default(), ..Reading::default() };
        let is_there = |subflow: &&Subflow| subflow.uplink == Some(uplink) && subflow.missing == 0;
        for Subflow { traffic, .. } in self.subflows.values().filter(is_there) {
            reading.subflows += 1;
            if !traffic.rtt_min.is_zero() {
                reading.base_rtt = Some(reading.base_rtt.map_or(traffic.rtt_min, |least| least.min(traffic.rtt_min)));
                reading.queue = reading.queue.max(traffic.rtt.saturating_sub(traffic.rtt_min));
            }
        }
        reading
    }
}

impl Subflow {
    fn at(look: Look) -> Self {
        Self { uplink: look.uplink, traffic: look.traffic, missing: 0 }
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

    fn ends(port: u16) -> Ends {
        Ends { local: ([192, 168, 42, 10], port).into(), remote: ([10, 9, 9, 9], 80).into() }
    }

    fn look(cookie: u64, uplink: usize, down_bytes: u64) -> Look {
        Look { cookie, ends: ends(cookie as u16), uplink: Some(uplink), traffic: traffic(down_bytes) }
    }

    fn ended(cookie: u64, down_bytes: u64) -> Ended {
        Ended { cookie, ends: ends(cookie as u16), interface: None, traffic: traffic(down_bytes) }
    }

    #[test]
    fn what_ended_still_counts() {
        let mut meters = Meters::default();
        meters.look([look(1, 0, 100), look(2, 1, 10)]);
        meters.look([look(1, 0, 300), look(3, 1, 5)]);
        for _ in 0..3 {
            meters.look([look(3, 1, 7)]);
            let (first, second) = (meters.read(0), meters.read(1));
            assert_eq!((first.meter.down_bytes, first.subflows, first.base_rtt), (300, 0, None));
            assert_eq!((second.meter.down_bytes, second.subflows), (17, 1));
            assert_eq!((second.base_rtt, second.queue), (Some(Duration::from_millis(20)), Duration::from_millis(10)));
        }
    }

    #[test]
    fn what_passed_after_the_last_look_counts_if_the_kernel_tells() {
        let mut meters = Meters::default();
        (1..=4).for_each(|port| meters.expect(ends(port)));
        // The first one ends before any look, even if a look comes between its end and the report.
        meters.look([look(2, 0, 10), look(3, 0, 10), look(4, 0, 10)]);
        meters.handle(&ended(1, 1), Some(0));
        meters.handle(&ended(2, 20), Some(0));
        // The kernel no longer knows the totals.
        meters.handle(&ended(3, 0), None);
        meters.look([]);
        meters.handle(&ended(4, 300), Some(0));
        // The first of these was reported already; the second is no subflow.
        meters.handle(&ended(4, 300), Some(0));
        meters.handle(&ended(5, 1000), Some(0));
        for _ in 0..3 {
            assert_eq!(meters.read(0).meter.down_bytes, 1 + 20 + 10 + 300);
            meters.look([]);
        }
    }

    #[test]
    fn what_passed_before_the_daemon_began_does_not_count() {
        let mut meters = Meters::default();
        meters.begin([look(1, 0, 1000), look(2, 0, 500), look(3, 0, 50)]);
        meters.look([look(1, 0, 1000), look(2, 0, 510), look(3, 0, 50)]);
        assert_eq!(meters.read(0).meter.down_bytes, 10);
        meters.handle(&ended(1, 1200), Some(0));
        // The kernel no longer knows the totals.
        meters.handle(&ended(3, 0), None);
        for _ in 0..4 {
            assert_eq!(meters.read(0).meter.down_bytes, 210);
            meters.look([]);
        }
        assert!(meters.subflows.is_empty());
    }

    #[test]
    fn what_a_subflow_carries_counts_once_and_for_the_uplink_that_it_is_over() {
        let mut meters = Meters::default();
        let down = |meters: &Meters| [0, 1].map(|uplink| meters.read(uplink).meter.down_bytes);
        meters.begin([look(1, 0, 500)]);
        meters.look([look(1, 0, 1500)]);
        // It is over no uplink for a while: its address is of none.
        for down_bytes in [1500, 1600, 1700] {
            meters.look([Look { uplink: None, ..look(1, 0, down_bytes) }]);
            assert_eq!((down(&meters), meters.read(0).subflows), ([1000, 0], 0));
        }
        meters.look([look(1, 0, 1900)]);
        assert_eq!(down(&meters), [1200, 0], "what it carried elsewhere is not the uplink's");
        meters.look([look(1, 1, 2000)]);
        assert_eq!(down(&meters), [1200, 100]);
        // A look misses it.
        meters.look([]);
        assert_eq!((down(&meters), meters.read(1).subflows), ([1200, 100], 0));
        meters.look([look(1, 1, 2200)]);
        assert_eq!((down(&meters), meters.read(1).subflows), ([1200, 300], 1));
        meters.handle(&ended(1, 2250), Some(0));
        assert_eq!(down(&meters), [1200, 350]);
    }

    #[test]
    fn a_subflow_whose_least_round_trip_time_is_unknown_has_no_queue() {
        let unknown = Traffic { rtt_min: Duration::ZERO, ..traffic(0) };
        let mut meters = Meters::default();
        meters.look([Look { traffic: unknown, ..look(1, 0, 0) }]);
        assert_eq!((meters.read(0).base_rtt, meters.read(0).queue), (None, Duration::ZERO));
    }

    #[test]
    fn what_never_comes_is_not_waited_for() {
        let mut meters = Meters::default();
        meters.expect(ends(1));
        meters.look([]);
        assert!(meters.expects());
        meters.look([]);
        assert!(!meters.expects());
    }
}
