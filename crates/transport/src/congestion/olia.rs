//! OLIA, the opportunistic linked increases.
//!
//! ```text
//!                     cwnd_i / rtt_i^2           alpha_i
//! ACK on i   acked * ( ------------------------ + ------- ) * MSS_i             equations (5), section 3 of the draft
//!                     (sum_p cwnd_p / rtt_p)^2    cwnd_i
//! loss on i  ssthresh_i = max(cwnd_i / 2, 1 segment)                            section 3; a path alone: 2 segments
//!
//! l_i       octets delivered between the last two losses, or since the last loss if that is more
//! best      the subflows with the largest l_p / rtt_p^2: 1 / l_p estimates the loss rate, so TCP's rate would be
//!           (2 l_p)^(1/2) / rtt_p (section 2). The definition beside that sentence prints l_p * l_p / rtt_p, which
//!           does not follow from it
//! max       the subflows with the largest window, in whole segments
//! collected best without max
//! alpha_i   1 / (K |collected|)   if i is collected
//!           -1 / (K |max|)        if i is in max and something is collected
//!           0                     otherwise
//! K         number of subflows
//! cwnd_i, rtt_i, MSS_i, acked as in lia.rs
//! ```
//!
//! Source: Khalili, Gast, Popovic, Le Boudec, "MPTCP Is Not Pareto-Optimal" (CoNEXT 2012; IEEE/ACM ToN 2013) and
//! draft-khalili-mptcp-congestion-control-05. The first term balances congestion. The second moves windows towards good
//! paths with small windows; at times it shrinks the window of the largest path.
//!
//! Congested paths keep one segment per round trip, not two: with windows of few segments this decides how much OLIA
//! takes from single-path users. In the testbed of the authors' measurements
//! (draft-khalili-mptcp-performance-issues-06) it matters more than the increases (docs/algorithms/congestion.md).
//!
//! Only ratios of round-trip times matter: with `W_i = sum_p cwnd_p * rtt_i / rtt_p` the first term is `acked * MSS_i *
//! cwnd_i / W_i^2`. alpha is recomputed at the end of every round and at every loss (section 4).

use units::Instant;

use super::arithmetic::{creditable_bytes, mss_q16, mul_div, share_q16};
use super::coupling::{effective_cwnd, rtt_us, windows_over};
use super::{
    AckSample, CongestionController, DeliverySample, Liberty, LossSample, PathView, Paths, PerSubflow,
    SSTHRESH_MIN_SEGMENTS, WindowSet, WindowStep,
};
use crate::SubflowId;

/// Opportunistic linked increases over all subflows of a connection.
#[derive(Debug, Default)]
pub struct Olia {
    subflows: PerSubflow<OliaState>,
    /// Whether every alpha is up to date.
    is_current: bool,
}

/// OLIA's state of one subflow.
#[derive(Clone, Copy, Debug, Default)]
struct OliaState {
    /// Octets delivered since the last loss.
    since_last_loss: u64,
    /// Octets delivered between the last two losses.
    between_losses: u64,
    alpha: Alpha,
}

impl OliaState {
    /// l_i.
    fn inter_loss_bytes(&self) -> u64 {
        self.since_last_loss.max(self.between_losses)
    }
}

/// alpha_i: a fraction of one window, gained or given away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Alpha {
    #[default]
    Zero,
    /// 1 / n.
    Gains(u64),
    /// -1 / n.
    Gives(u64),
}

impl CongestionController for Olia {
    fn name(&self) -> &'static str {
        "olia"
    }

    fn liberties(&self) -> &'static [Liberty] {
        &[Liberty::Gives, Liberty::OutgrowsNewReno]
    }

    fn subflow_added(&mut self, _subflow: SubflowId, _paths: Paths<'_>) {
        self.is_current = false;
    }

    fn subflow_removed(&mut self, subflow: SubflowId, _paths: Paths<'_>) {
        self.subflows.remove(subflow);
        self.is_current = false;
    }

    fn on_delivery(&mut self, sample: &DeliverySample) {
        let state = self.subflows.get_mut(sample.subflow);
        state.since_last_loss = state.since_last_loss.saturating_add(sample.delivered_bytes);
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let acked = creditable_bytes(ack, path);
        if acked == 0 {
            return WindowStep::ZERO;
        }
        if !self.is_current {
            self.assign_alpha(paths);
            self.is_current = true;
        }
        let balancing = balancing_q16(acked, path, paths);
        let opportunistic = share_q16(acked, mss_q16(path), path.cwnd);
        match self.subflows.get_mut(ack.subflow).alpha {
            Alpha::Zero => step(balancing, 0),
            Alpha::Gains(n) => step(balancing.saturating_add(opportunistic / n), 0),
            Alpha::Gives(n) => step(balancing, opportunistic / n),
        }
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        self.lost(loss.subflow);
        paths.get(loss.subflow).cwnd / 2
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        self.lost(subflow);
        paths.get(subflow).cwnd / 2
    }

    fn ssthresh_min_segments(&self, paths: Paths<'_>) -> u64 {
        if paths.0.len() > 1 { 1 } else { SSTHRESH_MIN_SEGMENTS }
    }

    fn on_round(&mut self, _subflow: SubflowId, _now: Instant, _paths: Paths<'_>) -> Option<WindowSet> {
        self.is_current = false;
        None
    }
}

impl Olia {
    fn lost(&mut self, subflow: SubflowId) {
        self.is_current = false;
        let state = self.subflows.get_mut(subflow);
        // Two losses with no delivery in between count as one.
        if state.since_last_loss > 0 {
            state.between_losses = core::mem::take(&mut state.since_last_loss);
        }
    }

    fn assign_alpha(&mut self, paths: Paths<'_>) {
        let largest = paths.iter().filter(|path| path.srtt.is_some()).map(whole_segments).max().unwrap_or(0);
        let best = paths.iter().filter_map(|path| self.quality(path)).reduce(Quality::better);
        let (mut in_max, mut collected) = (0, 0);
        for path in paths.iter().filter(|path| path.srtt.is_some()) {
            match () {
                () if whole_segments(path) == largest => in_max += 1,
                () if self.quality(path).zip(best).is_some_and(|(one, best)| one.equals(best)) => collected += 1,
                () => {}
            }
        }
        let k = paths.iter().count() as u64;
        for path in paths.iter() {
            let is_best = self.quality(path).zip(best).is_some_and(|(one, best)| one.equals(best));
            self.subflows.get_mut(path.id).alpha = match () {
                () if collected == 0 || path.srtt.is_none() => Alpha::Zero,
                () if whole_segments(path) == largest => Alpha::Gives(k * in_max),
                () if is_best => Alpha::Gains(k * collected),
                () => Alpha::Zero,
            };
        }
    }

    /// Returns l_p / rtt_p^2, once there is a round-trip time.
    fn quality(&mut self, path: &PathView) -> Option<Quality> {
        let inter_loss_bytes = self.subflows.get_mut(path.id).inter_loss_bytes();
        rtt_us(path).map(|rtt_us| Quality { inter_loss_bytes, rtt_us })
    }
}

/// l_p / rtt_p^2 as a fraction.
#[derive(Clone, Copy, Debug)]
struct Quality {
    inter_loss_bytes: u64,
    rtt_us: u64,
}

impl Quality {
    /// Returns this path's l_p times the other's squared round-trip time, for comparison without division.
    fn weighed(self, other: Self) -> u128 {
        u128::from(self.inter_loss_bytes) * u128::from(other.rtt_us) * u128::from(other.rtt_us)
    }

    fn better(self, other: Self) -> Self {
        if other.weighed(self) > self.weighed(other) { other } else { self }
    }

    fn equals(self, other: Self) -> bool {
        self.weighed(other) == other.weighed(self)
    }
}

fn whole_segments(path: &PathView) -> u64 {
    effective_cwnd(path) / u64::from(path.mss).max(1)
}

/// Returns the first term of the increase, in 2^-16 octet; NewReno's until the path has a round-trip time.
fn balancing_q16(acked: u64, path: &PathView, paths: Paths<'_>) -> u64 {
    let Some(rtt_us) = rtt_us(path) else {
        return share_q16(acked, mss_q16(path), path.cwnd);
    };
    let all = windows_over(rtt_us, paths).fold(0, u64::saturating_add);
    share_q16(acked, mul_div(mss_q16(path), effective_cwnd(path), all), all)
}

/// `gained - given`, both in 2^-16 octet.
fn step(gained: u64, given: u64) -> WindowStep {
    let signed = |q16| i64::try_from(q16).unwrap_or(i64::MAX);
    WindowStep::from_q16(signed(gained) - signed(given))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, delivery, idle_ack, loss, path, path_with_rtt};
    use super::*;

    /// Segments gained by acknowledging one on subflow `id`.
    fn gain(olia: &mut Olia, id: u16, paths: &[PathView]) -> f64 {
        olia.on_ack(&ack(id, 1000), Paths(paths)).as_q16() as f64 / 65_536_000.0
    }

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 2e-6, "found {found}, expected {expected}");
    }

    /// OLIA after `delivered` octets on each of the subflows 0, 1, ...
    fn after_deliveries(delivered: &[u64]) -> Olia {
        let mut olia = Olia::default();
        for (id, bytes) in delivered.iter().enumerate() {
            olia.on_delivery(&delivery(id as u16, *bytes));
        }
        olia
    }

    #[test]
    fn a_lone_path_is_newreno() {
        // (20 / .01) / (20 / .1)^2 = 1/20; the path is best and largest, so alpha = 0.
        assert_close(gain(&mut after_deliveries(&[50_000]), 0, &[path(0, 20)]), 0.05);
    }

    #[test]
    fn equal_paths_share_one_newreno() {
        // (10 / .01) / (200)^2 = 0.025; both are largest, nothing is collected.
        let paths = [path(0, 10), path(1, 10)];
        let mut olia = after_deliveries(&[50_000, 90_000]);
        assert_close(gain(&mut olia, 0, &paths), 0.025);
        assert_close(gain(&mut olia, 1, &paths), 0.025);
    }

    #[test]
    fn a_good_path_with_a_small_window_takes_from_the_largest() {
        // Sum of the rates: 20/.1 + 10/.2 = 250. Path 0: 2000 / 62500 = 0.032; path 1: 250 / 62500 = 0.004. l/rtt^2:
        // 1e5/.01 = 1e7 against 8e5/.04 = 2e7, so path 1 is best and collected: alpha = 1/2 and -1/2.
        let paths = [path_with_rtt(0, 20, 100), path_with_rtt(1, 10, 200)];
        let mut olia = after_deliveries(&[100_000, 800_000]);
        assert_close(gain(&mut olia, 0, &paths), 0.032 - 0.5 / 20.0);
        assert_close(gain(&mut olia, 1, &paths), 0.004 + 0.5 / 10.0);
    }

    #[test]
    fn the_largest_window_may_shrink() {
        // Rates 20/.2 = 100 and 10/.1 = 100; path 0: (20/.04) / 200^2 = 0.0125, less 1/(2 * 20) = 0.025.
        let paths = [path_with_rtt(0, 20, 200), path_with_rtt(1, 10, 100)];
        assert_close(gain(&mut after_deliveries(&[100_000, 100_000]), 0, &paths), -0.0125);
    }

    #[test]
    fn three_paths_of_which_two_are_best() {
        // Paths 1 and 2 are equally good and both below path 0: alpha = 1/(3 * 2), and -1/3 for path 0.
        let paths = [path(0, 20), path(1, 10), path(2, 5)];
        let mut olia = after_deliveries(&[1_000, 9_000, 9_000]);
        // Balancing terms: w / 35^2.
        assert_close(gain(&mut olia, 0, &paths), 20.0 / 1225.0 - 1.0 / 60.0);
        assert_close(gain(&mut olia, 1, &paths), 10.0 / 1225.0 + 1.0 / 60.0);
        assert_close(gain(&mut olia, 2, &paths), 5.0 / 1225.0 + 1.0 / 30.0);
    }

    #[test]
    fn the_longer_of_the_last_two_runs_counts() {
        let paths = [path(0, 20), path(1, 10)];
        let mut olia = after_deliveries(&[100_000, 150_000]);
        // Path 1 has just lost, but still counts 150,000 and stays the best until path 0 has delivered more.
        assert_eq!(olia.on_loss(&loss(1), Paths(&paths)), 5_000);
        assert_close(gain(&mut olia, 1, &paths), 10.0 / 900.0 + 0.05);
        olia.on_delivery(&delivery(0, 100_000));
        olia.on_round(SubflowId(0), Instant::ZERO, Paths(&paths));
        assert_close(gain(&mut olia, 1, &paths), 10.0 / 900.0);
        // An immediate second loss does not wipe out the run before the first.
        olia.on_rto(SubflowId(1), Instant::ZERO, Paths(&paths));
        assert_eq!(olia.subflows.get_mut(SubflowId(1)).inter_loss_bytes(), 150_000);
    }

    #[test]
    fn a_window_that_nothing_fills_stays() {
        assert_eq!(Olia::default().on_ack(&idle_ack(0, 1000), Paths(&[path(0, 10)])), WindowStep::ZERO);
    }

    #[test]
    fn without_a_round_trip_time_it_is_newreno() {
        let unmeasured = PathView { srtt: None, ..path(1, 10) };
        let mut olia = after_deliveries(&[1_000, 9_000]);
        assert_close(gain(&mut olia, 1, &[path(0, 20), unmeasured]), 0.1);
        assert_close(gain(&mut olia, 0, &[path(0, 20), unmeasured]), 0.05);
    }
}
