//! What passed over each uplink, summed over all connections that ever were.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use transport::ConnectionStats;

/// What passed over an uplink.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct UplinkMeter {
    /// Payload octets to servers that they have acknowledged.
    pub up_bytes: u64,
    /// Payload octets from servers, those that came twice included.
    pub down_bytes: u64,
    /// Segments with data sent, retransmissions included.
    pub sent_segments: u64,
    /// Of these, segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Payload octets received a second time: the server's retransmissions that were not needed, and reinjections.
    pub duplicate_bytes: u64,
}

/// What the subflows of one connection had done when it was last looked at, by uplink.
pub type Seen = SmallVec<[(IpAddr, UplinkMeter); 2]>;

/// Meters of all uplinks.
#[derive(Clone, Debug, Default)]
pub struct Meters(BTreeMap<IpAddr, UplinkMeter>);

impl UplinkMeter {
    /// Both together, field by field.
    pub fn plus(self, other: Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    /// What has been added since `before`.
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

    /// Octets both ways.
    pub fn bytes(self) -> u64 {
        self.up_bytes.saturating_add(self.down_bytes)
    }
}

impl Meters {
    /// Adds what a connection's subflows have done since `seen`, which is then now. Gives what was added.
    pub fn look(&mut self, stats: &ConnectionStats, seen: &mut Seen) -> Seen {
        let mut now = Seen::new();
        for subflow in &stats.subflows {
            let meter = UplinkMeter {
                up_bytes: subflow.acked_bytes,
                down_bytes: subflow.received_bytes,
                sent_segments: subflow.sent_segments,
                retransmitted_segments: subflow.retransmitted_segments,
                timeouts: subflow.timeouts,
                duplicate_bytes: subflow.duplicate_bytes,
            };
            let ip = subflow.local.ip();
            match now.iter_mut().find(|(known, _)| *known == ip) {
                Some((_, sum)) => *sum = sum.plus(meter),
                None => now.push((ip, meter)),
            }
        }
        let before =
            |ip| seen.iter().find(|(known, _)| *known == ip).map_or(UplinkMeter::default(), |(_, meter)| *meter);
        let added: Seen = now.iter().map(|(ip, meter)| (*ip, meter.since(before(*ip)))).collect();
        for (ip, meter) in &added {
            let sum = self.0.entry(*ip).or_default();
            *sum = sum.plus(*meter);
        }
        *seen = now;
        added
    }

    /// The meter of an address.
    pub fn of(&self, ip: IpAddr) -> UplinkMeter {
        self.0.get(&ip).copied().unwrap_or_default()
    }
}
