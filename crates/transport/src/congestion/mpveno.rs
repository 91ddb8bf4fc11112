//! MPVeno: the increases of OLIA with the decreases of Veno.
//!
//! ```text
//! ACK on i   as OLIA (olia.rs)
//! loss on i  ssthresh_i = 4/5 cwnd_i        if N_i < beta_i
//!            ssthresh_i = cwnd_i / 2        otherwise
//!
//! N_i       backlog of subflow i as in veno.rs
//! beta_i    3 x_i / sum_p x_p segments: all subflows together may queue as much as one Veno
//! x_i       rate of subflow i, cwnd_i / rtt_i
//! ```
//!
//! Source: Le, "Improving the performance of multipath congestion control over wireless networks" (ATC 2013), as the
//! mVeno paper describes it (sections II and IV-C). With its smaller threshold it attributes more losses to congestion
//! than Veno does.

use units::Instant;

use super::arithmetic::mul_div;
use super::coupling::{effective_cwnd, rtt_us, windows_over};
use super::veno::{BETA_SEGMENTS, backlog, reduced};
use super::{
    AckSample, CongestionController, DeliverySample, Liberty, LossSample, Olia, PathView, Paths, WindowSet, WindowStep,
};
use crate::SubflowId;

/// OLIA's increases and Veno's decreases over all subflows of a connection.
#[derive(Debug, Default)]
pub struct MpVeno {
    increases: Olia,
}

impl CongestionController for MpVeno {
    fn name(&self) -> &'static str {
        "mpveno"
    }

    fn liberties(&self) -> &'static [Liberty] {
        &[Liberty::Gives, Liberty::OutgrowsNewReno]
    }

    fn subflow_added(&mut self, subflow: SubflowId, paths: Paths<'_>) {
        self.increases.subflow_added(subflow, paths);
    }

    fn subflow_removed(&mut self, subflow: SubflowId, paths: Paths<'_>) {
        self.increases.subflow_removed(subflow, paths);
    }

    fn on_delivery(&mut self, sample: &DeliverySample) {
        self.increases.on_delivery(sample);
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        self.increases.on_ack(ack, paths)
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        self.increases.on_loss(loss, paths);
        let path = paths.get(loss.subflow);
        reduced(path.cwnd, backlog(path) >= threshold_bytes(path, paths))
    }

    fn on_rto(&mut self, subflow: SubflowId, now: Instant, paths: Paths<'_>) -> u64 {
        self.increases.on_rto(subflow, now, paths)
    }

    fn on_round(&mut self, subflow: SubflowId, now: Instant, paths: Paths<'_>) -> Option<WindowSet> {
        self.increases.on_round(subflow, now, paths)
    }
}

/// Returns beta_i in octets: Veno's threshold times the path's share of the total rate; all of it without a round-trip
/// time.
fn threshold_bytes(path: &PathView, paths: Paths<'_>) -> u64 {
    let beta = BETA_SEGMENTS * u64::from(path.mss);
    rtt_us(path).map_or(beta, |rtt_us| {
        mul_div(beta, effective_cwnd(path), windows_over(rtt_us, paths).fold(0, u64::saturating_add))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, loss, path, path_with_rtt, queued_path};
    use super::*;

    #[test]
    fn it_grows_as_olia_does() {
        let paths = [path(0, 10), path(1, 10)];
        assert_eq!(MpVeno::default().on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(25));
    }

    #[test]
    fn a_path_with_half_the_rate_has_half_the_threshold() {
        // N = 10 * 25/125 = 2 segments. Alone that is less than 3; beside an equal path the threshold is 1.5.
        let queued = queued_path(0, 10, 125, 100);
        assert_eq!(MpVeno::default().on_loss(&loss(0), Paths(&[queued])), 8_000);
        assert_eq!(MpVeno::default().on_loss(&loss(0), Paths(&[queued, path_with_rtt(1, 10, 125)])), 5_000);
        // Beside a path with a quarter of the rate the threshold is 2.4.
        assert_eq!(MpVeno::default().on_loss(&loss(0), Paths(&[queued, path_with_rtt(1, 5, 250)])), 8_000);
    }

    #[test]
    fn an_empty_queue_is_no_congestion() {
        let paths = [path(0, 10), path(1, 30)];
        assert_eq!(MpVeno::default().on_loss(&loss(1), Paths(&paths)), 24_000);
    }
}
