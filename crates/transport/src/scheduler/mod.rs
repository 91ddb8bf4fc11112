//! Scheduling: which subflows carry the next data.
//!
//! A scheduler marks subflows; marking more than one sends the same data redundantly, marking none waits. The engine
//! asks whenever there are data within the connection's window and some subflow has room.
//!
//! A new scheduler is one file, declared here, and one line in [`SCHEDULERS`]. One with parameters lists them: see
//! `ecf.rs`.

mod blest;
mod ecf;
mod linux;
mod lowest_rtt;
mod opportunistic;
mod random;
mod redundant;
mod registry;
mod round_robin;
#[cfg(test)]
mod testing;

use units::{Duration, Prng};

pub use blest::Blest;
pub use ecf::Ecf;
pub use linux::Linux;
pub use lowest_rtt::LowestRtt;
pub use opportunistic::{Opportunistic, Penalizing};
pub use random::Random;
pub use redundant::Redundant;
pub use registry::{Build, Built, Registration, SCHEDULERS, build};
pub use round_robin::RoundRobin;

use crate::SubflowId;

/// Number of subflows that [`Marks`] can tell apart. A scheduler ignores the others.
pub const SUBFLOWS_MAX: usize = 64;

/// A scheduler's view of one established subflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowView {
    /// Identifier of the subflow.
    pub id: SubflowId,
    /// Maximum segment size, octets.
    pub mss: u32,
    /// Smoothed round-trip time, once there is a sample. If the last sample is old, the smallest round-trip time seen.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time (RFC 6298's RTTVAR).
    pub rttvar: Duration,
    /// Congestion window, octets.
    pub cwnd: u64,
    /// Slow start threshold, octets.
    pub ssthresh: u64,
    /// Octets sent and neither acknowledged nor deemed lost.
    pub in_flight: u64,
    /// Octets handed to the subflow and not yet sent.
    pub queued: u64,
    /// Octets handed to the subflow and not yet acknowledged, sent or not.
    pub held: u64,
    /// Whether congestion window and receive window have room for at least one segment in addition to the queued data.
    pub has_room: bool,
    /// Backup priority (RFC 8684 section 3.3.8): used only if no regular subflow is usable.
    pub backup: bool,
    /// Whether the subflow has shown no sign of life for a retransmission time-out. It should get new data only if all
    /// are stale.
    pub stale: bool,
}

/// The connection's state at the time of the decision.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext<'a> {
    /// The usable subflows in order of creation. Includes backups and stale subflows only if nothing better exists, and
    /// subflows without room only if [`Scheduler::wants_full`].
    pub subflows: &'a [SubflowView],
    /// Octets that wait to be scheduled.
    pub waiting_bytes: u64,
    /// Octets that the decision covers: the rest of the current fragment
    /// ([`Autotuned`](crate::era::Binding::Autotuned)). 0 if the decision covers one segment.
    pub fragment_bytes: u64,
    /// Octets left in the peer's connection-level window.
    pub window_bytes: u64,
    /// Octets sent and not yet acknowledged at the connection level.
    pub unacknowledged_bytes: u64,
}

impl<'a> ScheduleContext<'a> {
    /// Iterates over the subflows with room, with their positions.
    pub fn with_room(&self) -> impl Iterator<Item = (usize, &'a SubflowView)> + Clone {
        self.subflows.iter().enumerate().take(SUBFLOWS_MAX).filter(|(_, subflow)| subflow.has_room)
    }

    /// Returns the subflow with room that has the smallest smoothed round-trip time, and its position; the oldest wins
    /// a tie. Subflows without a sample come last because their delay is unknown.
    pub fn fastest_with_room(&self) -> Option<(usize, &'a SubflowView)> {
        self.with_room().min_by_key(|(_, subflow)| subflow.srtt.unwrap_or(Duration::MAX))
    }

    /// Returns the fastest of all subflows, and the round-trip times of it and `slow`, if it is faster than `slow` and
    /// has data in flight, so that an ACK will show when it has room.
    fn worth_waiting_for(&self, slow: &SubflowView) -> Option<(&'a SubflowView, Duration, Duration)> {
        let rtt_slow = slow.srtt?;
        let measured = self.subflows.iter().filter_map(|subflow| subflow.srtt.map(|rtt| (subflow, rtt)));
        let (fast, rtt_fast) = measured.min_by_key(|(_, rtt)| *rtt)?;
        (rtt_fast < rtt_slow && fast.in_flight > 0).then_some((fast, rtt_fast, rtt_slow))
    }
}

/// A set of subflows, as positions in [`ScheduleContext::subflows`] below [`SUBFLOWS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks(u64);

impl Marks {
    /// The empty set: wait.
    pub const NONE: Self = Self(0);

    /// Marks only the subflow at `position`; none if that is [`SUBFLOWS_MAX`] or more.
    pub const fn one(position: usize) -> Self {
        if position < SUBFLOWS_MAX { Self(1 << position) } else { Self::NONE }
    }

    /// Adds the subflow at `position`; does nothing if that is [`SUBFLOWS_MAX`] or more.
    pub fn mark(&mut self, position: usize) {
        self.0 |= Self::one(position).0;
    }

    /// Returns the marks at positions below `count`.
    pub(crate) const fn below(self, count: usize) -> Self {
        if count < SUBFLOWS_MAX { Self(self.0 & ((1 << count) - 1)) } else { self }
    }

    /// Whether no subflow is marked.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the marked positions in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let position = rest.trailing_zeros();
            rest &= rest.checked_sub(1)?;
            Some(position as usize)
        })
    }
}

/// A packet scheduler.
pub trait Scheduler: Send {
    /// Returns the name under which it is registered.
    fn name(&self) -> &'static str;

    /// Marks the subflows that carry the next segment. Marking a subflow without room queues the segment there. Marks
    /// at positions without a subflow are ignored: a set of only such marks waits.
    ///
    /// Something must end the wait: wait only if a subflow has data in flight, whose ACK makes the engine ask again. If
    /// nothing is under way on any subflow, the engine takes no for an error and gives the segment to the first subflow
    /// with room. A scheduler that always waits thus sends a segment per round trip.
    fn schedule(&mut self, context: &ScheduleContext<'_>, prng: &mut Prng) -> Marks;

    /// Whether the scheduler also looks at subflows without room. If not, [`ScheduleContext::subflows`] omits them,
    /// which saves the engine half of the views.
    fn wants_full(&self) -> bool {
        true
    }

    /// Whether the scheduler marks the only subflow with room regardless of its state, and keeps no memory of it. The
    /// engine then need not call it when there is no choice.
    fn takes_the_only_one(&self) -> bool {
        false
    }

    /// Whether the scheduler may wait on purpose for a subflow without room although another has room. Otherwise a test
    /// of all schedulers requires that it uses any room; the engine does not ask.
    fn may_wait(&self) -> bool {
        false
    }

    /// Returns what to do when the peer's window is full although a subflow has room.
    fn when_window_blocks(&self) -> Remedy {
        Remedy::Wait
    }
}

/// Reaction to a window that is blocked by a slow subflow's data; see `opportunistic.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Wait for the slow subflow.
    Wait,
    /// Retransmit the window's first segment on a faster subflow.
    Retransmit,
    /// As [`Self::Retransmit`], and halve the slow subflow's window.
    RetransmitAndPenalize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_beyond_the_last_position_are_nothing() {
        assert_eq!(Marks::one(SUBFLOWS_MAX), Marks::NONE);
        let mut marks = Marks::one(63);
        marks.mark(64);
        marks.mark(usize::MAX);
        assert_eq!(marks.iter().collect::<Vec<_>>(), [63]);
    }

    #[test]
    fn marks_below_a_count_are_kept() {
        let mut marks = Marks::one(1);
        marks.mark(63);
        let kept = |count| marks.below(count).iter().collect::<Vec<_>>();
        assert_eq!([kept(0), kept(1), kept(2), kept(63)], [vec![], vec![], vec![1], vec![1]]);
        assert_eq!([kept(64), kept(65)], [[1, 63], [1, 63]]);
    }
}
