//! Views for the tests of schedulers.

use units::{Duration, Prng};

use super::{ScheduleContext, Scheduler, SubflowView};
use crate::SubflowId;

/// Creates a subflow with room.
pub(super) fn subflow(id: u16, srtt_ms: Option<u64>) -> SubflowView {
    SubflowView {
        id: SubflowId(id),
        mss: 1000,
        srtt: srtt_ms.map(Duration::from_millis),
        rttvar: Duration::ZERO,
        cwnd: 10_000,
        ssthresh: u64::MAX,
        in_flight: 4_000,
        queued: 0,
        held: 4_000,
        has_room: true,
        backup: false,
        stale: false,
    }
}

/// Creates a subflow whose window is full.
pub(super) fn full(id: u16, srtt_ms: Option<u64>) -> SubflowView {
    SubflowView { in_flight: 10_000, held: 10_000, has_room: false, ..subflow(id, srtt_ms) }
}

/// Returns the positions that `scheduler` marks.
pub(super) fn positions(scheduler: &mut dyn Scheduler, subflows: &[SubflowView]) -> Vec<usize> {
    positions_with(scheduler, subflows, &mut Prng::new(1))
}

/// As [`positions`], with the caller's generator.
pub(super) fn positions_with(scheduler: &mut dyn Scheduler, subflows: &[SubflowView], prng: &mut Prng) -> Vec<usize> {
    let context = ScheduleContext {
        subflows,
        waiting_bytes: 1 << 20,
        fragment_bytes: 0,
        window_bytes: 1 << 20,
        unacknowledged_bytes: 1 << 16,
    };
    scheduler.schedule(&context, prng).iter().collect()
}

/// Returns the positions that `scheduler` marks in `context`.
pub(super) fn positions_in(scheduler: &mut dyn Scheduler, context: &ScheduleContext<'_>) -> Vec<usize> {
    scheduler.schedule(context, &mut Prng::new(1)).iter().collect()
}
