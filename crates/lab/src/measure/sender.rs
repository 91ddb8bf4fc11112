//! What only the source and the paths know of a subflow.

use transport::{ConnectionStats, SubflowStats};
use units::Duration;

/// The source's view of a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sender {
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of its life.
    pub min_rtt: Option<Duration>,
    /// Packets with payload sent, retransmissions included.
    pub data_packets: u64,
    /// Of these, retransmissions.
    pub retransmitted_packets: u64,
    /// Payload octets of the retransmissions.
    pub retransmitted_bytes: u64,
    /// Retransmission time-outs, where they are known.
    pub timeouts: Option<u64>,
    /// Reductions of the window after loss or ECN, where they are known.
    pub congestion_events: Option<u64>,
    /// Largest IP packet it sends, where that is known, octets.
    pub path_mtu_bytes: Option<u16>,
}

impl Sender {
    /// The view that `source` has of `subflow` of the destination, if it has that subflow.
    pub fn of(source: &ConnectionStats, subflow: &SubflowStats) -> Option<Self> {
        let mirrored = |other: &&SubflowStats| other.local == subflow.remote && other.remote == subflow.local;
        source.subflows.iter().find(mirrored).map(Self::from)
    }
}

impl From<&SubflowStats> for Sender {
    fn from(stats: &SubflowStats) -> Self {
        Self {
            cwnd_bytes: stats.cwnd_bytes,
            srtt: stats.srtt,
            min_rtt: stats.least_rtt,
            data_packets: stats.sent_segments,
            retransmitted_packets: stats.retransmitted_segments,
            retransmitted_bytes: stats.retransmitted_bytes,
            timeouts: Some(stats.timeouts),
            congestion_events: Some(stats.congestion_events),
            path_mtu_bytes: Some(stats.path_mtu_bytes),
        }
    }
}

/// What a path did to the packets towards the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets that entered it.
    pub entered: u64,
    /// Packets it dropped.
    pub lost: u64,
    /// Of these, those that found a queue full.
    pub queue_drops: u64,
}

impl PathCounters {
    /// Lost packets over all that entered.
    pub fn loss_ratio(&self) -> f64 {
        self.lost as f64 / self.entered.max(1) as f64
    }

    /// The loss since `before`; `None` if nothing happened.
    pub(super) fn loss_since(&self, before: &Self) -> Option<f64> {
        let (entered, lost) = (self.entered - before.entered, self.lost - before.lost);
        // A packet may be lost in a later window than it entered.
        (entered > 0 || lost > 0).then(|| (lost as f64 / entered.max(1) as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_a_share_of_what_entered() {
        let before = PathCounters { entered: 100, lost: 1, queue_drops: 0 };
        let now = PathCounters { entered: 120, lost: 6, queue_drops: 2 };
        assert_eq!(now.loss_since(&before), Some(0.25));
        assert_eq!(now.loss_ratio(), 0.05);
        assert_eq!(now.loss_since(&now), None);
        assert_eq!(PathCounters { lost: 3, ..before }.loss_since(&before), Some(1.0));
    }
}
