//! Round robin: the subflows take turns, segment by segment.

use units::Prng;

use super::{Marks, ScheduleContext, Scheduler};
use crate::SubflowId;

/// Marks the next subflow with room after the last marked one, in order of creation; subflows without room lose their
/// turn. It remembers the subflow instead of its position, so the order survives subflows that come and go.
#[derive(Debug, Default)]
pub struct RoundRobin {
    last: Option<SubflowId>,
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, _prng: &mut Prng) -> Marks {
        let mut with_room = context.with_room();
        let first = with_room.clone().next();
        let next = with_room.find(|(_, subflow)| Some(subflow.id) > self.last).or(first);
        let Some((position, subflow)) = next else { return Marks::NONE };
        self.last = Some(subflow.id);
        Marks::one(position)
    }

    fn wants_full(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{full, positions, subflow};
    use super::*;

    #[test]
    fn all_take_turns() {
        let subflows = [subflow(0, None), subflow(1, None), subflow(2, None)];
        let mut round_robin = RoundRobin::default();
        let marked: Vec<_> = (0..7).flat_map(|_| positions(&mut round_robin, &subflows)).collect();
        assert_eq!(marked, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_full_subflow_loses_its_turn() {
        let mut round_robin = RoundRobin::default();
        assert_eq!(positions(&mut round_robin, &[subflow(0, None), subflow(1, None)]), [0]);
        assert_eq!(positions(&mut round_robin, &[subflow(0, None), full(1, None)]), [0]);
        assert_eq!(positions(&mut round_robin, &[full(0, None), full(1, None)]), []);
        assert_eq!(positions(&mut round_robin, &[subflow(0, None), subflow(1, None)]), [1]);
    }

    #[test]
    fn turns_survive_subflows_that_go() {
        let mut round_robin = RoundRobin::default();
        let subflows = [subflow(0, None), subflow(1, None), subflow(2, None)];
        positions(&mut round_robin, &subflows);
        assert_eq!(positions(&mut round_robin, &subflows), [1]);
        // Subflow 1, marked last, has ended: subflow 2 is next although its position is now 1.
        assert_eq!(positions(&mut round_robin, &[subflow(0, None), subflow(2, None)]), [1]);
    }
}
