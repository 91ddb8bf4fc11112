//! Redundant: the same data on every subflow, for the latency of the currently fastest one.

use units::Prng;

use super::{Marks, SUBFLOWS_MAX, ScheduleContext, Scheduler};

/// Marks all subflows, including those without room. There the segment waits in the queue, and the engine drops it once
/// another subflow has delivered it. Each subflow thus works through the data at its own pace.
#[derive(Debug, Default)]
pub struct Redundant;

impl Scheduler for Redundant {
    fn name(&self) -> &'static str {
        "redundant"
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, _prng: &mut Prng) -> Marks {
        let mut marks = Marks::NONE;
        for position in 0..context.subflows.len().min(SUBFLOWS_MAX) {
            marks.mark(position);
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{full, positions, subflow};
    use super::*;

    #[test]
    fn all_are_marked_with_room_or_without() {
        assert_eq!(positions(&mut Redundant, &[subflow(0, None), full(1, None), subflow(2, None)]), [0, 1, 2]);
        assert_eq!(positions(&mut Redundant, &[]), []);
    }

    #[test]
    fn more_subflows_than_marks_are_left_out() {
        let subflows: Vec<_> = (0..70).map(|id| subflow(id, None)).collect();
        assert_eq!(positions(&mut Redundant, &subflows), (0..64).collect::<Vec<_>>());
    }
}
