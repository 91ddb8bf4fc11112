//! Totals of the traffic on each uplink, over all past and present connections.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use transport::{ConnectionStats, SubflowId, SubflowStats};

/// Traffic on an uplink.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct UplinkMeter {
    /// Payload octets to servers, acknowledged.
    pub up_bytes: u64,
    /// Payload octets from servers, including duplicates.
    pub down_bytes: u64,
    /// Data segments sent, including retransmissions.
    pub sent_segments: u64,
    /// Segments among them that are retransmissions.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Duplicate payload octets received: unnecessary retransmissions of the server, and reinjections.
    pub duplicate_bytes: u64,
}

/// Counters of each subflow of one connection at the last look. They are kept by subflow, since the engine forgets
/// those that ended long ago: in sums over an uplink, a forgotten subflow would hide as much of the others' progress.
pub type Seen = SmallVec<[(SubflowId, UplinkMeter); 2]>;

/// What was added to each uplink.
pub type Added = SmallVec<[(IpAddr, UplinkMeter); 2]>;

/// Meters of all uplinks.
#[derive(Clone, Debug, Default)]
pub struct Meters(BTreeMap<IpAddr, UplinkMeter>);

impl UplinkMeter {
    /// Returns the sum, field by field.
    pub fn plus(self, other: Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    /// Returns the difference from `before`, field by field.
    pub fn since(self, before: Self) -> Self {
        self.combine(before, u64::saturating_sub)
    }

    fn combine(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            up_bytes: with(self.up_bytes, other.up_bytes),
            down_bytes: with(self.down_bytes, other.down_bytes),
            sent_segments: with(self.sent_segments, other.sent_segments),
            retransmitted_segments: with(self.retransmitted_segments, other.retransmitted_segments),
            timeouts: with(self.timeouts, other.timeouts),
            duplicate_bytes: with(self.duplicate_bytes, other.duplicate_bytes),
        }
    }

    /// Octets in both directions.
    pub fn bytes(self) -> u64 {
        self.up_bytes.saturating_add(self.down_bytes)
    }
}

impl Meters {
    /// Adds what a connection's subflows have done since `seen`, and updates `seen`. Returns what was added.
    pub fn look(&mut self, stats: &ConnectionStats, seen: &mut Seen) -> Added {
        let now = stats.subflows.iter().map(|subflow| (subflow.id, subflow.local.ip(), meter_of(subflow)));
        self.take(now, seen)
    }

    fn take(&mut self, now: impl Iterator<Item = (SubflowId, IpAddr, UplinkMeter)>, seen: &mut Seen) -> Added {
        let (before, mut added) = (core::mem::take(seen), Added::new());
        for (id, ip, meter) in now {
            let known = before.iter().find(|(known, _)| *known == id).map_or(UplinkMeter::default(), |(_, it)| *it);
            let more = meter.since(known);
            match added.iter_mut().find(|(known, _)| *known == ip) {
                Some((_, sum)) => *sum = sum.plus(more),
                None => added.push((ip, more)),
            }
            seen.push((id, meter));
        }
        for (ip, more) in &added {
            let sum = self.0.entry(*ip).or_default();
            *sum = sum.plus(*more);
        }
        added
    }

    /// Resets the meter of an address that now belongs to another uplink.
    pub fn forget(&mut self, ip: IpAddr) {
        self.0.remove(&ip);
    }

    /// Returns the meter of an address.
    pub fn of(&self, ip: IpAddr) -> UplinkMeter {
        self.0.get(&ip).copied().unwrap_or_default()
    }
}

fn meter_of(subflow: &SubflowStats) -> UplinkMeter {
    UplinkMeter {
        up_bytes: subflow.acked_bytes,
        down_bytes: subflow.received_bytes,
        sent_segments: subflow.sent_segments,
        retransmitted_segments: subflow.retransmitted_segments,
        timeouts: subflow.timeouts,
        duplicate_bytes: subflow.duplicate_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_that_is_forgotten_hides_nothing_of_the_others() {
        let ip = IpAddr::from([10, 0, 0, 2]);
        let of = |id, down_bytes| (SubflowId(id), ip, UplinkMeter { down_bytes, ..UplinkMeter::default() });
        let (mut meters, mut seen) = (Meters::default(), Seen::new());
        let added = meters.take([of(0, 1000), of(1, 500)].into_iter(), &mut seen);
        assert_eq!((added[0].1.down_bytes, meters.of(ip).down_bytes), (1500, 1500));
        let added = meters.take([of(1, 700), of(2, 30)].into_iter(), &mut seen);
        assert_eq!((added[0].1.down_bytes, meters.of(ip).down_bytes), (230, 1730));
        assert!(meters.take([of(2, 30)].into_iter(), &mut seen).iter().all(|(_, more)| more.bytes() == 0));
    }
}
