//! Round robin: the resource block groups of a TTI are dealt out evenly, but no UE gets fewer than it can use, unless
//! retransmissions leave no more. The next TTI continues where this one ended.

use super::{Candidates, Grants, ResourceScheduler};

/// Round robin scheduler; see the module documentation.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// UEs that can receive now.
    reached: Vec<u16>,
    /// The UE after which the next TTI begins.
    after: u16,
}

impl RoundRobin {
    /// Finds the UEs in range; the others get no turn. If no UE can receive, all UEs get a turn, and the cell asks them
    /// again when their channels change.
    fn look_for_reached(&mut self, candidates: &mut Candidates<'_>) {
        self.reached.clear();
        for index in 0..candidates.ues().len() {
            let ue = candidates.ues()[index];
            if candidates.wideband_bytes(ue) > 0 {
                self.reached.push(ue);
            }
        }
        if self.reached.is_empty() {
            self.reached.extend_from_slice(candidates.ues());
        }
    }
}

impl ResourceScheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants) {
        self.look_for_reached(candidates);
        let ues = &self.reached;
        let mut free = grants.free();
        let groups_each = free.len() / ues.len();
        let begin = ues.partition_point(|ue| *ue <= self.after) % ues.len();
        let in_turn = |turn: usize| ues[(begin + turn) % ues.len()];
        let mut served = 0;
        while !free.is_empty() {
            let ue = in_turn(served);
            served += 1;
            let count = groups_each.max(candidates.least_groups(ue)).min(free.len());
            let rest = free.len() - count;
            // The remainder goes to the last UE in turn.
            let is_last = served == ues.len() || rest < candidates.least_groups(in_turn(served));
            let end = if is_last { free.end } else { free.start + count };
            (free.start..end).for_each(|group| grants.give(group, ue));
            free.start = end;
        }
        // The next TTI begins with the first UE that was left out; if all were served, with the second of them.
        self.after = if served == ues.len() { ues[begin] } else { in_turn(served - 1) };
    }

    fn adapts_to_wideband(&self) -> bool {
        true
    }
}
