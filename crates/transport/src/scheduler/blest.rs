//! BLEST: sends on a slow subflow only data that will not block a fast one.
//!
//! ```text
//! F has room:  F
//! otherwise:   S, the fastest with room; but wait for F if
//!
//!   X * lambda > SW - ( inflight_S + MSS_S )
//!   X = MSS_F * ( CWND_F + (rtts - 1) / 2 ) * rtts
//!
//! F          the fastest subflow (smallest round-trip time), with or without room
//! S          the fastest subflow with room
//! X          what F could send in the round-trip time of S, octets: its window grows by a segment per round trip
//! rtts       RTT_S / RTT_F
//! CWND_F     window of F, segments
//! SW         connection-level send window, octets
//! inflight_S octets in flight on S: they occupy SW for RTT_S, as the next segment would
//! lambda     1
//! ```
//!
//! Source: Ferlin, Alay, Mehani, Boreli, "BLEST: Blocking Estimation-based MPTCP Scheduler for Heterogeneous Networks"
//! (IFIP Networking 2016), section IV. The paper changes lambda by a few percent with every blocked and every unblocked
//! round. Schedulers here get no notice of blocking, so lambda keeps its initial value.

use units::{Duration, Prng};

use super::{Marks, ScheduleContext, Scheduler, SubflowView};

/// The BLEST scheduler: blocking estimation.
#[derive(Debug, Default)]
pub struct Blest;

impl Scheduler for Blest {
    fn name(&self) -> &'static str {
        "blest"
    }

    fn may_wait(&self) -> bool {
        true
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, _prng: &mut Prng) -> Marks {
        let Some((position, slow)) = context.fastest_with_room() else { return Marks::NONE };
        match context.worth_waiting_for(slow) {
            Some((fast, rtt_fast, rtt_slow)) if would_block(context, fast, slow, rtt_slow, rtt_fast) => Marks::NONE,
            _ => Marks::one(position),
        }
    }
}

/// Whether a segment on `slow` would take send window that `fast` could fill meanwhile.
fn would_block(
    context: &ScheduleContext<'_>,
    fast: &SubflowView,
    slow: &SubflowView,
    rtt_slow: Duration,
    rtt_fast: Duration,
) -> bool {
    let rtts = rtt_slow.as_nanos() as f64 / rtt_fast.as_nanos().max(1) as f64;
    let fast_bytes = (fast.cwnd as f64 + f64::from(fast.mss) * (rtts - 1.0) / 2.0) * rtts;
    let send_window = context.window_bytes.saturating_add(context.unacknowledged_bytes);
    let occupied = slow.in_flight.saturating_add(slow.queued).saturating_add(slow.mss.into());
    fast_bytes > send_window.saturating_sub(occupied) as f64
}

#[cfg(test)]
mod tests {
    use super::super::testing::{full, positions_in, subflow};
    use super::*;

    /// Returns the positions marked with a send window of `send_window` octets, of which 20,000 are used.
    fn marked(subflows: &[SubflowView], send_window: u64) -> Vec<usize> {
        let context = ScheduleContext {
            subflows,
            waiting_bytes: 1 << 20,
            fragment_bytes: 0,
            window_bytes: send_window - 20_000,
            unacknowledged_bytes: 20_000,
        };
        positions_in(&mut Blest, &context)
    }

    #[test]
    fn the_fastest_is_taken_while_it_has_room() {
        assert_eq!(marked(&[subflow(0, Some(100)), subflow(1, Some(20))], 21_000), [1]);
    }

    #[test]
    fn a_slow_subflow_waits_where_it_would_block() {
        // F: 10 segments, 20 ms; S: 100 ms with 4 segments in flight. rtts = 5, X = (10 + 2) * 5 = 60 segments, and 4 +
        // 1 segments occupy the window: 65 suffice.
        let subflows = [full(0, Some(20)), subflow(1, Some(100))];
        assert_eq!(marked(&subflows, 64_999), []);
        assert_eq!(marked(&subflows, 65_000), [1]);
    }

    #[test]
    fn the_fastest_of_the_slow_ones_is_considered() {
        // rtts = 3: X = (10 + 1) * 3 = 33 segments.
        let subflows = [full(0, Some(20)), subflow(1, Some(100)), subflow(2, Some(60))];
        assert_eq!(marked(&subflows, 37_999), []);
        assert_eq!(marked(&subflows, 38_000), [2]);
    }

    #[test]
    fn nothing_is_waited_for_without_end() {
        // A full subflow with nothing in flight gives no sign when it has room.
        let silent = SubflowView { in_flight: 0, ..full(0, Some(20)) };
        assert_eq!(marked(&[silent, subflow(1, Some(100))], 21_000), [1]);
        // Its delay is unknown.
        assert_eq!(marked(&[full(0, Some(20)), subflow(1, None)], 21_000), [1]);
    }

    #[test]
    fn without_room_it_waits() {
        assert_eq!(marked(&[full(0, Some(20)), full(1, Some(100))], 1 << 20), []);
    }
}
