//! LIA, the linked increases of RFC 6356; the papers call it MCC.
//!
//! ```text
//!                          max_i( cwnd_i / rtt_i^2 )
//! alpha = cwnd_total * -------------------------------                              RFC 6356 equation (2)
//!                        ( sum_i cwnd_i / rtt_i )^2
//!
//! ACK on i   cwnd_i += min( alpha * acked * MSS_i / cwnd_total,                     RFC 6356 equation (1)
//!                           acked * MSS_i / cwnd_i )
//! loss on i  ssthresh_i = cwnd_i / 2                                                as NewReno
//!
//! cwnd_i       congestion window of subflow i, octets; while it repairs a loss, the threshold it falls to
//! rtt_i        smoothed round-trip time of subflow i
//! MSS_i        maximum segment size of subflow i, octets
//! acked        octets newly acknowledged
//! cwnd_total   sum_i cwnd_i
//! alpha        aggressiveness of the whole connection; 1/K for K equal paths, and never below 1/K
//! ```
//!
//! Only ratios of round-trip times matter: with k the path of the maximum,
//! `alpha = cwnd_total * cwnd_k / (sum_i cwnd_i * rtt_k / rtt_i)^2`, which integers compute precisely enough. alpha is
//! cached, scaled by 2^16 (RFC 6356's alpha_scale). It is recomputed after every round and congestion event, when
//! subflows come and go, and when `cwnd_total` has moved by an eighth since the last computation.

use units::Instant;

use super::arithmetic::{ONE_Q16, creditable_bytes, grow_q16, mss_q16, share_q16};
use super::coupling::{effective_cwnd, measured, windows_over};
use super::{AckSample, CongestionController, LossSample, PathView, Paths, WindowSet, WindowStep};
use crate::SubflowId;

/// The factor by which the cached alpha is scaled.
const ALPHA_SCALE: u64 = ONE_Q16;

/// alpha is recomputed when `cwnd_total` has moved by one part in this many.
const MATERIAL_PART: u64 = 8;

/// Linked increases over all subflows of a connection.
#[derive(Debug, Default)]
pub struct Lia {
    alpha: LinkedAlpha,
}

/// The aggressiveness of a whole connection, cached.
#[derive(Debug, Default)]
pub(super) struct LinkedAlpha {
    cached: Option<CachedAlpha>,
}

#[derive(Clone, Copy, Debug)]
struct CachedAlpha {
    alpha_scaled: u64,
    /// `cwnd_total` at the last computation.
    cwnd_total: u64,
}

impl CachedAlpha {
    fn is_outdated(&self, cwnd_total: u64) -> bool {
        self.cwnd_total.abs_diff(cwnd_total) > self.cwnd_total / MATERIAL_PART
    }
}

impl LinkedAlpha {
    /// Drops the cached value because windows or round-trip times have changed; the next use recomputes it.
    pub(super) fn forget(&mut self) {
        self.cached = None;
    }

    /// Returns the gain of `acked` octets on `path` by equation (1) without its cap, in 2^-16 octet.
    pub(super) fn linked_q16(&mut self, acked: u64, path: &PathView, paths: Paths<'_>) -> u64 {
        let cwnd_total = paths.iter().map(effective_cwnd).sum();
        let alpha_scaled = self.scaled(cwnd_total, paths);
        share_q16(acked, alpha_scaled.saturating_mul(path.mss.into()), cwnd_total)
    }

    fn scaled(&mut self, cwnd_total: u64, paths: Paths<'_>) -> u64 {
        match self.cached {
            Some(cached) if !cached.is_outdated(cwnd_total) => cached.alpha_scaled,
            _ => {
                let alpha_scaled = alpha_scaled(cwnd_total, paths);
                self.cached = Some(CachedAlpha { alpha_scaled, cwnd_total });
                alpha_scaled
            }
        }
    }
}

impl CongestionController for Lia {
    fn name(&self) -> &'static str {
        "lia"
    }

    fn subflow_added(&mut self, _subflow: SubflowId, _paths: Paths<'_>) {
        self.alpha.forget();
    }

    fn subflow_removed(&mut self, _subflow: SubflowId, _paths: Paths<'_>) {
        self.alpha.forget();
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let acked = creditable_bytes(ack, path);
        if acked == 0 {
            return WindowStep::ZERO;
        }
        let linked = self.alpha.linked_q16(acked, path, paths);
        let alone = share_q16(acked, mss_q16(path), path.cwnd);
        grow_q16(linked.min(alone))
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        self.alpha.forget();
        paths.get(loss.subflow).cwnd / 2
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        self.alpha.forget();
        paths.get(subflow).cwnd / 2
    }

    fn on_round(&mut self, _subflow: SubflowId, _now: Instant, _paths: Paths<'_>) -> Option<WindowSet> {
        self.alpha.forget();
        None
    }
}

/// Returns RFC 6356 equation (2) times [`ALPHA_SCALE`]; 1 until a path has a round-trip time.
fn alpha_scaled(cwnd_total: u64, paths: Paths<'_>) -> u64 {
    let Some((cwnd_k, rtt_k)) = measured(paths).reduce(|best, path| if is_better(path, best) { path } else { best })
    else {
        return ALPHA_SCALE;
    };
    let sum = windows_over(rtt_k, paths).fold(0, u64::saturating_add);
    let numerator = u128::from(cwnd_total) * u128::from(cwnd_k) * u128::from(ALPHA_SCALE);
    let denominator = u128::from(sum) * u128::from(sum);
    u64::try_from(numerator / denominator.max(1)).unwrap_or(u64::MAX)
}

/// Whether `cwnd / rtt^2` of `path` exceeds that of `other`, multiplied out.
fn is_better(path: (u64, u64), other: (u64, u64)) -> bool {
    let weighed = |(cwnd, _): (u64, u64), (_, rtt): (u64, u64)| u128::from(cwnd) * u128::from(rtt) * u128::from(rtt);
    weighed(path, other) > weighed(other, path)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, idle_ack, loss, path, path_with_rtt};
    use super::*;

    /// Octets gained by acknowledging one segment of 1000 octets on subflow `id`.
    fn gain(lia: &mut Lia, id: u16, paths: &[PathView]) -> f64 {
        lia.on_ack(&ack(id, 1000), Paths(paths)).as_q16() as f64 / 65536.0
    }

    fn assert_close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 2e-4, "found {found}, expected {expected}");
    }

    #[test]
    fn two_equal_paths_of_ten_segments_gain_a_fortieth_each() {
        // alpha = 20 * (10 / .01) / (100 + 100)^2 = 0.5; 0.5 / 20 = 0.025 segments.
        let paths = [path(0, 10), path(1, 10)];
        let mut lia = Lia::default();
        assert_eq!(lia.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(25));
        assert_eq!(lia.on_ack(&ack(1, 1000), Paths(&paths)), WindowStep::from_bytes(25));
    }

    #[test]
    fn a_lone_path_is_newreno() {
        let paths = [path(0, 20)];
        assert_eq!(Lia::default().on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(50));
    }

    #[test]
    fn unequal_paths_gain_the_same_per_segment_until_the_cap() {
        // alpha = 30 * max(20/.01, 10/.04) / (20/.1 + 10/.2)^2 = 30 * 2000 / 62500 = 0.96; 0.96 / 30 = 0.032.
        let paths = [path_with_rtt(0, 20, 100), path_with_rtt(1, 10, 200)];
        let mut lia = Lia::default();
        assert_close(gain(&mut lia, 0, &paths), 32.0);
        assert_close(gain(&mut lia, 1, &paths), 32.0);
    }

    #[test]
    fn no_path_gains_more_than_newreno_would() {
        // alpha = 100 * (2/.0001) / (2/.01 + 98/.1)^2 = 2e6 / 1392400 = 1.43636: 0.0143636 exceeds 1/98 on path 1 only.
        let paths = [path_with_rtt(0, 2, 10), path_with_rtt(1, 98, 100)];
        let mut lia = Lia::default();
        assert_close(gain(&mut lia, 0, &paths), 14.3636);
        assert_close(gain(&mut lia, 1, &paths), 10.2041);
    }

    #[test]
    fn four_equal_paths_gain_a_sixteenth_of_newreno() {
        let paths = [path(0, 10), path(1, 10), path(2, 10), path(3, 10)];
        // alpha = 1/4: 0.25 / 40 segments, not 1/10.
        assert_eq!(Lia::default().on_ack(&ack(2, 1000), Paths(&paths)), WindowStep::from_q16(409_600));
    }

    #[test]
    fn alpha_waits_for_the_end_of_the_round() {
        let mut lia = Lia::default();
        gain(&mut lia, 0, &[path(0, 10), path(1, 10)]);
        // The round-trip times of the second vector, doubled on path 1: alpha = 20 * 1000 / 150^2 = 8/9.
        let slower = [path_with_rtt(0, 10, 100), path_with_rtt(1, 10, 200)];
        assert_close(gain(&mut lia, 0, &slower), 25.0);
        assert_eq!(lia.on_round(SubflowId(1), Instant::ZERO, Paths(&slower)), None);
        assert_close(gain(&mut lia, 0, &slower), 44.444);
    }

    #[test]
    fn alpha_follows_windows_that_move_and_subflows_that_go() {
        let mut lia = Lia::default();
        gain(&mut lia, 0, &[path(0, 10), path(1, 10)]);
        // alpha = 40 * 30/.01 / (10/.1 + 30/.1)^2 = 0.75; 0.75 / 40.
        assert_close(gain(&mut lia, 0, &[path(0, 10), path(1, 30)]), 18.75);
        let alone = [path(0, 36)];
        lia.subflow_removed(SubflowId(1), Paths(&alone));
        assert_close(gain(&mut lia, 0, &alone), 27.7778);
    }

    #[test]
    fn a_loss_halves_only_its_own_window() {
        let paths = [path(0, 10), path(1, 30)];
        assert_eq!(Lia::default().on_loss(&loss(1), Paths(&paths)), 15_000);
    }

    #[test]
    fn a_sibling_in_recovery_counts_with_its_threshold() {
        // Counts as two windows of 10, whatever recovery does to the second: 0.025.
        let recovering = PathView { in_recovery: true, ssthresh: 10_000, ..path(1, 25) };
        assert_eq!(Lia::default().on_ack(&ack(0, 1000), Paths(&[path(0, 10), recovering])), WindowStep::from_bytes(25));
    }

    #[test]
    fn a_window_that_nothing_fills_stays() {
        assert_eq!(Lia::default().on_ack(&idle_ack(0, 1000), Paths(&[path(0, 10)])), WindowStep::ZERO);
    }

    #[test]
    fn a_path_without_a_round_trip_time_does_not_slow_the_others() {
        let unmeasured = PathView { srtt: None, ..path(1, 10) };
        // alpha = 20 * 1000 / 100^2 = 2, and 2/20 equals the cap 1/10.
        assert_close(gain(&mut Lia::default(), 0, &[path(0, 10), unmeasured]), 100.0);
        assert_close(gain(&mut Lia::default(), 1, &[unmeasured]), 100.0);
    }
}
