//! NewReno (RFC 5681, RFC 6582), and independent NewReno on every subflow ("uncoupled").
//!
//! ```text
//! ACK    cwnd += acked * SMSS / cwnd          RFC 5681 equation (3), counting octets: 1 SMSS per round trip
//! loss   ssthresh = cwnd / 2                  RFC 5681 equation (4)
//!
//! cwnd    congestion window, octets
//! acked   octets newly acknowledged
//! SMSS    sender maximum segment size, octets
//! ```
//!
//! Equation (4) halves the FlightSize. Windows here grow only while they are the limit (RFC 7661), so the two agree
//! when a loss is found, and `cwnd` stays meaningful when part of the flight is already deemed lost. The subflow
//! performs RFC 6582's recovery.

use super::arithmetic::{creditable_bytes, grow_q16, mss_q16, share_q16};
use super::{AckSample, CongestionController, LossSample, Paths, WindowStep};

/// NewReno. It has no state and does not look at siblings, so with several subflows it is uncoupled control.
#[derive(Debug)]
pub struct NewReno {
    name: &'static str,
}

impl NewReno {
    /// Creates the controller under its registered name.
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }
}

impl CongestionController for NewReno {
    fn name(&self) -> &'static str {
        self.name
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        grow_q16(share_q16(creditable_bytes(ack, path), mss_q16(path), path.cwnd))
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        paths.get(loss.subflow).cwnd / 2
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, idle_ack, loss, path};
    use super::*;

    #[test]
    fn a_window_of_ten_grows_by_a_tenth_per_segment() {
        let paths = [path(0, 10)];
        let step = NewReno::new("newreno").on_ack(&ack(0, 1000), Paths(&paths));
        assert_eq!(step, WindowStep::from_bytes(100));
    }

    #[test]
    fn a_delayed_ack_counts_all_its_octets() {
        let paths = [path(0, 10)];
        let step = NewReno::new("newreno").on_ack(&ack(0, 2000), Paths(&paths));
        assert_eq!(step, WindowStep::from_bytes(200));
    }

    #[test]
    fn a_huge_ack_gains_one_segment_at_most() {
        let paths = [path(0, 10)];
        let step = NewReno::new("newreno").on_ack(&ack(0, 1_000_000), Paths(&paths));
        assert_eq!(step, WindowStep::from_bytes(1000));
    }

    #[test]
    fn a_window_that_nothing_fills_stays() {
        let paths = [path(0, 10)];
        assert_eq!(NewReno::new("newreno").on_ack(&idle_ack(0, 1000), Paths(&paths)), WindowStep::ZERO);
    }

    #[test]
    fn siblings_do_not_matter() {
        let paths = [path(0, 10), path(1, 40)];
        let mut uncoupled = NewReno::new("uncoupled");
        assert_eq!(uncoupled.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(100));
        assert_eq!(uncoupled.on_ack(&ack(1, 1000), Paths(&paths)), WindowStep::from_bytes(25));
        assert_eq!(uncoupled.on_loss(&loss(1), Paths(&paths)), 20_000);
        assert_eq!(uncoupled.on_rto(crate::SubflowId(0), units::Instant::ZERO, Paths(&paths)), 5_000);
    }
}
