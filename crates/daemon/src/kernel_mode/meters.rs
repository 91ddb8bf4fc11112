//! What passed over each uplink, of all subflows that ever were.
//!
//! The kernel forgets a subflow when it ends, and tells then what passed over it in all; not of the first subflow of a connection that the
//! peer was the first to end. Of such a one what was seen at the last look is counted. What passed before the daemon began is not.

use std::collections::BTreeMap;

use linux::mptcp::{Ended, Ends, Traffic};
use units::Duration;

use crate::proxy::status::UplinkMeter;

/// Looks after which it is no longer believed that something comes.
const LOOKS: u8 = 2;

/// Meters of all uplinks, by position.
#[derive(Debug, Default)]
pub struct Meters {
    /// Of subflows that are no more.
    past: BTreeMap<usize, UplinkMeter>,
    /// Of those that were there at the last look, by their cookies.
    living: BTreeMap<u64, (usize, Traffic)>,
    /// Of those that were there at the look before: the kernel may still tell of their end.
    leaving: BTreeMap<u64, (usize, Traffic)>,
    /// Subflows that were never looked at, and in how many looks they were missing: they may end before the next one.
    expected: BTreeMap<Ends, u8>,
    /// What had passed over subflows when the daemon began, by their cookies.
    before: BTreeMap<u64, Traffic>,
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

/// A subflow at a look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Tells it from all others.
    pub cookie: u64,
    /// Its ends.
    pub ends: Ends,
    /// The position of its uplink.
    pub uplink: usize,
    /// What passed so far.
    pub traffic: Traffic,
}

impl Meters {
    /// These subflows are there when the daemon begins.
    pub fn begin(&mut self, subflows: impl IntoIterator<Item = Look>) {
        self.before.extend(subflows.into_iter().map(|look| (look.cookie, look.traffic)));
    }

    /// There is a subflow with these ends.
    pub fn expect(&mut self, ends: Ends) {
        self.expected.insert(ends, 0);
    }

    /// Whether another look may tell more, though there is no connection any more.
    pub fn expects(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Looks at all subflows.
    pub fn look(&mut self, subflows: impl IntoIterator<Item = Look>) {
        let mut now = BTreeMap::new();
        for look in subflows {
            self.expected.remove(&look.ends);
            now.insert(look.cookie, (look.uplink, self.since_begin(look.cookie, look.traffic)));
        }
        self.expected.retain(|_, missing| {
            *missing += 1;
            *missing < LOOKS
        });
        let mut before = core::mem::replace(&mut self.living, now);
        before.retain(|cookie, _| !self.living.contains_key(cookie));
        let gone = core::mem::replace(&mut self.leaving, before);
        for (cookie, (uplink, traffic)) in gone {
            self.before.remove(&cookie);
            self.add(uplink, traffic);
        }
    }

    /// A socket has ended, with its uplink if it had one: what passed over it in all, if it was a subflow.
    pub fn heed(&mut self, ended: &Ended, uplink: Option<usize>) {
        let seen = self.living.remove(&ended.cookie).or_else(|| self.leaving.remove(&ended.cookie));
        let was_expected = self.expected.remove(&ended.ends).is_some();
        match (seen, uplink) {
            (Some((uplink, seen)), _) => {
                let all = self.since_begin(ended.cookie, ended.traffic);
                let is_known = all.down_bytes >= seen.down_bytes && all.up_bytes >= seen.up_bytes;
                self.before.remove(&ended.cookie);
                self.add(uplink, if is_known { all } else { seen });
            }
            (None, Some(uplink)) if was_expected => self.add(uplink, ended.traffic),
            (None, _) => {}
        }
    }

    /// Of what has passed over a subflow in all, what did since the daemon began.
    fn since_begin(&self, cookie: u64, all: Traffic) -> Traffic {
        let before = self.before.get(&cookie).copied().unwrap_or_default();
        Traffic {
            up_bytes: all.up_bytes.saturating_sub(before.up_bytes),
            down_bytes: all.down_bytes.saturating_sub(before.down_bytes),
            sent_segments: all.sent_segments.saturating_sub(before.sent_segments),
            retransmitted_segments: all.retransmitted_segments.saturating_sub(before.retransmitted_segments),
            ..all
        }
    }

    fn add(&mut self, uplink: usize, traffic: Traffic) {
        let past = self.past.entry(uplink).or_default();
        *past = past.plus(meter(traffic));
    }

    /// What is known of an uplink.
    pub fn read(&self, uplink: usize) -> Reading {
        let mut reading = Reading { meter: self.past.get(&uplink).copied().unwrap_or_default(), ..Reading::default() };
        for (_, traffic) in self.leaving.values().filter(|(of, _)| *of == uplink) {
            reading.meter = reading.meter.plus(meter(*traffic));
        }
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

    fn ends(port: u16) -> Ends {
        Ends { local: ([192, 168, 42, 10], port).into(), remote: ([10, 9, 9, 9], 80).into() }
    }

    fn look(cookie: u64, uplink: usize, down_bytes: u64) -> Look {
        Look { cookie, ends: ends(cookie as u16), uplink, traffic: traffic(down_bytes) }
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
        // The first one ends before any look, also if that comes between its end and the news.
        meters.look([look(2, 0, 10), look(3, 0, 10), look(4, 0, 10)]);
        meters.heed(&ended(1, 1), Some(0));
        meters.heed(&ended(2, 20), Some(0));
        // The kernel does not know any more what passed.
        meters.heed(&ended(3, 0), None);
        meters.look([]);
        meters.heed(&ended(4, 300), Some(0));
        // It was told of already; and no subflow of ours.
        meters.heed(&ended(4, 300), Some(0));
        meters.heed(&ended(5, 1000), Some(0));
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
        meters.heed(&ended(1, 1200), Some(0));
        // The kernel does not know any more what passed.
        meters.heed(&ended(3, 0), None);
        for _ in 0..4 {
            assert_eq!(meters.read(0).meter.down_bytes, 210);
            meters.look([]);
        }
        assert!(meters.before.is_empty());
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
