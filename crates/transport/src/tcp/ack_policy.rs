//! When to acknowledge: at once, with the next data, or after a delay (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).

use units::{Duration, Instant};

use super::ack_delay::AdaptiveDelay;
use crate::era::AckDelay;

/// Segments acknowledged one by one at the start, while the peer's window is small and every ACK lets it grow.
const QUICK_SEGMENTS: u32 = 16;

/// Acknowledgements owed to the peer.
#[derive(Debug)]
pub(crate) struct AckPolicy {
    /// Octets received since the last ACK was sent.
    unacknowledged: u32,
    due: bool,
    /// Only an ACK without data that the peer will process settles what is due.
    fresh_due: bool,
    quick_left: u32,
    /// Largest segment seen, taken as the peer's full segment.
    largest: u32,
    adaptive: Option<AdaptiveDelay>,
}

impl AckPolicy {
    /// ACKs wait for `delay`, or for the adaptive delay that starts from it if `kind` says so.
    pub(crate) fn new(delay: Duration, kind: AckDelay) -> Self {
        let adaptive = (kind == AckDelay::Adaptive).then(|| AdaptiveDelay::new(delay));
        Self { unacknowledged: 0, due: false, fresh_due: false, quick_left: QUICK_SEGMENTS, largest: 0, adaptive }
    }

    /// Takes data that arrived in order. An ACK is due once they exceed one full segment, as in Linux. Two full
    /// segments do, and so does a full one plus part of another; a sender with a short round trip would otherwise probe
    /// for the ACK of that part (tail loss probe, RFC 8985 section 7). Offload may deliver several segments as one, so
    /// none counts as larger than `full_segment`.
    pub(crate) fn on_data(&mut self, bytes: u32, full_segment: u32) {
        self.unacknowledged += bytes;
        self.largest = self.largest.max(bytes.min(full_segment));
        if self.quick_left > 0 {
            self.quick_left -= 1;
            self.due = true;
        }
        self.due |= self.unacknowledged > self.largest;
    }

    /// Takes note that the next data arrived. `rto` is the least time after which the peer may have timed out.
    #[inline]
    pub(crate) fn on_next(&mut self, now: Instant, rto: Duration) {
        if self.adaptive.as_mut().is_some_and(|adaptive| adaptive.on_next(now, rto)) {
            self.begin_anew();
        }
    }

    /// Takes note that data arrived again.
    pub(crate) fn on_again(&mut self) {
        if self.adaptive.is_some() {
            self.begin_anew();
        }
    }

    /// Acknowledges every segment for a while, after the peer lost something.
    fn begin_anew(&mut self) {
        self.quick_left = QUICK_SEGMENTS;
        self.adaptive.iter_mut().for_each(AdaptiveDelay::begin_anew);
    }

    /// Takes note that an ACK was delayed in vain.
    pub(crate) fn on_waited(&mut self, rto: Duration) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.on_waited(rto);
        }
    }

    /// Returns how long an ACK may wait: `fixed`, or the adaptive delay for a path with round-trip time `srtt`.
    #[inline]
    pub(crate) fn delay(&self, fixed: Duration, srtt: Option<Duration>) -> Duration {
        self.adaptive.as_ref().map_or(fixed, |adaptive| adaptive.get(srtt))
    }

    /// Makes an ACK due now.
    pub(crate) fn demand(&mut self) {
        self.due = true;
    }

    /// Makes an ACK due now that no segment with data, no repetition and no probe replaces ([`crate::sent_once`]).
    pub(crate) fn demand_fresh(&mut self) {
        (self.due, self.fresh_due) = (true, true);
    }

    /// Whether an ACK must be sent even without data.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Whether an ACK is owed that may wait for data or the delay.
    pub(crate) fn is_owed(&self) -> bool {
        self.unacknowledged > 0
    }

    /// Takes note of a sent segment with an ACK: nothing is owed any more, except an ACK that must be fresh.
    #[inline]
    pub(crate) fn on_sent(&mut self, is_fresh: bool) {
        self.unacknowledged = 0;
        self.fresh_due &= !is_fresh;
        self.due = self.fresh_due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a policy that has seen full segments of 1000 octets, and owes nothing.
    fn after_the_quick_start() -> AckPolicy {
        let mut policy = AckPolicy::new(Duration::from_millis(40), AckDelay::Fixed);
        for _ in 0..QUICK_SEGMENTS {
            policy.on_data(1000, 1000);
            assert!(policy.is_due());
            policy.on_sent(false);
        }
        policy
    }

    #[test]
    fn every_second_segment_after_the_quick_start() {
        let mut policy = after_the_quick_start();
        policy.on_data(1000, 1000);
        assert!(!policy.is_due() && policy.is_owed());
        policy.on_data(1000, 1000);
        assert!(policy.is_due());
        policy.on_sent(false);
        assert!(!policy.is_due() && !policy.is_owed());
    }

    #[test]
    fn nothing_replaces_a_fresh_ack() {
        let mut policy = after_the_quick_start();
        policy.demand_fresh();
        policy.on_sent(false);
        assert!(policy.is_due() && !policy.is_owed());
        policy.on_sent(true);
        assert!(!policy.is_due());
    }

    #[test]
    fn what_exceeds_one_full_segment_is_acknowledged_at_once() {
        for (first, second, due) in [(1000, 1, true), (1, 1000, true), (600, 401, true), (600, 400, false)] {
            let mut policy = after_the_quick_start();
            policy.on_data(first, 1000);
            assert!(!policy.is_due(), "{first}");
            policy.on_data(second, 1000);
            assert_eq!(policy.is_due(), due, "{first} and {second}");
        }
    }
}
