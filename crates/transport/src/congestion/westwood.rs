//! Westwood+: NewReno that falls back to what the path is known to carry, on every subflow independently.
//!
//! ```text
//! b_k    = d_k / Delta_k                              at the end of round k
//! BWE_k  = 9/10 BWE_(k-1) + 1/10 b_k                  the first sample is taken as it is
//!
//! ACK        as NewReno (newreno.rs)
//! loss, RTO  ssthresh = BWE * RTTmin, and never above cwnd; cwnd / 2 until there is a BWE
//!
//! d_k       octets that arrived in round k
//! Delta_k   its duration, at least 50 ms: shorter rounds are combined
//! BWE       estimate of the bandwidth, octets/s
//! RTTmin    smallest round-trip time seen
//! ```
//!
//! Source: Grieco, Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion
//! Control" (ACM CCR 2004); the shortest length of a sample and the first sample are those of its implementation in
//! Linux. With an empty queue a random loss costs nothing, because BWE * RTTmin is then the window itself.

use units::{Duration, Instant};

use super::arithmetic::mul_div;
use super::{
    AckSample, CongestionController, DeliverySample, LossSample, NewReno, PathView, Paths, PerSubflow, WindowSet,
    WindowStep,
};
use crate::SubflowId;

/// Shortest Delta_k.
const SAMPLE_MIN: Duration = Duration::from_millis(50);

const NANOS_PER_S: u64 = 1_000_000_000;

/// Westwood+ on every subflow independently.
#[derive(Debug)]
pub struct Westwood {
    increases: NewReno,
    decreases: Decreases,
}

impl Default for Westwood {
    fn default() -> Self {
        Self { increases: NewReno::new("westwood"), decreases: Decreases::default() }
    }
}

/// Westwood+'s decreases, for any rule of growth.
#[derive(Debug, Default)]
pub(super) struct Decreases {
    subflows: PerSubflow<Estimate>,
}

/// Estimate of one path's bandwidth.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    /// BWE, octets/s; `None` before the first sample has ended.
    bandwidth_bytes_per_s: Option<u64>,
    /// d_k so far.
    delivered_bytes: u64,
    /// When the sample began; `None` before the first round has ended.
    since: Option<Instant>,
}

impl Decreases {
    pub(super) fn subflow_removed(&mut self, subflow: SubflowId) {
        self.subflows.remove(subflow);
    }

    pub(super) fn on_delivery(&mut self, sample: &DeliverySample) {
        let estimate = self.subflows.get_mut(sample.subflow);
        estimate.delivered_bytes = estimate.delivered_bytes.saturating_add(sample.delivered_bytes);
    }

    pub(super) fn on_round(&mut self, subflow: SubflowId, now: Instant) {
        self.subflows.get_mut(subflow).end_round(now);
    }

    /// Returns the threshold after a loss, octets.
    pub(super) fn ssthresh(&mut self, path: &PathView) -> u64 {
        let bandwidth = self.subflows.get_mut(path.id).bandwidth_bytes_per_s;
        match bandwidth.zip(path.min_rtt) {
            Some((bandwidth, min_rtt)) => mul_div(bandwidth, min_rtt.as_nanos(), NANOS_PER_S).min(path.cwnd),
            None => path.cwnd / 2,
        }
    }
}

impl Estimate {
    fn end_round(&mut self, now: Instant) {
        let Some(since) = self.since else {
            *self = Self { since: Some(now), ..Self::default() };
            return;
        };
        let length = now.saturating_since(since);
        if length < SAMPLE_MIN {
            return;
        }
        let sample = mul_div(self.delivered_bytes, NANOS_PER_S, length.as_nanos());
        let filtered =
            self.bandwidth_bytes_per_s.map_or(sample, |before| before / 10 * 9 + before % 10 * 9 / 10 + sample / 10);
        *self = Self { bandwidth_bytes_per_s: Some(filtered), delivered_bytes: 0, since: Some(now) };
    }
}

impl CongestionController for Westwood {
    fn name(&self) -> &'static str {
        "westwood"
    }

    fn subflow_removed(&mut self, subflow: SubflowId, _paths: Paths<'_>) {
        self.decreases.subflow_removed(subflow);
    }

    fn on_delivery(&mut self, sample: &DeliverySample) {
        self.decreases.on_delivery(sample);
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        self.increases.on_ack(ack, paths)
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        self.decreases.ssthresh(paths.get(loss.subflow))
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        self.decreases.ssthresh(paths.get(subflow))
    }

    fn on_round(&mut self, subflow: SubflowId, now: Instant, _paths: Paths<'_>) -> Option<WindowSet> {
        self.decreases.on_round(subflow, now);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, delivery, loss, path, queued_path};
    use super::*;

    /// Runs rounds on path 0, each given as its end in ms and the octets that arrived in it.
    fn after_rounds(rounds: &[(u64, u64)]) -> Westwood {
        let mut westwood = Westwood::default();
        let paths = [path(0, 20)];
        for (end_ms, delivered_bytes) in rounds {
            westwood.on_delivery(&delivery(0, *delivered_bytes));
            assert_eq!(westwood.on_round(SubflowId(0), Instant::from_millis(*end_ms), Paths(&paths)), None);
        }
        westwood
    }

    #[test]
    fn a_random_loss_costs_nothing() {
        // 20 segments in 100 ms are 200,000 octets/s; over 100 ms that is the window.
        let mut westwood = after_rounds(&[(0, 5_000), (100, 20_000)]);
        assert_eq!(westwood.on_loss(&loss(0), Paths(&[path(0, 20)])), 20_000);
    }

    #[test]
    fn a_loss_behind_a_queue_drains_it() {
        // 25 segments per 125 ms, 100 ms of them propagation.
        let mut westwood = after_rounds(&[(0, 0), (125, 25_000)]);
        let paths = [queued_path(0, 25, 125, 100)];
        assert_eq!(westwood.on_loss(&loss(0), Paths(&paths)), 20_000);
        assert_eq!(westwood.on_rto(SubflowId(0), Instant::ZERO, Paths(&paths)), 20_000);
    }

    #[test]
    fn the_estimate_follows_slowly() {
        // 200,000 octets/s, then 100,000: 0.9 * 200,000 + 0.1 * 100,000 = 190,000.
        let mut westwood = after_rounds(&[(0, 0), (100, 20_000), (200, 10_000)]);
        assert_eq!(westwood.on_loss(&loss(0), Paths(&[path(0, 20)])), 19_000);
    }

    #[test]
    fn short_rounds_are_taken_together() {
        // 3000 octets in 60 ms: 50,000 octets/s.
        let mut westwood = after_rounds(&[(0, 0), (20, 1000), (40, 1000), (60, 1000)]);
        assert_eq!(westwood.on_loss(&loss(0), Paths(&[path(0, 20)])), 5_000);
    }

    #[test]
    fn it_grows_as_newreno_and_halves_before_the_first_estimate() {
        let paths = [path(0, 20)];
        let mut westwood = after_rounds(&[(0, 5_000)]);
        assert_eq!(westwood.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(50));
        assert_eq!(westwood.on_loss(&loss(0), Paths(&paths)), 10_000);
    }

    #[test]
    fn subflows_have_estimates_of_their_own() {
        let mut westwood = after_rounds(&[(0, 0), (100, 20_000)]);
        let paths = [path(0, 20), path(1, 20)];
        assert_eq!(westwood.on_loss(&loss(1), Paths(&paths)), 10_000);
        westwood.subflow_removed(SubflowId(0), Paths(&paths[1..]));
        assert_eq!(westwood.decreases.subflows.iter().count(), 1);
    }
}
