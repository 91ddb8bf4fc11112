//! Lowest round-trip time first: the default of the first Multipath TCP in Linux.

use units::Prng;

use super::{Marks, ScheduleContext, Scheduler};

/// Marks, among the subflows with room, the one with the smallest smoothed round-trip time; the oldest wins a tie.
/// Subflows without a sample come last because their delay is unknown.
#[derive(Debug, Default)]
pub struct LowestRtt;

impl Scheduler for LowestRtt {
    fn name(&self) -> &'static str {
        "lowest-rtt"
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, _prng: &mut Prng) -> Marks {
        context.fastest_with_room().map_or(Marks::NONE, |(position, _)| Marks::one(position))
    }

    fn wants_full(&self) -> bool {
        false
    }

    fn takes_the_only_one(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{full, positions, subflow};
    use super::*;

    fn schedule(subflows: &[super::super::SubflowView]) -> Vec<usize> {
        positions(&mut LowestRtt, subflows)
    }

    #[test]
    fn the_fastest_with_room_is_marked() {
        assert_eq!(schedule(&[subflow(0, Some(80)), subflow(1, Some(20)), subflow(2, Some(50))]), [1]);
        assert_eq!(schedule(&[subflow(0, Some(80)), full(1, Some(20)), subflow(2, Some(50))]), [2]);
    }

    #[test]
    fn the_oldest_of_equals_is_marked() {
        assert_eq!(schedule(&[subflow(4, Some(20)), subflow(7, Some(20))]), [0]);
    }

    #[test]
    fn an_unmeasured_subflow_comes_last_but_comes() {
        assert_eq!(schedule(&[subflow(0, None), subflow(1, Some(900))]), [1]);
        assert_eq!(schedule(&[subflow(0, None), full(1, Some(900))]), [0]);
    }

    #[test]
    fn without_room_it_waits() {
        assert_eq!(schedule(&[full(0, Some(10)), full(1, None)]), []);
        assert_eq!(schedule(&[]), []);
    }
}
