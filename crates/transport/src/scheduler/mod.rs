//! Scheduling: which subflows carry the next data.
//!
//! A scheduler marks subflows; marking more than one sends the same data redundantly, marking none waits. The engine
//! asks whenever there are data within the connection's window and some subflow has room.
//!
//! A new scheduler is one file here and one line in [`SCHEDULERS`].

mod lowest_rtt;
mod random;
mod redundant;
mod registry;
mod round_robin;
#[cfg(test)]
mod testing;

use units::{Duration, Prng};

pub use lowest_rtt::LowestRtt;
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
    /// Room for at least one more segment in congestion window and subflow queue.
    pub has_room: bool,
    /// Backup priority (RFC 8684 section 3.3.8): only if no regular subflow is usable.
    pub backup: bool,
    /// No sign of life for a retransmission time-out: it should get new data only if all are so.
    pub stale: bool,
}

/// The connection's state when its scheduler is asked.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext<'a> {
    /// The usable subflows in order of creation. Backups and stale ones are there only when nothing better is.
    pub subflows: &'a [SubflowView],
    /// Octets that wait to be scheduled.
    pub waiting_bytes: u64,
    /// Octets left in the peer's connection-level window.
    pub window_bytes: u64,
}

impl<'a> ScheduleContext<'a> {
    /// The subflows with room, each with its position.
    pub fn with_room(&self) -> impl Iterator<Item = (usize, &'a SubflowView)> + Clone {
        self.subflows.iter().enumerate().take(SUBFLOWS_MAX).filter(|(_, subflow)| subflow.has_room)
    }
}

/// A set of subflows: positions in [`ScheduleContext::subflows`], below [`SUBFLOWS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks(u64);

impl Marks {
    /// No subflow: wait.
    pub const NONE: Self = Self(0);

    /// Only the subflow at `position`.
    pub const fn one(position: usize) -> Self {
        Self(1 << position)
    }

    /// Adds the subflow at `position`.
    pub fn mark(&mut self, position: usize) {
        self.0 |= 1 << position;
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

    /// Marks the subflows that carry the next segment. Marking a subflow without room queues the segment there.
    fn schedule(&mut self, context: &ScheduleContext<'_>, prng: &mut Prng) -> Marks;
}
