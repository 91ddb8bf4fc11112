//! wVegas, weighted Vegas: delay-based control that equalises the queues that its subflows see.
//!
//! ```text
//! at the end of a round, once per round-trip time:
//! diff_i = cwnd_i * (RTT_i - baseRTT_i) / RTT_i            whole segments in the queue
//!
//! slow start             if diff_i > gamma: cwnd_i = cwnd_i * baseRTT_i / RTT_i + 1, congestion avoidance begins
//!
//! congestion avoidance   if diff_i >= alpha_i:  rate_i = cwnd_i / RTT_i
//!                                               alpha_i = max( 2, total_alpha * rate_i / sum_p rate_p )
//!                        diff_i < alpha_i:      cwnd_i += 1
//!                        diff_i > alpha_i:      cwnd_i -= 1
//!
//! draining               q_i = min( q_i, RTT_i - baseRTT_i )
//!                        if RTT_i - baseRTT_i > 2 q_i: cwnd_i *= baseRTT_i / (2 RTT_i), and q_i starts over
//!
//! loss                   ssthresh_i = cwnd_i / 2; alpha_i, rate_i and q_i start over
//!
//! cwnd_i       congestion window of subflow i, segments; at least 2
//! RTT_i        mean round-trip time of the round
//! baseRTT_i    smallest round-trip time of the last 300 s (`PathView::min_rtt`)
//! alpha_i      segments that subflow i wants in the queue; 2 at first
//! total_alpha  10 segments: what all subflows together want in the queue
//! rate_i       the rate when the queue last held alpha_i segments; counts once it is known
//! q_i          smallest queueing delay since the last draining
//! gamma        1 segment
//! ```
//!
//! Source: Cao, Xu, Fu, "Delay-based Congestion Control for Multipath TCP" (ICNP 2012). Constants, the restart after
//! losses and the behaviour in a round without three samples are those of the first Multipath TCP in Linux. That
//! implementation drains already at 2 q_i, which halves the window whenever the queue is empty; the paper does not.
//!
//! A round with fewer than three samples says little about the queue; the window then grows like NewReno's, by a
//! segment.

use units::{Duration, Instant};

use super::arithmetic::{ONE_Q16, mul_div};
use super::coupling::{backlog_bytes, whole_us};
use super::mean::MeanRtt;
use super::{
    AckSample, CongestionController, DeliverySample, LossSample, PathView, Paths, PerSubflow, WindowSet, WindowStep,
};
use crate::SubflowId;

/// alpha_i before anything is known, and its smallest value, segments.
const ALPHA_MIN: u64 = 2;

/// total_alpha, segments.
const TOTAL_ALPHA: u64 = 10;

/// gamma, segments.
const GAMMA: u64 = 1;

/// Smallest window, segments.
const CWND_MIN: u64 = 2;

/// Number of samples below which a round says nothing about the queue.
const SAMPLES_MIN: u64 = 3;

/// Weighted Vegas over all subflows of a connection.
#[derive(Debug, Default)]
pub struct WVegas {
    subflows: PerSubflow<WVegasState>,
}

/// wVegas's state of one subflow.
#[derive(Clone, Copy, Debug)]
struct WVegasState {
    round: MeanRtt,
    /// The window was the limit at some time in this round.
    was_limited: bool,
    target: Target,
}

/// The state that a loss resets.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// alpha_i, segments.
    alpha: u64,
    /// rate_i, 2^-16 octet per microsecond; zero until known.
    rate_q16: u64,
    /// q_i.
    smallest_delay: Option<Duration>,
}

impl Default for WVegasState {
    fn default() -> Self {
        Self { round: MeanRtt::default(), was_limited: false, target: Target::NEW }
    }
}

impl Target {
    const NEW: Self = Self { alpha: ALPHA_MIN, rate_q16: 0, smallest_delay: None };
}

impl CongestionController for WVegas {
    fn name(&self) -> &'static str {
        "wvegas"
    }

    fn subflow_removed(&mut self, subflow: SubflowId, _paths: Paths<'_>) {
        self.subflows.remove(subflow);
    }

    fn on_delivery(&mut self, sample: &DeliverySample) {
        if let Some(rtt) = sample.rtt {
            self.subflows.get_mut(sample.subflow).round.add(rtt);
        }
    }

    fn on_ack(&mut self, ack: &AckSample, _paths: Paths<'_>) -> WindowStep {
        self.subflows.get_mut(ack.subflow).was_limited |= ack.cwnd_limited;
        WindowStep::ZERO
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        *self.subflows.get_mut(loss.subflow) = WVegasState::default();
        paths.get(loss.subflow).cwnd / 2
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        *self.subflows.get_mut(subflow) = WVegasState::default();
        paths.get(subflow).cwnd / 2
    }

    fn on_round(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> Option<WindowSet> {
        let path = paths.get(subflow);
        let state = self.subflows.get_mut(subflow);
        let round = core::mem::take(&mut state.round);
        let may_grow = core::mem::take(&mut state.was_limited);
        if path.in_recovery {
            return None;
        }
        let rtt = round.mean().filter(|_| round.samples() >= SAMPLES_MIN);
        let Some((rtt, base_rtt)) = rtt.zip(path.min_rtt) else {
            return (may_grow && !path.in_slow_start()).then(|| window_of(path.cwnd.saturating_add(mss(path)), path));
        };
        let queue = Queue { rtt, base_rtt: base_rtt.min(rtt) };
        if path.in_slow_start() {
            return (queue.segments(path) > GAMMA).then(|| window_of(leaving_slow_start(path, queue), path));
        }
        let adjusted = self.adjusted(path, queue, may_grow, paths);
        let drained = self.subflows.get_mut(subflow).target.drained(adjusted, queue);
        (drained != path.cwnd).then(|| window_of(drained, path))
    }
}

impl WVegas {
    /// Returns the window after one step towards alpha, octets.
    fn adjusted(&mut self, path: &PathView, queue: Queue, may_grow: bool, paths: Paths<'_>) -> u64 {
        let diff = queue.segments(path);
        if diff >= self.subflows.get_mut(path.id).target.alpha {
            self.share_out(path, queue, paths);
        }
        let alpha = self.subflows.get_mut(path.id).target.alpha;
        if diff > alpha {
            path.cwnd.saturating_sub(mss(path))
        } else if diff < alpha && may_grow {
            path.cwnd.saturating_add(mss(path))
        } else {
            path.cwnd
        }
    }

    /// Gives `path` its share of total_alpha. Only subflows in `paths` count for the sum of the rates.
    fn share_out(&mut self, path: &PathView, queue: Queue, paths: Paths<'_>) {
        let rate_q16 = mul_div(path.cwnd, ONE_Q16, whole_us(queue.rtt));
        self.subflows.get_mut(path.id).target.rate_q16 = rate_q16;
        let is_there = |id: SubflowId| paths.iter().any(|path| path.id == id);
        let rates = self.subflows.iter().filter(|(id, _)| is_there(*id)).map(|(_, state)| state.target.rate_q16);
        let all = rates.fold(0, u64::saturating_add);
        self.subflows.get_mut(path.id).target.alpha = mul_div(TOTAL_ALPHA, rate_q16, all).max(ALPHA_MIN);
    }
}

impl Target {
    /// Returns `cwnd` octets, or fewer if the queue should drain.
    fn drained(&mut self, cwnd: u64, queue: Queue) -> u64 {
        let delay = queue.rtt.saturating_sub(queue.base_rtt);
        let smallest = self.smallest_delay.map_or(delay, |smallest| smallest.min(delay));
        if delay > smallest.saturating_mul(2) {
            self.smallest_delay = None;
            return mul_div(cwnd, queue.base_rtt.as_nanos(), queue.rtt.as_nanos().saturating_mul(2));
        }
        self.smallest_delay = Some(smallest);
        cwnd
    }
}

/// Duration of a round trip, and of its propagation alone.
#[derive(Clone, Copy, Debug)]
struct Queue {
    rtt: Duration,
    base_rtt: Duration,
}

impl Queue {
    /// diff_i.
    fn segments(self, path: &PathView) -> u64 {
        backlog_bytes(path.cwnd, self.rtt, self.base_rtt) / mss(path)
    }
}

fn mss(path: &PathView) -> u64 {
    u64::from(path.mss).max(1)
}

/// Returns the window that fits the path without a queue, plus a segment, octets.
fn leaving_slow_start(path: &PathView, queue: Queue) -> u64 {
    let on_the_wire = mul_div(path.cwnd, queue.base_rtt.as_nanos(), queue.rtt.as_nanos());
    path.cwnd.min(on_the_wire.saturating_add(mss(path)))
}

/// Returns congestion avoidance with a window of `cwnd` octets.
fn window_of(cwnd: u64, path: &PathView) -> WindowSet {
    let cwnd = cwnd.max(CWND_MIN * mss(path));
    WindowSet { cwnd, ssthresh: path.ssthresh.min(cwnd) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, ack, delivery, loss, path, queued_path};
    use super::*;

    /// Runs a round of `path` with ten samples of its round-trip time while the window is the limit.
    fn round(wvegas: &mut WVegas, path: PathView, siblings: &[PathView]) -> Option<u64> {
        let id = path.id.0;
        for _ in 0..10 {
            wvegas.on_delivery(&DeliverySample { rtt: path.latest_rtt, ..delivery(id, MSS) });
        }
        let paths: Vec<_> = core::iter::once(path).chain(siblings.iter().copied()).collect();
        assert_eq!(wvegas.on_ack(&ack(id, MSS), Paths(&paths)), WindowStep::ZERO);
        wvegas.on_round(path.id, Instant::ZERO, Paths(&paths)).map(|set| set.cwnd)
    }

    #[test]
    fn below_its_target_a_window_grows_by_a_segment_per_round() {
        // N = 20 * 5/105 = 0.95: no whole segment.
        assert_eq!(round(&mut WVegas::default(), queued_path(0, 20, 105, 100), &[]), Some(21_000));
    }

    #[test]
    fn a_lone_path_keeps_ten_segments_in_the_queue() {
        // N = 50 * 25/125 = 10 = alpha, once 10 >= 2 has made alpha 10 * 1/1.
        let mut wvegas = WVegas::default();
        assert_eq!(round(&mut wvegas, queued_path(0, 50, 125, 100), &[]), None);
        // 55 * 25/125 = 11 > 10, and 9 < 10 with 45.
        assert_eq!(round(&mut wvegas, queued_path(0, 55, 125, 100), &[]), Some(54_000));
        assert_eq!(round(&mut wvegas, queued_path(0, 45, 125, 100), &[]), Some(46_000));
    }

    #[test]
    fn shares_in_the_queue_go_by_rates() {
        // Path 0: 60 / 120 ms = 500 / s, alone until path 1 is known: N = 10 = alpha. Path 1: 20 / 120 ms = 166.7 / s,
        // so alpha = 10 * 166.7 / 666.7 = 2.5, rounded down to 2; N = 20 * 20/120 = 3.3, rounded down to 3 > 2.
        let mut wvegas = WVegas::default();
        let (first, second) = (queued_path(0, 60, 120, 100), queued_path(1, 20, 120, 100));
        assert_eq!(round(&mut wvegas, first, &[second]), None);
        assert_eq!(round(&mut wvegas, second, &[first]), Some(19_000));
        // Now alpha of path 0 is 7.5, rounded down to 7, and N = 10 is too much.
        assert_eq!(round(&mut wvegas, first, &[second]), Some(59_000));
    }

    #[test]
    fn a_path_that_is_left_out_takes_no_share_in_the_queue() {
        let mut wvegas = WVegas::default();
        let (first, second) = (queued_path(0, 60, 120, 100), queued_path(1, 20, 120, 100));
        assert_eq!(round(&mut wvegas, first, &[second]), None);
        assert_eq!(round(&mut wvegas, second, &[first]), Some(19_000));
        assert_eq!(round(&mut wvegas, first, &[]), None, "all ten are its own");
    }

    #[test]
    fn slow_start_ends_with_two_segments_in_the_queue() {
        let starting = PathView { ssthresh: u64::MAX, ..queued_path(0, 40, 105, 100) };
        // N = 1.9: one whole segment.
        assert_eq!(round(&mut WVegas::default(), starting, &[]), None);
        // N = 40 * 25/125 = 8; 40 * 100/125 + 1 = 33.
        let queued = PathView { ssthresh: u64::MAX, ..queued_path(0, 40, 125, 100) };
        let mut wvegas = WVegas::default();
        assert_eq!(round(&mut wvegas, queued, &[]), Some(33_000));
        let set = window_of(33_000, &queued);
        assert_eq!(set, WindowSet { cwnd: 33_000, ssthresh: 33_000 });
    }

    #[test]
    fn a_queue_twice_as_long_as_ever_is_drained() {
        let mut wvegas = WVegas::default();
        assert_eq!(round(&mut wvegas, queued_path(0, 50, 125, 100), &[]), None);
        // 50 ms is not more than twice 25 ms: N = 50 * 50/150 = 16 > 10, one less.
        assert_eq!(round(&mut wvegas, queued_path(0, 50, 150, 100), &[]), Some(49_000));
        // 60 ms is: (50 - 1) * 100/320 = 15.3125.
        assert_eq!(round(&mut wvegas, queued_path(0, 50, 160, 100), &[]), Some(15_312));
        // The smallest delay starts over.
        assert_eq!(round(&mut wvegas, queued_path(0, 50, 160, 100), &[]), Some(49_000));
    }

    #[test]
    fn an_empty_queue_is_not_drained() {
        assert_eq!(round(&mut WVegas::default(), queued_path(0, 20, 100, 100), &[]), Some(21_000));
    }

    #[test]
    fn losses_start_it_over() {
        let mut wvegas = WVegas::default();
        let paths = [queued_path(0, 50, 125, 100)];
        round(&mut wvegas, paths[0], &[]);
        assert_eq!(wvegas.subflows.get_mut(SubflowId(0)).target.alpha, 10);
        assert_eq!(wvegas.on_loss(&loss(0), Paths(&paths)), 25_000);
        assert_eq!(wvegas.subflows.get_mut(SubflowId(0)).target.alpha, 2);
        assert_eq!(wvegas.on_rto(SubflowId(0), Instant::ZERO, Paths(&paths)), 25_000);
    }

    #[test]
    fn recovery_is_left_alone() {
        let recovering = PathView { in_recovery: true, ..queued_path(0, 50, 150, 100) };
        assert_eq!(round(&mut WVegas::default(), recovering, &[]), None);
    }

    #[test]
    fn too_few_samples_grow_like_newreno() {
        let paths = [path(0, 2)];
        let mut wvegas = WVegas::default();
        wvegas.on_ack(&ack(0, MSS), Paths(&paths));
        let set = wvegas.on_round(SubflowId(0), Instant::ZERO, Paths(&paths)).unwrap();
        assert_eq!(set.cwnd, 3_000);
        // Nobody has filled the window since.
        assert_eq!(wvegas.on_round(SubflowId(0), Instant::ZERO, Paths(&paths)), None);
    }
}
