//! Samples and views for the controllers' tests: MSS 1000 octets, round trips of 100 ms.

use units::{Duration, Instant};

use super::{AckSample, CongestionSignal, DeliverySample, LossSample, PathView};
use crate::SubflowId;

pub(super) const MSS: u64 = 1000;

/// A subflow with a window of `segments`, out of slow start.
pub(super) fn path(id: u16, segments: u64) -> PathView {
    path_with_rtt(id, segments, 100)
}

/// Like [`path`], with another round-trip time.
pub(super) fn path_with_rtt(id: u16, segments: u64, rtt_ms: u64) -> PathView {
    let rtt = Some(Duration::from_millis(rtt_ms));
    PathView {
        id: SubflowId(id),
        mss: MSS as u32,
        cwnd: segments * MSS,
        ssthresh: 2 * MSS,
        in_flight: segments * MSS,
        srtt: rtt,
        latest_rtt: rtt,
        min_rtt: rtt,
        in_recovery: false,
        competition: None,
    }
}

/// Like [`path_with_rtt`], behind a queue: propagation alone would take `base_rtt_ms`.
pub(super) fn queued_path(id: u16, segments: u64, rtt_ms: u64, base_rtt_ms: u64) -> PathView {
    PathView { min_rtt: Some(Duration::from_millis(base_rtt_ms)), ..path_with_rtt(id, segments, rtt_ms) }
}

/// Data that arrived at time zero, shown by an ACK that measured nothing.
pub(super) fn delivery(id: u16, delivered_bytes: u64) -> DeliverySample {
    DeliverySample { subflow: SubflowId(id), now: Instant::ZERO, delivered_bytes, rtt: None }
}

/// An ACK at time zero while the window was the limit.
pub(super) fn ack(id: u16, acked_bytes: u64) -> AckSample {
    ack_at(id, acked_bytes, 0)
}

/// Like [`ack`], at another time.
pub(super) fn ack_at(id: u16, acked_bytes: u64, now_ms: u64) -> AckSample {
    AckSample { subflow: SubflowId(id), now: Instant::from_millis(now_ms), acked_bytes, rtt: None, cwnd_limited: true }
}

/// An ACK at time zero while the application was the limit.
pub(super) fn idle_ack(id: u16, acked_bytes: u64) -> AckSample {
    AckSample { cwnd_limited: false, ..ack(id, acked_bytes) }
}

/// A loss at time zero.
pub(super) fn loss(id: u16) -> LossSample {
    LossSample { subflow: SubflowId(id), now: Instant::ZERO, signal: CongestionSignal::Loss, lost_bytes: MSS }
}
