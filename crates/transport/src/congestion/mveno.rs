//! mVeno: Veno with increases weighted so that all subflows see the same congestion, whatever their random losses.
//!
//! ```text
//! N_r  = w_r (T_r - base_r) / T_r                                                                    equation (1)
//! Q_r  = P(N > beta) = 1 - min( 1, beta T_r / ((T_r - base_r) Wmax_r) ), at least 0.01               equation (4)
//! E_r  = 1/5 (1 - Q_r) + 1/2 Q_r                                                                     equation (5)
//!
//!                      Q_s E_r w_r^2
//! delta_r = ---------------------------------, between 0.01 and 1; 1 if the divisor is not positive  equation (13)
//!           Q_r (1 + E_s (T_s y_s)^2) - Q_s
//!
//! ACK on r   cwnd_r += delta_r acked MSS_r / cwnd_r         if N_r < beta              algorithm 1, lines 15 to 18
//!            cwnd_r += delta_r acked MSS_r / (2 cwnd_r)     otherwise
//! loss on r  ssthresh_r = 4/5 cwnd_r if N_r < beta, cwnd_r / 2 otherwise               as Veno
//!
//! T_r      mean round-trip time of the last round on subflow r
//! base_r   smallest round-trip time seen
//! w_r      mean window of the last round, segments
//! Wmax_r   largest window seen, segments
//! Q_r, E_r probability that a loss means congestion, and the mean decrease after a loss that follows from it
//! y_s      sum_p w_p / T_p, the rate of all
//! T_s      mean of all samples of all subflows in their last rounds; `mveno-proof`: max_p T_p;
//!          `mveno-own-rtt`: T_r before y_s
//! Q_s      by equation (4) from T_s, min_p base_p and max_p Wmax_p; `mveno-proof`: min_p Q_p
//! E_s      by equation (5) from Q_s
//! beta     3 segments
//! delta_r  1 / M at first, M the number of subflows; recomputed at the end of every round of any subflow, from those
//!          that are in use; a time-out voids the last round of its subflow
//! acked, MSS_r as in lia.rs
//! ```
//!
//! Source: Dong, Wang, Huang, Wang, Min, "Performance Enhancement of Multipath TCP for Wireless Communications With
//! Multiple Radio Interfaces" (IEEE Transactions on Communications 2016), sections III-A and III-B. The paper
//! contradicts itself about T_s, Q_s and E_s. `mveno` takes them as algorithm 1 prints them: with these it behaves as
//! in the paper's measurements. `mveno-proof` takes the extremes that the proof of fairness (section III-C) needs:
//! delta_r then never exceeds 1 by itself, and the connection is slow wherever round-trip times or queues differ
//! (docs/decisions/0013-mveno-as-printed.md). The bounds of Q_r and delta_r are ours; the paper divides by zero if a
//! queue is empty.
//!
//! `mveno-own-rtt` is ours. With one T_s for all, a subflow with a short round-trip time counts for little beside T_s
//! y_s, which grows with the others' round-trip times: its delta falls with the square of T_s y_s, and its window with
//! delta. With T_r instead, the fraction of (13) is the square of the subflow's share of the rate, x_r / y_s, as in
//! OLIA.
//!
//! `T_s y_s` is `sum_p w_p T_s / T_p`: only ratios of round-trip times matter. Q, E and delta are fractions of 2^16,
//! windows are segments in 2^-16.

use units::{Duration, Instant};

use super::arithmetic::{ONE_Q16, creditable_bytes, grow_q16, mss_q16, mul_div, share_q16};
use super::coupling::backlog_bytes;
use super::mean::{Mean, MeanRtt};
use super::veno::{BETA_SEGMENTS, reduced};
use super::{
    AckSample, CongestionController, DeliverySample, LossSample, PathView, Paths, PerSubflow, WindowSet, WindowStep,
};
use crate::SubflowId;

/// Smallest Q and delta, 1/100.
const FLOOR_Q16: u64 = ONE_Q16 / 100;

/// Windows in segments stay below this, which keeps all products within 128 bits. TCP windows of 2^30 octets are below
/// it.
const SEGMENTS_MAX: u64 = 1 << 21;

/// mVeno over all subflows of a connection.
#[derive(Debug)]
pub struct MVeno {
    variant: Variant,
    subflows: PerSubflow<MVenoState>,
}

/// How equation (13) describes the connection as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// As printed in algorithm 1.
    Algorithm1,
    /// As the proof of fairness needs.
    Proof,
    /// As in algorithm 1, but each subflow compares its window with what all would carry in its own round-trip time.
    OwnRtt,
}

/// mVeno's state of one subflow.
#[derive(Clone, Copy, Debug, Default)]
struct MVenoState {
    /// delta_r in 2^-16.
    delta_q16: u64,
    /// Wmax_r, octets.
    cwnd_max: u64,
    /// Samples of this round.
    rtts: MeanRtt,
    cwnds: Mean,
    /// The last round.
    last: Option<Round>,
}

/// A finished round.
#[derive(Clone, Copy, Debug)]
struct Round {
    rtts: MeanRtt,
    /// T_r.
    mean_rtt: Duration,
    base_rtt: Duration,
    /// w_r, octets.
    mean_cwnd: u64,
    cwnd_max: u64,
    mss: u64,
}

impl MVeno {
    /// Creates mVeno as printed in algorithm 1.
    pub fn new() -> Self {
        Self { variant: Variant::Algorithm1, subflows: PerSubflow::default() }
    }

    /// Creates mVeno as the proof of fairness needs it.
    pub fn proof() -> Self {
        Self { variant: Variant::Proof, subflows: PerSubflow::default() }
    }

    /// Creates mVeno with the subflow's own round-trip time instead of T_s.
    pub fn own_rtt() -> Self {
        Self { variant: Variant::OwnRtt, subflows: PerSubflow::default() }
    }
}

impl Default for MVeno {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionController for MVeno {
    fn name(&self) -> &'static str {
        match self.variant {
            Variant::Algorithm1 => "mveno",
            Variant::Proof => "mveno-proof",
            Variant::OwnRtt => "mveno-own-rtt",
        }
    }

    fn subflow_added(&mut self, subflow: SubflowId, paths: Paths<'_>) {
        self.subflows.get_mut(subflow).delta_q16 = ONE_Q16 / (paths.iter().count() as u64).max(1);
    }

    fn subflow_removed(&mut self, subflow: SubflowId, paths: Paths<'_>) {
        self.subflows.remove(subflow);
        self.adjust_link_parameters(paths);
    }

    fn on_delivery(&mut self, sample: &DeliverySample) {
        if let Some(rtt) = sample.rtt {
            self.subflows.get_mut(sample.subflow).rtts.add(rtt);
        }
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let state = self.subflows.get_mut(ack.subflow);
        state.cwnds.add(path.cwnd);
        let per_window_q16 = mul_div(mss_q16(path), state.delta_q16, ONE_Q16);
        let gained = share_q16(creditable_bytes(ack, path), per_window_q16, path.cwnd);
        grow_q16(if state.is_congested() { gained / 2 } else { gained })
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        let path = paths.get(loss.subflow);
        let state = self.subflows.get_mut(loss.subflow);
        state.note_window(path);
        reduced(path.cwnd, state.is_congested())
    }

    /// What the subflow carried in its last round it does not carry now. A dead one ends no other round.
    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        let path = paths.get(subflow);
        let state = self.subflows.get_mut(subflow);
        state.note_window(path);
        state.last = None;
        path.cwnd / 2
    }

    fn on_round(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> Option<WindowSet> {
        self.subflows.get_mut(subflow).end_round(paths.get(subflow));
        self.adjust_link_parameters(paths);
        None
    }
}

impl MVeno {
    /// Linkpara_Adjust() of algorithm 1. Only subflows in `paths` count.
    fn adjust_link_parameters(&mut self, paths: Paths<'_>) {
        let is_there = |id: SubflowId| paths.iter().any(|path| path.id == id);
        let rounds = self.subflows.iter().filter(|(id, _)| is_there(*id)).filter_map(|(_, state)| state.last);
        let Some(whole) = Whole::of(rounds, self.variant) else {
            return;
        };
        for (_, state) in self.subflows.iter_mut().filter(|(id, _)| is_there(*id)) {
            if let Some(round) = state.last {
                let whole = match self.variant {
                    Variant::OwnRtt => whole.over(round.mean_rtt),
                    Variant::Algorithm1 | Variant::Proof => whole,
                };
                state.delta_q16 = delta_q16(round.congestion_q16(), round.window(), &whole);
            }
        }
    }
}

impl MVenoState {
    /// N_r >= beta.
    fn is_congested(&self) -> bool {
        self.last.is_some_and(|round| {
            backlog_bytes(round.mean_cwnd, round.mean_rtt, round.base_rtt) >= BETA_SEGMENTS * round.mss
        })
    }

    /// Notes the largest window. At the end of each round is not often enough: a window can grow by half its size, in
    /// slow start, and fall before the round ends.
    fn note_window(&mut self, path: &PathView) {
        self.cwnd_max = self.cwnd_max.max(path.cwnd);
    }

    fn end_round(&mut self, path: &PathView) {
        let (rtts, cwnds) = (core::mem::take(&mut self.rtts), core::mem::take(&mut self.cwnds));
        self.note_window(path);
        // A round without samples says nothing new.
        let Some((mean_rtt, base_rtt)) = rtts.mean().zip(path.min_rtt) else {
            return;
        };
        let mean_cwnd = cwnds.mean().unwrap_or(path.cwnd);
        let (cwnd_max, mss) = (self.cwnd_max, u64::from(path.mss).max(1));
        self.last = Some(Round { rtts, mean_rtt, base_rtt, mean_cwnd, cwnd_max, mss });
    }
}

impl Round {
    /// Q_r in 2^-16.
    fn congestion_q16(&self) -> u64 {
        congestion_q16(self.mean_rtt, self.base_rtt, self.cwnd_max, self.mss)
    }

    /// w_r.
    fn window(&self) -> Segments {
        Segments::from_bytes(self.mean_cwnd, self.mss)
    }
}

/// Segments in 2^-16, below 2^37.
#[derive(Clone, Copy, Debug)]
struct Segments(u64);

impl Segments {
    fn from_bytes(bytes: u64, mss: u64) -> Self {
        Self(mul_div(bytes, ONE_Q16, mss).min(SEGMENTS_MAX * ONE_Q16))
    }

    /// Returns the square in 2^-32, below 2^74.
    fn squared(self) -> u128 {
        u128::from(self.0) * u128::from(self.0)
    }
}

/// The connection as a whole in equation (13).
#[derive(Clone, Copy, Debug)]
struct Whole {
    /// Q_s in 2^-16.
    congestion_q16: u64,
    /// T_s.
    rtt: Duration,
    /// T_s y_s.
    window: Segments,
}

impl Whole {
    fn of(rounds: impl Iterator<Item = Round> + Clone, variant: Variant) -> Option<Self> {
        let rtt = match variant {
            Variant::Proof => rounds.clone().map(|round| round.mean_rtt).max()?,
            Variant::Algorithm1 | Variant::OwnRtt => mean_of_all(rounds.clone())?,
        };
        let congestion_q16 = match variant {
            Variant::Proof => rounds.clone().map(|round| round.congestion_q16()).min()?,
            Variant::Algorithm1 | Variant::OwnRtt => {
                let base_rtt = rounds.clone().map(|round| round.base_rtt).min()?;
                let largest = rounds.clone().max_by_key(|round| round.cwnd_max / round.mss)?;
                congestion_q16(rtt, base_rtt, largest.cwnd_max, largest.mss)
            }
        };
        let share = |round: Round| mul_div(round.window().0, rtt.as_nanos(), round.mean_rtt.as_nanos());
        let window = rounds.map(share).fold(0, u64::saturating_add).min(SEGMENTS_MAX * ONE_Q16);
        Some(Self { congestion_q16, rtt, window: Segments(window) })
    }

    /// Returns the same values with `rtt` as T_s.
    fn over(self, rtt: Duration) -> Self {
        let window = mul_div(self.window.0, rtt.as_nanos(), self.rtt.as_nanos()).min(SEGMENTS_MAX * ONE_Q16);
        Self { rtt, window: Segments(window), ..self }
    }
}

/// T_s of algorithm 1, line 12.
fn mean_of_all(rounds: impl Iterator<Item = Round>) -> Option<Duration> {
    let add = |(sum, samples): (u64, u64), round: Round| {
        (sum.saturating_add(round.rtts.sum().as_nanos()), samples + round.rtts.samples())
    };
    let (sum, samples) = rounds.fold((0, 0), add);
    sum.checked_div(samples).map(Duration::from_nanos)
}

/// Equation (4), as P(N > beta) in 2^-16.
fn congestion_q16(rtt: Duration, base_rtt: Duration, cwnd_max: u64, mss: u64) -> u64 {
    let backlog_max = backlog_bytes(cwnd_max, rtt, base_rtt);
    let not_congested = mul_div(BETA_SEGMENTS * mss, ONE_Q16, backlog_max).min(ONE_Q16);
    (ONE_Q16 - not_congested).max(FLOOR_Q16)
}

/// Equation (5): E in 2^-16 from Q in 2^-16.
fn decrease_q16(congestion_q16: u64) -> u64 {
    (2 * ONE_Q16 + 3 * congestion_q16) / 10
}

/// Returns delta_r in 2^-16 from Q_r and w_r.
fn delta_q16(congestion_q16: u64, window: Segments, whole: &Whole) -> u64 {
    unbounded_delta_q16(congestion_q16, window, whole).map_or(ONE_Q16, |delta| delta.clamp(FLOOR_Q16, ONE_Q16))
}

/// Equation (13) in 2^-16; `None` if its divisor is not positive.
fn unbounded_delta_q16(congestion_q16: u64, window: Segments, whole: &Whole) -> Option<u64> {
    let wide = u128::from;
    // E_s (T_s y_s)^2, then the divisor, in 2^-32.
    let congestion_extent = (wide(decrease_q16(whole.congestion_q16)) * whole.window.squared()) >> 16;
    let divisor = (wide(congestion_q16) * ((1 << 32) + congestion_extent)) >> 16;
    let divisor = divisor.checked_sub(wide(whole.congestion_q16) << 16).filter(|divisor| *divisor > 0)?;
    // Below 2^16 * 2^16 * 2^74, in 2^-64.
    let dividend = wide(whole.congestion_q16) * wide(decrease_q16(congestion_q16)) * window.squared();
    Some(u64::try_from((dividend / divisor) >> 16).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
