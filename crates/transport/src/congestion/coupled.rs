//! COUPLED: increases and decreases that know only the total of all windows.
//!
//! ```text
//! ACK on i   cwnd_i += acked * MSS_i / cwnd_total
//! loss on i  ssthresh_i = cwnd_i - cwnd_total / 2, not below the engine's least
//!
//! cwnd_total   sum_p cwnd_p
//! cwnd_i, MSS_i, acked as in lia.rs
//! ```
//!
//! Source: Wischik, Raiciu, Greenhalgh, Handley, "Design, Implementation and Evaluation of Congestion Control for
//! Multipath TCP" (NSDI 2011), section 2.2, after the fluid model of Kelly and Voice (2005). Equal paths together carry
//! as much as one NewReno. Of unequal paths, only those with the least loss carry data; the others stay at the smallest
//! window and probe too rarely to notice a change. LIA therefore links only the increases.

use units::Instant;

use super::arithmetic::{creditable_bytes, grow_q16, mss_q16, share_q16};
use super::coupling::effective_cwnd;
use super::{AckSample, CongestionController, LossSample, Paths, WindowStep};
use crate::SubflowId;

/// Fully coupled control over all subflows of a connection.
#[derive(Debug, Default)]
pub struct Coupled;

impl CongestionController for Coupled {
    fn name(&self) -> &'static str {
        "coupled"
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        // At least the window itself counts: in recovery, its effective part may be smaller.
        let cwnd_total = cwnd_total(paths).max(path.cwnd);
        grow_q16(share_q16(creditable_bytes(ack, path), mss_q16(path), cwnd_total))
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        paths.get(loss.subflow).cwnd.saturating_sub(cwnd_total(paths) / 2)
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        paths.get(subflow).cwnd.saturating_sub(cwnd_total(paths) / 2)
    }
}

fn cwnd_total(paths: Paths<'_>) -> u64 {
    paths.iter().map(effective_cwnd).sum()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, idle_ack, loss, path, path_with_rtt};
    use super::*;

    #[test]
    fn all_windows_together_gain_one_segment() {
        let paths = [path(0, 30), path_with_rtt(1, 10, 300)];
        // 1000 / 40 octets per segment, on either.
        assert_eq!(Coupled.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(25));
        assert_eq!(Coupled.on_ack(&ack(1, 1000), Paths(&paths)), WindowStep::from_bytes(25));
    }

    #[test]
    fn a_loss_takes_half_of_the_total_from_the_one_window() {
        let paths = [path(0, 30), path(1, 10)];
        assert_eq!(Coupled.on_loss(&loss(0), Paths(&paths)), 10_000);
        // 10 - 20 counts as zero: the engine leaves two segments.
        assert_eq!(Coupled.on_loss(&loss(1), Paths(&paths)), 0);
        assert_eq!(Coupled.on_rto(SubflowId(0), Instant::ZERO, Paths(&paths)), 10_000);
    }

    #[test]
    fn a_lone_path_is_newreno() {
        let paths = [path(0, 20)];
        assert_eq!(Coupled.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(50));
        assert_eq!(Coupled.on_loss(&loss(0), Paths(&paths)), 10_000);
    }

    #[test]
    fn a_window_that_nothing_fills_stays() {
        assert_eq!(Coupled.on_ack(&idle_ack(0, 1000), Paths(&[path(0, 10)])), WindowStep::ZERO);
    }
}
