//! BALIA, the balanced linked adaptation.
//!
//! ```text
//!                         x_i              1 + q_i   4 + q_i
//! ACK on i   acked * ------------------- * ------- * ------- * MSS_i
//!                    rtt_i (sum_p x_p)^2      2         5
//! loss on i  ssthresh_i = cwnd_i - cwnd_i / 2 * min(q_i, 3/2), at least 1 segment; a path alone: 2 segments
//!
//! x_i       rate of subflow i, cwnd_i / rtt_i
//! q_i       max_p x_p / x_i, at least 1 (the paper calls it alpha_i)
//! cwnd_i, rtt_i, MSS_i, acked as in lia.rs
//! ```
//!
//! Source: Peng, Walid, Hwang, Low, "Multipath TCP: Analysis, Design, and Implementation" (IEEE/ACM ToN 2016), and
//! draft-walid-mptcp-congestion-control-04 section 2. A single subflow behaves as NewReno. After a time-out, half the
//! window remains.
//!
//! Only ratios of round-trip times matter: with `W_i = sum_p cwnd_p * rtt_i / rtt_p` and `M_i` the largest of these
//! terms, `q_i = M_i / cwnd_i` and the increase is
//! `acked * MSS_i * (cwnd_i + M_i) (4 cwnd_i + M_i) / (10 W_i^2 cwnd_i)`.

use super::arithmetic::{creditable_bytes, grow_q16, mss_q16, mul_div, share_q16};
use super::coupling::{effective_cwnd, rtt_us, windows_over};
use super::{AckSample, CongestionController, LossSample, PathView, Paths, SSTHRESH_MIN_SEGMENTS, WindowStep};

/// Balanced linked adaptation over all subflows of a connection.
#[derive(Debug, Default)]
pub struct Balia;

impl CongestionController for Balia {
    fn name(&self) -> &'static str {
        "balia"
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let acked = creditable_bytes(ack, path);
        let Rates { own, largest, all } = Rates::of(path, paths);
        let once = mul_div(mss_q16(path), own.saturating_add(largest), all);
        let twice = mul_div(once, own.saturating_mul(4).saturating_add(largest), all);
        grow_q16(share_q16(acked, twice / 10, path.cwnd))
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        let path = paths.get(loss.subflow);
        let Rates { own, largest, .. } = Rates::of(path, paths);
        let half = path.cwnd / 2;
        // min(q, 3/2): q >= 3/2 if twice the largest is at least three times this path's own.
        let q_is_capped = largest.saturating_mul(2) >= own.saturating_mul(3);
        path.cwnd - if q_is_capped { mul_div(half, 3, 2) } else { mul_div(half, largest, own) }
    }

    fn ssthresh_min_segments(&self, paths: Paths<'_>) -> u64 {
        if paths.0.len() > 1 { 1 } else { SSTHRESH_MIN_SEGMENTS }
    }
}

/// Rates of subflows, as windows over the round-trip time of one of them, octets.
struct Rates {
    /// cwnd_i.
    own: u64,
    /// M_i.
    largest: u64,
    /// W_i.
    all: u64,
}

impl Rates {
    /// Returns the rates over the round-trip time of `path`, or its own window alone until it has a round-trip time.
    fn of(path: &PathView, paths: Paths<'_>) -> Self {
        let own = effective_cwnd(path);
        match rtt_us(path) {
            None => Self { own, largest: own, all: own },
            Some(rtt_us) => Self {
                own,
                largest: windows_over(rtt_us, paths).max().unwrap_or(own),
                all: windows_over(rtt_us, paths).fold(0, u64::saturating_add),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, idle_ack, loss, path, path_with_rtt};
    use super::*;

    /// Segments gained by acknowledging one on subflow `id`.
    fn gain(id: u16, paths: &[PathView]) -> f64 {
        Balia.on_ack(&ack(id, 1000), Paths(paths)).as_q16() as f64 / 65_536_000.0
    }

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 2e-6, "found {found}, expected {expected}");
    }

    #[test]
    fn a_lone_path_is_newreno() {
        assert_close(gain(0, &[path(0, 20)]), 0.05);
        assert_eq!(Balia.on_loss(&loss(0), Paths(&[path(0, 20)])), 10_000);
    }

    #[test]
    fn equal_paths_share_one_newreno() {
        // x = 100 each: 100 / (.1 * 200^2) * (2/2) * (5/5) = 0.025.
        let paths = [path(0, 10), path(1, 10)];
        assert_close(gain(0, &paths), 0.025);
        assert_eq!(Balia.on_loss(&loss(1), Paths(&paths)), 5_000);
    }

    #[test]
    fn a_slower_path_gains_and_loses_more_than_its_share() {
        // x = 200 and 100. Path 1: q = 2; 100 / (.1 * 300^2) * 3/2 * 6/5 = 0.02. Path 0: 200 / (.1 * 9e4) = 0.022222.
        let paths = [path(0, 20), path(1, 10)];
        assert_close(gain(0, &paths), 0.022222);
        assert_close(gain(1, &paths), 0.02);
        // The window falls by min(2, 1.5) / 2 = 3/4.
        assert_eq!(Balia.on_loss(&loss(1), Paths(&paths)), 2_500);
        assert_eq!(Balia.on_loss(&loss(0), Paths(&paths)), 10_000);
    }

    #[test]
    fn round_trip_times_weigh() {
        // x = 20/.1 = 200 and 40/.25 = 160; path 1: q = 1.25; 160 / (.25 * 360^2) * 2.25/2 * 5.25/5 = 0.0058333.
        let paths = [path_with_rtt(0, 20, 100), path_with_rtt(1, 40, 250)];
        assert_close(gain(1, &paths), 0.0058333);
        // 40 * (1 - 1.25/2) = 15.
        assert_eq!(Balia.on_loss(&loss(1), Paths(&paths)), 15_000);
    }

    #[test]
    fn a_window_that_nothing_fills_stays() {
        assert_eq!(Balia.on_ack(&idle_ack(0, 1000), Paths(&[path(0, 10)])), WindowStep::ZERO);
    }

    #[test]
    fn without_a_round_trip_time_it_is_newreno() {
        let paths = [path(0, 20), PathView { srtt: None, ..path(1, 10) }];
        assert_close(gain(1, &paths), 0.1);
        assert_eq!(Balia.on_loss(&loss(1), Paths(&paths)), 5_000);
        assert_close(gain(0, &paths), 0.05);
    }
}
