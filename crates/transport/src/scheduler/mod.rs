//! Scheduling: which subflows carry the next data.
//!
//! A scheduler marks subflows; marking more than one sends the same data redundantly, marking none waits. The engine
//! asks whenever there are data within the connection's window and some subflow has room.
//!
//! A new scheduler is one file here and one line in [`SCHEDULERS`].

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
pub use registry::{Registration, SCHEDULERS, build};
pub use round_robin::RoundRobin;

use crate::SubflowId;

/// Subflows that [`Marks`] can tell apart; a scheduler leaves any beyond them out.
pub const SUBFLOWS_MAX: usize = 64;

/// What a scheduler may see of one established subflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowView {
    /// Which subflow.
    pub id: SubflowId,
    /// Maximum segment size, octets.
    pub mss: u32,
    /// Smoothed round-trip time, once there is a sample; the smallest seen where the last sample is old.
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
    /// Room for at least one more segment in congestion window and receive window, besides what is queued.
    pub has_room: bool,
    /// Backup priority (RFC 8684 section 3.3.8): only if no regular subflow is usable.
    pub backup: bool,
    /// No sign of life for a retransmission time-out: it should get new data only if all are so.
    pub stale: bool,
}

/// The connection's state when its scheduler is asked.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext<'a> {
    /// The usable subflows in order of creation. Backups and stale ones are there only when nothing better is, those without
    /// room only if [`Scheduler::wants_full`].
    pub subflows: &'a [SubflowView],
    /// Octets that wait to be scheduled.
    pub waiting_bytes: u64,
    /// As many of them go where the scheduler says, what is left of the fragment that they are in
    /// ([`Autotuned`](crate::era::Binding::Autotuned)); 0 where a segment does.
    pub fragment_bytes: u64,
    /// Octets left in the peer's connection-level window.
    pub window_bytes: u64,
    /// Octets sent and not yet acknowledged at the connection level.
    pub unacknowledged_bytes: u64,
}

impl<'a> ScheduleContext<'a> {
    /// The subflows with room, each with its position.
    pub fn with_room(&self) -> impl Iterator<Item = (usize, &'a SubflowView)> + Clone {
        self.subflows.iter().enumerate().take(SUBFLOWS_MAX).filter(|(_, subflow)| subflow.has_room)
    }

    /// The subflow with room whose smoothed round-trip time is smallest, and its position; the oldest of several equals. One
    /// without a sample comes last: its delay is unknown, the others' is not.
    pub fn fastest_with_room(&self) -> Option<(usize, &'a SubflowView)> {
        self.with_room().min_by_key(|(_, subflow)| subflow.srtt.unwrap_or(Duration::MAX))
    }

    /// The fastest of all subflows if it is faster than `slow` and will say when it has room: something is on its way there.
    /// With the round-trip times of both.
    fn worth_waiting_for(&self, slow: &SubflowView) -> Option<(&'a SubflowView, Duration, Duration)> {
        let rtt_slow = slow.srtt?;
        let measured = self.subflows.iter().filter_map(|subflow| subflow.srtt.map(|rtt| (subflow, rtt)));
        let (fast, rtt_fast) = measured.min_by_key(|(_, rtt)| *rtt)?;
        (rtt_fast < rtt_slow && fast.in_flight > 0).then_some((fast, rtt_fast, rtt_slow))
    }
}

/// A set of subflows: positions in [`ScheduleContext::subflows`], below [`SUBFLOWS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks(u64);

impl Marks {
    /// No subflow: wait.
    pub const NONE: Self = Self(0);

    /// Only the subflow at `position`; none if that is [`SUBFLOWS_MAX`] or more.
    pub const fn one(position: usize) -> Self {
        if position < SUBFLOWS_MAX { Self(1 << position) } else { Self::NONE }
    }

    /// Adds the subflow at `position`; nothing if that is [`SUBFLOWS_MAX`] or more.
    pub fn mark(&mut self, position: usize) {
        self.0 |= Self::one(position).0;
    }

    /// Without the positions from `count` on.
    pub(crate) const fn below(self, count: usize) -> Self {
        if count < SUBFLOWS_MAX { Self(self.0 & ((1 << count) - 1)) } else { self }
    }

    /// Whether no subflow is marked.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The marked positions in ascending order.
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
    /// The name under which it is registered.
    fn name(&self) -> &'static str;

    /// Marks the subflows that carry the next segment. Marking a subflow without room queues the segment there. Positions at
    /// which there is no subflow count for nothing: marks of these alone wait.
    fn schedule(&mut self, context: &ScheduleContext<'_>, prng: &mut Prng) -> Marks;

    /// Whether it looks at subflows without room, too. If not, [`ScheduleContext::subflows`] leaves them out, which spares
    /// the engine half of the views.
    fn wants_full(&self) -> bool {
        true
    }

    /// Whether it marks the only subflow with room whatever that looks like, and remembers nothing of it. Where there is no choice
    /// the engine need not ask it then.
    fn takes_the_only_one(&self) -> bool {
        false
    }

    /// What to do when the peer's window has no room although a subflow has.
    fn when_window_blocks(&self) -> Remedy {
        Remedy::Wait
    }
}

/// What to do about a window that is blocked by what a slow subflow carries; see `opportunistic.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Wait for the slow subflow.
    Wait,
    /// Send the window's first segment again on a faster subflow.
    Retransmit,
    /// The same, and halve the slow subflow's window.
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
