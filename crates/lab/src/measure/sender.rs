//! Information about a subflow that only the source and the paths have.

use transport::{ConnectionStats, SubflowStats};
use units::Duration;

/// The source's view of a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sender {
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of its lifetime.
    pub min_rtt: Option<Duration>,
    /// Packets with payload sent, retransmissions included.
    pub data_packets: u64,
    /// Of these, retransmissions.
    pub retransmitted_packets: u64,
    /// Payload octets of the retransmissions.
    pub retransmitted_bytes: u64,
    /// Retransmission time-outs, where known.
    pub timeouts: Option<u64>,
    /// Reductions of the window after loss or ECN, where known.
    pub congestion_events: Option<u64>,
    /// Largest IP packet it sends, where known, octets.
    pub path_mtu_bytes: Option<u16>,
}

impl Sender {
    /// Returns the view that `source` has of the destination's `subflow`, if it has that subflow.
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

/// Effect of one element of a path on the packets towards the destination, without copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElementCounters {
    /// Packets that entered it.
    pub entered: u64,
    /// Packets it dropped.
    pub lost: u64,
    /// Of these, packets that found a queue full.
    pub queue_drops: u64,
}

impl ElementCounters {
    fn since(self, before: Self) -> Self {
        Self {
            entered: self.entered - before.entered,
            lost: self.lost - before.lost,
            queue_drops: self.queue_drops - before.queue_drops,
        }
    }

    /// Lost packets over packets that entered, at most 1: in a window, packets that entered earlier may be lost.
    fn loss_ratio(self) -> f64 {
        (self.lost as f64 / self.entered.max(1) as f64).min(1.0)
    }
}

/// Effect of a path on the packets towards the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Counters of its elements, in the order in which packets pass them.
    pub elements: Vec<ElementCounters>,
}

impl PathCounters {
    /// Packets that its elements dropped.
    pub fn lost(&self) -> u64 {
        self.elements.iter().map(|element| element.lost).sum()
    }

    /// Of these, packets that found a queue full.
    pub fn queue_drops(&self) -> u64 {
        self.elements.iter().map(|element| element.queue_drops).sum()
    }

    /// Probability that a packet that travels all of the path is lost: 1 - product of (1 - lost / entered) over the
    /// elements. The packets that enter an element need not be those that left the one before: packets are split, come
    /// from a relay that ends the subflow, or belong to the relay's owner.
    pub fn loss_ratio(&self) -> f64 {
        // Not computed as the product itself: if only one element loses packets, the ratio is exactly that element's.
        self.elements.iter().fold(0.0, |lost, element| lost + (1.0 - lost) * element.loss_ratio())
    }

    /// The loss ratio since `before`; `None` if no packet entered.
    pub(super) fn loss_since(&self, before: &Self) -> Option<f64> {
        let before = |index| before.elements.get(index).copied().unwrap_or_default();
        let elements = self.elements.iter().enumerate().map(|(index, element)| element.since(before(index)));
        let window = Self { elements: elements.collect() };
        let is_used = window.elements.iter().any(|element| element.entered > 0 || element.lost > 0);
        is_used.then(|| window.loss_ratio())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(elements: &[(u64, u64)]) -> PathCounters {
        let element = |&(entered, lost): &(u64, u64)| ElementCounters { entered, lost, queue_drops: lost / 2 };
        PathCounters { elements: elements.iter().map(element).collect() }
    }

    #[test]
    fn loss_is_a_share_of_what_entered() {
        let (before, now) = (path(&[(100, 1)]), path(&[(120, 6)]));
        assert_eq!(now.loss_since(&before), Some(0.25));
        assert_eq!((now.loss_ratio(), now.lost(), now.queue_drops()), (0.05, 6, 3));
        assert_eq!(now.loss_since(&now), None);
        assert_eq!(path(&[(100, 3)]).loss_since(&before), Some(1.0), "in a later window than they entered");
        assert_eq!(now.loss_since(&PathCounters::default()), Some(0.05), "there was no window before");
    }

    #[test]
    fn elements_lose_of_what_enters_them() {
        // A tenth, and then half of four times as many pieces: 0.1 + 0.9 / 2.
        let split = path(&[(100, 10), (360, 180)]);
        assert_eq!((split.loss_ratio(), split.lost()), (0.55, 190));
        // If the relay acknowledges at once, only the packets that passed the first hop enter the second.
        assert_eq!(path(&[(400, 0), (100, 50)]).loss_ratio(), 0.5);
        assert_eq!(path(&[(400, 400), (0, 0)]).loss_ratio(), 1.0);
        // If all packets that pass one element enter the next, the ratio is all lost packets over those that entered
        // the first.
        assert_eq!(path(&[(100, 20), (80, 20)]).loss_ratio(), 0.4);
        let before = path(&[(100, 10), (360, 180)]);
        let window = path(&[(110, 10), (400, 190)]).loss_since(&before);
        assert_eq!(window, Some(0.25));
        assert_eq!(path(&[(100, 10), (361, 180)]).loss_since(&before), Some(0.0), "one was still on its way");
    }
}
