//! Veno: Reno that tells random loss from congestion by the estimated queue, on every subflow independently.
//!
//! ```text
//! N = cwnd * (RTT - baseRTT) / RTT                       backlog, mVeno equation (1)
//!
//! ACK    cwnd += acked * SMSS / cwnd         if N < beta     section III-B
//!        cwnd += acked * SMSS / (2 cwnd)     otherwise: as if every other ACK counted
//! loss   ssthresh = 4/5 cwnd                 if N < beta     section III-C: the loss was random
//!        ssthresh = cwnd / 2                 otherwise: the queue was full
//!
//! RTT       smoothed round-trip time
//! baseRTT   smallest round-trip time of the last 300 s (`PathView::min_rtt`)
//! beta      3 segments
//! cwnd, acked, SMSS as in newreno.rs
//! ```
//!
//! Source: Fu, Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks" (IEEE JSAC 2003). After
//! a time-out, half the window remains.

use super::arithmetic::{creditable_bytes, grow_q16, mss_q16, share_q16};
use super::coupling::backlog_bytes;
use super::{AckSample, CongestionController, LossSample, PathView, Paths, WindowStep};

/// beta: from this many segments in the queue on, the network is congested.
pub(super) const BETA_SEGMENTS: u64 = 3;

/// Veno on every subflow independently.
#[derive(Debug, Default)]
pub struct Veno;

impl CongestionController for Veno {
    fn name(&self) -> &'static str {
        "veno"
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let gained = share_q16(creditable_bytes(ack, path), mss_q16(path), path.cwnd);
        grow_q16(if is_congested(path) { gained / 2 } else { gained })
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        let path = paths.get(loss.subflow);
        reduced(path.cwnd, is_congested(path))
    }
}

/// N >= beta. Without a round-trip time there is no evidence of congestion.
fn is_congested(path: &PathView) -> bool {
    backlog(path) >= BETA_SEGMENTS * u64::from(path.mss)
}

/// N in octets.
pub(super) fn backlog(path: &PathView) -> u64 {
    path.srtt.zip(path.min_rtt).map_or(0, |(rtt, base_rtt)| backlog_bytes(path.cwnd, rtt, base_rtt))
}

/// Returns the window that a loss leaves of `cwnd` octets.
pub(super) fn reduced(cwnd: u64, is_congested: bool) -> u64 {
    if is_congested { cwnd / 2 } else { cwnd - cwnd / 5 }
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::super::testing::{ack, idle_ack, loss, path, queued_path};
    use super::*;

    #[test]
    fn an_empty_queue_makes_it_reno_that_gives_up_a_fifth() {
        let paths = [path(0, 20)];
        assert_eq!(Veno.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(50));
        assert_eq!(Veno.on_loss(&loss(0), Paths(&paths)), 16_000);
    }

    #[test]
    fn three_segments_in_the_queue_are_congestion() {
        // 15 segments over 125 ms, 100 ms of them propagation: N = 3.
        let paths = [queued_path(0, 15, 125, 100)];
        assert_eq!(Veno.on_loss(&loss(0), Paths(&paths)), 7_500);
        // 1000 * 1000 / 15000 / 2 = 33.33 octets.
        assert_eq!(Veno.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_q16(2_184_533));
        // 14 segments put 2.8 of them in the queue.
        assert_eq!(Veno.on_loss(&loss(0), Paths(&[queued_path(0, 14, 125, 100)])), 11_200);
    }

    #[test]
    fn siblings_do_not_matter() {
        let paths = [path(0, 10), queued_path(1, 100, 200, 100)];
        assert_eq!(Veno.on_loss(&loss(0), Paths(&paths)), 8_000);
        assert_eq!(Veno.on_loss(&loss(1), Paths(&paths)), 50_000);
    }

    #[test]
    fn without_a_round_trip_time_losses_are_random() {
        let paths = [PathView { srtt: None, ..queued_path(0, 100, 200, 100) }];
        assert_eq!(Veno.on_loss(&loss(0), Paths(&paths)), 80_000);
        let faster_than_ever = [PathView { srtt: Some(Duration::from_millis(1)), ..path(0, 10) }];
        assert_eq!(Veno.on_loss(&loss(0), Paths(&faster_than_ever)), 8_000);
    }

    #[test]
    fn a_window_that_nothing_fills_stays() {
        assert_eq!(Veno.on_ack(&idle_ack(0, 1000), Paths(&[path(0, 10)])), WindowStep::ZERO);
    }
}
