//! MPTCPW, coordinated Westwood: the increases of LIA with the decreases of Westwood+.
//!
//! ```text
//! ACK on i        as LIA (lia.rs)
//! loss, RTO on i  ssthresh_i = BWE_i * RTTmin_i          as Westwood+ (westwood.rs)
//! ```
//!
//! Source: Le, Hong, Huh, "Coordinated TCP Westwood congestion control for multiple paths over wireless networks"
//! (ICOIN 2012), as the mVeno paper describes it (section II): Westwood for multipath, as fast as Westwood on the best
//! path. That condition gives LIA's alpha, because the derivation is the same: in equilibrium a single-path Westwood
//! gains `1 / v` per segment and loses the share `(RTT - RTTmin) / RTT` of its window v, while a subflow gains `alpha /
//! cwnd_total` and loses the same share. Therefore `v_i^2 = cwnd_total cwnd_i / alpha`, and `sum_i cwnd_i / rtt_i =
//! max_i v_i / rtt_i` is RFC 6356's condition.

use units::Instant;

use super::westwood::Decreases;
use super::{AckSample, CongestionController, DeliverySample, Lia, LossSample, Paths, WindowSet, WindowStep};
use crate::SubflowId;

/// LIA's increases and Westwood's decreases over all subflows of a connection.
#[derive(Debug, Default)]
pub struct MptcpW {
    increases: Lia,
    decreases: Decreases,
}

impl CongestionController for MptcpW {
    fn name(&self) -> &'static str {
        "mptcpw"
    }

    fn subflow_added(&mut self, subflow: SubflowId, paths: Paths<'_>) {
        self.increases.subflow_added(subflow, paths);
    }

    fn subflow_removed(&mut self, subflow: SubflowId, paths: Paths<'_>) {
        self.increases.subflow_removed(subflow, paths);
        self.decreases.subflow_removed(subflow);
    }

    fn on_delivery(&mut self, sample: &DeliverySample) {
        self.decreases.on_delivery(sample);
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        self.increases.on_ack(ack, paths)
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        self.increases.on_loss(loss, paths);
        self.decreases.ssthresh(paths.get(loss.subflow))
    }

    fn on_rto(&mut self, subflow: SubflowId, now: Instant, paths: Paths<'_>) -> u64 {
        self.increases.on_rto(subflow, now, paths);
        self.decreases.ssthresh(paths.get(subflow))
    }

    fn on_round(&mut self, subflow: SubflowId, now: Instant, paths: Paths<'_>) -> Option<WindowSet> {
        self.decreases.on_round(subflow, now);
        self.increases.on_round(subflow, now, paths)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, delivery, loss, path};
    use super::*;

    #[test]
    fn it_grows_as_lia_and_falls_as_westwood() {
        let paths = [path(0, 10), path(1, 10)];
        let mut mptcpw = MptcpW::default();
        assert_eq!(mptcpw.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(25));
        for (end_ms, delivered_bytes) in [(0, 1_000), (100, 8_000)] {
            mptcpw.on_delivery(&delivery(0, delivered_bytes));
            mptcpw.on_round(SubflowId(0), Instant::from_millis(end_ms), Paths(&paths));
        }
        // 80,000 octets/s over 100 ms.
        assert_eq!(mptcpw.on_loss(&loss(0), Paths(&paths)), 8_000);
        assert_eq!(mptcpw.on_rto(SubflowId(0), Instant::ZERO, Paths(&paths)), 8_000);
        assert_eq!(mptcpw.on_loss(&loss(1), Paths(&paths)), 5_000);
    }
}
